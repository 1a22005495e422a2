"""A record that is read back as it was written, or refused: closed keys, strict types, a seal."""

import hashlib
import json
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, StringConstraints

Hash = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class Kept(BaseModel):
    """A part of a receipt: as it was written, or refused."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class Sealed(Kept):
    """A receipt; `sha256` seals every other field.

    The seal finds accidents and careless edits. It is no signature: who writes a receipt can
    write another.
    """

    sha256: Hash | Literal[""] = ""

    def seal(self) -> str:
        """Return the SHA-256 of all other fields."""
        fields = self.model_dump(mode="json", exclude={"sha256"})
        return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()

    def sealed(self) -> Self:
        """Return the receipt with its seal."""
        return self.model_copy(update={"sha256": self.seal()})
