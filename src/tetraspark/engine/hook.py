"""One place where the plugin touches the engine."""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal

from tetraspark.engine.drift import Target

Role = Literal["server", "scheduler", "detokenizer"]
Type = Literal["BEFORE", "AFTER", "AROUND", "REPLACE"]
Device = Literal["any", "cuda"]


@dataclass(frozen=True)
class Hook:
    """A target, the name of our function for it, the engine's hook type, and who needs it.

    `device` "cuda": only an engine that runs on CUDA; elsewhere the target's module is not even
    imported. `needs` is a module without which the target cannot be imported and the engine does
    without it.
    """

    target: Target
    function: str
    type: Type
    role: Role
    device: Device = "any"
    needs: str | None = None

    def applies(self, *, cuda: bool) -> bool:
        """Tell whether the engine of this environment has the target."""
        there = self.needs is None or find_spec(self.needs) is not None
        return there and (cuda or self.device == "any")
