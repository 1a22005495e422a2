"""One place where the plugin touches the engine."""

from dataclasses import dataclass
from typing import Literal

from tetraspark.engine.drift import Target

Role = Literal["server", "scheduler", "detokenizer"]
Type = Literal["BEFORE", "AFTER", "AROUND", "REPLACE"]
Device = Literal["any", "cuda"]


@dataclass(frozen=True)
class Hook:
    """A target, the name of our function for it, the engine's hook type, and who needs it.

    `device` "cuda": only an engine that runs on CUDA; elsewhere the target's module is not even
    imported.
    """

    target: Target
    function: str
    type: Type
    role: Role
    device: Device = "any"
