"""The packages beside the engine that the plugin was written for, as the engine pins them."""

import re
from dataclasses import dataclass
from typing import Literal

from tetraspark.engine.metadata import headers, normalised, printable
from tetraspark.engine.tree import PACKAGE

PINS = {
    PACKAGE: "0.5.23",
    "flashinfer-python": "0.7.2",
    "sgl-deep-gemm": "0.2.3.post2",
    "sgl-flash-mla": "1.0.0",
    "sglang-kernel": "0.4.10",
    "torch": "2.14.1",
}
"""Package -> version; those of the METADATA of sglang 0.5.23 whose kernels the hooks sit on."""

# Name, [extras], condition with or without brackets, marker: `packaging` may not be there.
_REQUIREMENT = re.compile(
    r"\s*([A-Za-z0-9._-]+)\s*(?:\[[^\]]*\])?\s*\(?([^;)]*)\)?\s*(?:;(.*))?", re.DOTALL
)
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")


@dataclass(frozen=True)
class Pin:
    """One package: the version written for, and what this engine asks for ("" when unknown)."""

    package: str
    wanted: str
    asked: str

    @property
    def verdict(self) -> Literal["same", "differs", "unknown"]:
        """Compare the two; without METADATA there is nothing to compare."""
        if not self.asked:
            return "unknown"
        return "same" if self.asked == self.wanted else "differs"


def read_pins(metadata: str | None) -> list[Pin]:
    """Return every pin beside what the engine's METADATA says (None: there is none)."""
    asked = _asked(metadata) if metadata is not None else {}
    absent = "" if metadata is None else "not required"
    return [Pin(name, wanted, asked.get(name, absent)) for name, wanted in PINS.items()]


def _asked(metadata: str) -> dict[str, str]:
    """Return what each package must be: a version, or a condition such as `>=2.9`.

    A package required more than once, for several machines, has every condition in its value.
    """
    fields = headers(metadata)
    found: dict[str, list[str]] = {}
    for line in fields.get_all("Requires-Dist", []):
        match = _REQUIREMENT.match(str(line))
        # The engine's extras name the engine itself, and other versions for other machines.
        if match is not None and not re.search(r"\bextra\b", _QUOTED.sub("", match[3] or "")):
            asked = re.sub(r"^={2,3}", "", "".join(match[2].split())) or "any version"
            found.setdefault(normalised(match[1]), []).append(asked)
    found[PACKAGE] = [str(fields.get("Version", "")).strip()]
    return {name: printable(", ".join(dict.fromkeys(every))) for name, every in found.items()}
