"""A site under construction: settings with their origin, and each variable's outcome."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tetraspark.errors import Problem
from tetraspark.site.finding import Finding
from tetraspark.site.import_report import Added, Entry
from tetraspark.site.import_table import Converter, NotCarriedError
from tetraspark.site.keypath import KeyPath, dotted
from tetraspark.site.load import examine
from tetraspark.site.secret import holds_secret


@dataclass(frozen=True)
class Variable:
    """One variable in force: its text, the line it is from, and the name to report it under."""

    name: str
    value: str
    line: int
    label: str
    earlier: tuple[int, ...] = ()
    secret: bool = False


@dataclass(frozen=True)
class Setting:
    """One key of the site: value, comment, and the reported name of the variable it is from."""

    path: KeyPath
    value: Any
    comment: str
    label: str = ""
    refused: str = ""


class Draft:
    """Settings and outcomes; every variable gets exactly one entry."""

    def __init__(self, profile: str) -> None:
        self.profile = profile
        self.settings: dict[KeyPath, Setting] = {}
        self.entries: dict[str, Entry] = {}
        self.added: list[Added] = []
        self.needed: list[Finding] = []
        self.secrets: set[str] = set()

    def carry(self, variable: Variable, path: KeyPath, value: Any, why: str = "") -> None:
        """Set a key from a variable; a variable may set several."""
        self._replace(path, variable.label)
        comment = f"from {self.profile}:{variable.line}"
        self.settings[path] = Setting(path, value, comment, variable.label)
        before = self.entries.get(variable.label)
        keys = (*(before.keys if before else ()), dotted(path))
        texts = [text for text in (before.why if before else "", why) if text]
        self._enter(variable, Entry(variable.label, 0, "carried", keys, "; ".join(texts)))

    def keep(self, variable: Variable, why: str) -> None:
        """Keep a variable in [env]."""
        path: KeyPath = ("env", variable.name)
        comment = f"from {self.profile}:{variable.line}"
        self.settings[path] = Setting(path, variable.value, comment, variable.label)
        self._enter(variable, Entry(variable.label, 0, "env", (dotted(path),), why))

    def say(self, variable: Variable, keys: tuple[str, ...], why: str) -> None:
        """Record a variable as carried by keys that are not set from its own text."""
        self._enter(variable, Entry(variable.label, 0, "carried", keys, why))

    def drop(self, variable: Variable, why: str) -> None:
        """Leave a variable out, with the reason."""
        self._enter(variable, Entry(variable.label, 0, "not carried", (), why))

    def convert(self, variable: Variable, path: KeyPath, converter: Converter) -> None:
        """Carry a variable through a converter, or drop it with the converter's reason."""
        try:
            self.carry(variable, path, converter(variable.value))
        except NotCarriedError as error:
            self.drop(variable, str(error))

    def add(self, path: KeyPath, value: Any, why: str) -> None:
        """Set a key that no variable gave, unless one did."""
        if path not in self.settings:
            self.settings[path] = Setting(path, value, why)
            self.added.append(Added(dotted(path), why))

    def settle(self) -> tuple[Finding, ...]:
        """Take out what the site refuses until it loads; return what a person must fill in."""
        while True:
            site, findings = examine(self.document())
            if site is not None:
                return tuple(self.needed)
            if not self._refuse(findings):
                return (*self.needed, *findings)

    def leaks(self, variable: Variable, text: str) -> bool:
        """Say whether a part of a variable's text is a credential, or another variable's secret."""
        return holds_secret(text) or (
            variable.secret and any(secret in text for secret in self.secrets)
        )

    def document(self) -> dict[str, Any]:
        """Return the settings in force as nested tables."""
        root: dict[Any, Any] = {}
        for setting in self.settings.values():
            if setting.refused:
                continue
            table = root
            for part in setting.path[:-1]:
                table = table.setdefault(part, {})
            table[setting.path[-1]] = setting.value
        return {key: _lists(value) for key, value in root.items()}

    def _enter(self, variable: Variable, entry: Entry) -> None:
        self.entries[variable.label] = replace(entry, line=variable.line, earlier=variable.earlier)

    def _replace(self, path: KeyPath, label: str) -> None:
        before = self.settings.get(path)
        if before is not None and before.label != label:
            self._lose(before, f"replaced by {label}, which the engine sees last")

    def _refuse(self, findings: list[Finding]) -> bool:
        hit = False
        for finding in findings:
            for path, setting in self.settings.items():
                if not setting.refused and _touches(finding.path, path):
                    why = f"{finding.seen}; wanted: {finding.wanted}"
                    self.settings[path] = replace(setting, refused=why)
                    self._lose(setting, f"left as a comment at `{dotted(path)}`: {why}")
                    hit = True
        return hit

    def _lose(self, setting: Setting, why: str) -> None:
        entry = self.entries.get(setting.label)
        if entry is None:
            self.added = [item for item in self.added if item.key != dotted(setting.path)]
            return
        keys = tuple(key for key in entry.keys if key != dotted(setting.path))
        texts = "; ".join(text for text in (entry.why, why) if text)
        outcome = entry.outcome if keys else "not carried"
        self.entries[setting.label] = replace(entry, keys=keys, outcome=outcome, why=texts)


def needs(profile: str, findings: tuple[Finding, ...]) -> tuple[Problem, ...]:
    """Return findings without a line as problems of the imported profile."""
    return tuple(Problem(profile, item.seen, item.wanted, item.fix) for item in findings)


def _touches(finding: KeyPath, setting: KeyPath) -> bool:
    shorter = min(len(finding), len(setting))
    return finding[:shorter] == setting[:shorter]


def _lists(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    if value and all(isinstance(key, int) for key in value):
        return tuple(_lists(value.get(index, {})) for index in range(max(value) + 1))
    return {key: _lists(inner) for key, inner in value.items()}
