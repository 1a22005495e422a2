"""The limits on requests, as variables of the plugin or of the branch's adapters."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from tetraspark.engine.guard_env import PREFIX, GuardSettings, guard_settings, variable
from tetraspark.line.plan import Plan, Setting
from tetraspark.line.settings import derived, value_of
from tetraspark.site.load import LoadedSite


def guards(loaded: LoadedSite) -> list[Setting]:
    """Return every variable of the plugin's guards, or nothing without [guards]."""
    section = loaded.site.guards
    if section is None:
        return []
    written = {name: value_of(loaded, f"guards.{name}") for name in _fields()}
    given = {name: value for name, value in written.items() if value is not None}
    if "default_new_tokens" not in given:
        # The site's limit is what is filled in where nothing else is said.
        given["default_new_tokens"] = given.get("max_new_tokens", GuardSettings.max_new_tokens)
    texts = GuardSettings(**given).variables()
    return [_setting(loaded, name, texts[variable(name)]) for name in _fields()]


def planned_guards(plan: Plan) -> dict[str, str]:
    """Return the variables of the plugin's guards that a plan holds."""
    return {
        setting.name: setting.value
        for setting in plan.settings
        if setting.name.startswith(PREFIX) and setting.value is not None
    }


def limits_of(plan: Mapping[str, Any]) -> GuardSettings | None:
    """Return the limits of a running line, by its plan as JSON."""
    values = {one["name"]: one["value"] for one in plan["settings"] if one["kind"] == "env"}
    return guard_settings(values)


def _setting(loaded: LoadedSite, name: str, text: str) -> Setting:
    if value_of(loaded, f"guards.{name}") is not None:
        return Setting("env", variable(name), text, loaded.origin(f"guards.{name}"))
    return derived("env", variable(name), text, "default of [guards]", None)


def _fields() -> tuple[str, ...]:
    return tuple(asdict(GuardSettings()))
