"""A draft as TOML for people: sections in the order of the schema, each key with its origin."""

from collections.abc import Mapping
from typing import Any

import tomlkit
from tomlkit import TOMLDocument
from tomlkit.container import Container
from tomlkit.items import AoT, Table

from tetraspark.errors import Problem
from tetraspark.site.credentials import is_credential
from tetraspark.site.explain import schema_keys
from tetraspark.site.keypath import KeyPath
from tetraspark.site.machines import secret_argument
from tetraspark.site.secret import names_secret
from tetraspark.site.site_draft import Draft, Setting

_Parent = TOMLDocument | Table | Container


def site_text(draft: Draft, needed: tuple[Problem, ...]) -> str:
    """Write the draft; refused settings and what is still needed become comments."""
    document = tomlkit.document()
    document.add(tomlkit.comment(f"Imported from {draft.profile} by tetraspark import-env."))
    for problem in needed:
        document.add(_note(f"STILL NEEDED: {problem.seen}; {problem.wanted}; {problem.fix}"))
    order = {path: number for number, path in enumerate(schema_keys())}
    settings = sorted(draft.settings.values(), key=lambda item: _rank(item.path, order))
    for setting in settings:
        _write(_section(document, setting.path[:-1]), setting)
    return tomlkit.dumps(document)


def _rank(path: KeyPath, order: Mapping[KeyPath, int]) -> tuple[int, int, int, int]:
    """Top-level scalars, then sections in the order of the schema, each with its scalars first.

    Keys the schema leaves open, as in [env], rank as their section: the sort is stable.
    """
    plain = tuple(0 if isinstance(part, int) else part for part in path)
    section = order[plain[:1]] if len(path) > 1 else -1
    node = path[1] if len(path) > 1 and isinstance(path[1], int) else 0
    return (section, node, len(path), order.get(plain, order[plain[:1]]))


def _section(document: TOMLDocument, path: KeyPath) -> Any:
    here: Any = document
    for position, part in enumerate(path):
        if isinstance(part, int):
            while len(here) <= part:
                here.append(tomlkit.table())
            here = here[part]
            continue
        if part not in here:
            listed = position + 1 < len(path) and isinstance(path[position + 1], int)
            _add(here, part, tomlkit.aot() if listed else tomlkit.table())
        here = here[part]
    return here


def _add(parent: Any, key: str, item: Table | AoT) -> None:
    # a blank line before each section; tables of an array bring their own
    if isinstance(parent, TOMLDocument) and parent:
        parent.add(tomlkit.nl())
    parent.add(key, item)


def _write(table: Any, setting: Setting) -> None:
    key = str(setting.path[-1])
    if not setting.refused:
        item = tomlkit.item(_plain(setting.value))
        table.add(key, item.comment(_one_line(setting.comment)))
        return
    if _is_secret(setting):
        table.add(_note(f"{key}: {setting.comment}; refused: a secret"))
        return
    line = tomlkit.dumps({key: _plain(setting.value)}).strip()
    table.add(_note(f"{line}  # {setting.comment}; refused: {setting.refused}"))


def _is_secret(setting: Setting) -> bool:
    key = str(setting.path[-1])
    argument = setting.path[:2] == ("image", "build_args") and secret_argument(key)
    return argument or names_secret(key) or is_credential(setting.path, str(setting.value))


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _note(text: str) -> Any:
    return tomlkit.comment(_one_line(text))


def _one_line(text: str) -> str:
    return "".join(c if c >= " " and c != "\x7f" else " " for c in text)
