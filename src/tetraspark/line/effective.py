"""What the running engine says it runs with, beside what was planned. Pure.

An engine may take another value than it was given: a KV pool that does not fit is cut down with
a line in the log, a block size may come from the checkpoint. `/server_info` tells what is in
force, so `serve` compares every setting of the plan that it repeats.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tetraspark.errors import Problem
from tetraspark.line import settings
from tetraspark.line.plan import Plan, Setting

Info = Mapping[str, Any]
Holds = Callable[[str, Any, Info], bool]
DRAFT_TOKENS = "speculative_num_draft_tokens"


@dataclass(frozen=True)
class Effective:
    """A planned setting and the running engine's value for it, under its key of `/server_info`.

    `where` is the setting's origin: a line of the site, or why it was derived.
    """

    setting: str
    planned: str
    key: str
    value: Any
    where: str
    same: bool

    def as_dict(self) -> dict[str, Any]:
        """Return the fields, for the run's folder and `--json`."""
        return asdict(self)


def equal(planned: str, value: Any, info: Info) -> bool:
    """Compare as numbers where both are, else as texts."""
    try:
        return float(planned) == float(value)
    except (TypeError, ValueError, OverflowError):
        return planned == str(value)


def verify_window(planned: str, value: Any, info: Info) -> bool:
    """DSpark verifies the drafts and one token more (sglang 0.5.23, arg_groups/fields/spec.py)."""
    return equal(planned, value - 1 if isinstance(value, int) else value, info)


def pool_size(planned: str, value: Any, info: Info) -> bool:
    """The pool is cut to whole pages, and to what memory holds: only the first is as planned."""
    page = info.get("page_size")
    short = int(planned) - value if isinstance(value, int) else None
    return short is not None and 0 <= short < (page if isinstance(page, int) else 1)


# Flag -> further keys it decides, beside the one of its own name.
FURTHER: Mapping[str, tuple[tuple[str, Holds], ...]] = {
    "--max-total-tokens": (("max_total_num_tokens", pool_size),),
    "--max-running-requests": (("effective_max_running_requests_per_dp", equal),),
    "--speculative-dspark-block-size": ((DRAFT_TOKENS, verify_window),),
}


def read_effective(plan: Plan, info: Info) -> list[Effective]:
    """Return the head's planned settings that `/server_info` repeats, in the order of the plan.

    An engine that leaves a key out says nothing about it, and neither does this.
    """
    told = _flat(info)
    return [
        Effective(setting.name, setting.value or "", key, told[key], setting.origin.where, same)
        for setting in plan.settings
        if setting.kind == "flag" and setting.value is not None and setting.rank in (None, 0)
        for key, same in _comparisons(setting, told)
    ]


def differences(plan: Plan, found: list[Effective]) -> list[Problem]:
    """Return a problem for each value that is not as planned."""
    return [
        Problem(
            where=one.where,
            seen=f"{_name(one.setting)} is {one.value!r} in the running engine "
            f"({one.key} in /server_info)",
            wanted=f"{one.planned}, as planned",
            fix=f"{_setting(one)}see in its log why it took another: tetraspark logs 0",
        )
        for one in found
        if not one.same
    ]


def _flat(info: Info) -> Info:
    """Put what the scheduler tells of itself beside the rest."""
    states = info.get("internal_states")
    first = states[0] if isinstance(states, list) and states else {}
    return {**first, **info} if isinstance(first, Mapping) else info


def _comparisons(setting: Setting, info: Info) -> Iterator[tuple[str, bool]]:
    assert setting.value is not None
    own = setting.name.removeprefix("--").replace("-", "_")
    for key, holds in ((own, equal), *FURTHER.get(setting.name, ())):
        if key in info:
            yield key, holds(setting.value, info[key], info)


def _name(flag: str) -> str:
    key = settings.KEYS.get(flag)
    return f"`{key}` ({flag})" if key else f"`{flag}`"


def _setting(one: Effective) -> str:
    """Return the edit that makes the site say what is in force, where it has a key for it."""
    key = settings.KEYS.get(one.setting)
    if key is None or not isinstance(one.value, int | float):
        return ""
    value = one.value - 1 if one.key == DRAFT_TOKENS else one.value
    return f"set {key} = {value}, or "
