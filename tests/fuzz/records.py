"""What ranks tell each other while a group opens or fails, and who reads it."""

from collections.abc import Callable
from dataclasses import asdict, dataclass

from tetraspark.collectives import shm_card, verbs_card
from tetraspark.collectives.failure import Failure, Kind, RefusedError
from tetraspark.collectives.settings import Settings
from tetraspark.collectives.verbs_options import VerbsOptions
from tetraspark.collectives.vote import Ballot, count


@dataclass(frozen=True)
class Record:
    """`samples` are whole ones; `read` raises `refusal` for every other."""

    name: str
    read: Callable[[bytes], object]
    samples: tuple[bytes, ...]
    refusal: type[Exception] = ValueError


def ballots(world: int) -> list[Ballot]:
    """Return the votes of ranks that agree."""
    settings = Settings()
    return [
        Ballot(
            rank, world, 1, 1, "ab" * 32, "shm", ("bfloat16", "float32"),
            settings.shared(), settings.digest(),
        )
        for rank in range(world)
    ]  # fmt: skip


VOTES = [one.to_bytes() for one in ballots(3)]
FAILURES = tuple(
    Failure(kind, 1, 2, 0, 99, 4096, detail).to_bytes()
    for kind in (Kind.LATE, Kind.LANE)
    for detail in ("it does not come", "x" * 900)
)
SHM = shm_card.Card("tetraspark-71-982-0", True, 71, 982, "boot pid:[1]")
DEVICES = tuple(verbs_card.DeviceCard(f"rocep{i}", f"{i:02x}" * 16, 4096, 7) for i in range(2))
LANES = {1: ((17, 5), (18, 6)), 2: ((19, 7), (20, 8))}
RDMA = verbs_card.Card("spark1", "w" * 64, asdict(VerbsOptions()), 1 << 40, DEVICES, LANES)


def count_with(vote: bytes) -> object:
    """Count a vote in the middle of two good ones."""
    return count([VOTES[0], vote, VOTES[2]])


RECORDS = (
    Record("ballot", count_with, (VOTES[1],), RefusedError),
    Record("failure", Failure.from_bytes, FAILURES),
    Record("shared memory card", shm_card.Card.from_bytes, (SHM.to_bytes(),)),
    Record("RDMA card", verbs_card.Card.from_bytes, (RDMA.to_bytes(),)),
)
