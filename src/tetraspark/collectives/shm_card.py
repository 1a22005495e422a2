"""What a rank on the same host tells the others so that they can map its region."""

from dataclasses import asdict, dataclass

from tetraspark.collectives.message import built, seal, unseal

PREFIX = "tetraspark-"
NAME = "shm-card"


@dataclass(frozen=True)
class Card:
    """One rank: the name of its region's file, and the process that owns it."""

    name: str
    pull: bool
    pid: int
    start: int
    namespace: str

    def __post_init__(self) -> None:
        if not self.name.startswith(PREFIX) or "/" in self.name or "\0" in self.name:
            raise ValueError(f"a {NAME} with name {self.name[:80]!r}")

    def to_bytes(self) -> bytes:
        """Encode for the exchange."""
        return seal(NAME, asdict(self))

    @classmethod
    def from_bytes(cls, data: bytes) -> "Card":
        """Decode. Raises ValueError if it is not a card."""
        return built(cls, NAME, unseal(NAME, data))
