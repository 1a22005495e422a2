"""The packages beside the engine that the plugin was written for, as the engine pins them."""

import re
from dataclasses import dataclass
from email.parser import HeaderParser
from typing import Literal

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

_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9._-]+)\s*(?:\[[^\]]*\])?\s*\(?([^;)]*)")


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
    """Return what each package must be: a version, or a condition such as `>=2.9`."""
    headers = HeaderParser().parsestr(metadata)
    found = {}
    for line in headers.get_all("Requires-Dist", []):
        match = _REQUIREMENT.match(line)
        # The engine's extras name the engine itself, and other versions for other machines.
        if match is not None and "extra ==" not in line:
            name = re.sub(r"[-_.]+", "-", match[1]).lower()
            found[name] = match[2].strip().removeprefix("==") or "any version"
    return found | {PACKAGE: str(headers.get("Version", ""))}
