"""What a failed group says: one root cause, the same on every rank."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from enum import StrEnum

from tetraspark.collectives.message import built, seal, unseal

RECORD_BYTES = 504
"""Room for one record in a region: four 128-byte lines less the 8-byte word that marks it valid."""


class Kind(StrEnum):
    """Why a group failed. The order is the order of attribution: a cause before its effects."""

    MISMATCH = "mismatch"
    DIVERGED = "diverged"
    LOST = "lost"
    PORT = "port"
    LANE = "lane"
    INTERRUPTED = "interrupted"
    DEAD = "dead"
    CLOSED = "closed"
    FROZEN = "frozen"
    LATE = "late"


KINDS = frozenset(str(kind) for kind in Kind)


@dataclass(frozen=True)
class Failure:
    """One finding: `reporter` waited for `peer` on `lane` at `sequence`, `nbytes` a rank.

    `lane` is -1 where no single lane is to blame; `detail` is one sentence for a person.
    """

    kind: Kind
    reporter: int
    peer: int
    lane: int
    sequence: int
    nbytes: int
    detail: str

    def __str__(self) -> str:
        lane = f" lane {self.lane}" if self.lane >= 0 else ""
        return (
            f"{self.kind}: rank {self.peer}{lane}, seen by rank {self.reporter} at sequence "
            f"{self.sequence} ({self.nbytes} bytes): {self.detail}"
        )

    def as_dict(self) -> dict[str, str | int]:
        """Return the fields, JSON-able."""
        return asdict(self) | {"kind": str(self.kind)}

    def to_bytes(self) -> bytes:
        """Encode for a record; a long detail is cut to fit `RECORD_BYTES`."""
        data = seal("failure", self.as_dict())
        if len(data) <= RECORD_BYTES:
            return data
        short = self.detail[: max(0, len(self.detail) - (len(data) - RECORD_BYTES) - 3)]
        return replace(self, detail=short + "...").to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Failure":
        """Decode a record. Raises ValueError if it is not one."""
        found = unseal("failure", data)
        kind = found.get("kind")
        return built(
            cls,
            "failure",
            found | {"kind": Kind(kind) if isinstance(kind, str) and kind in KINDS else kind},
        )


def root_of(failures: Iterable[Failure]) -> Failure:
    """Return the root among all ranks' findings; the same on every rank that sees the same set."""
    order = list(Kind)
    return min(failures, key=lambda f: (order.index(f.kind), f.reporter, f.peer))


class CollectiveError(RuntimeError):
    """The group failed and stays failed; `root` is the cause every rank names."""

    def __init__(self, root: Failure, rank: int) -> None:
        super().__init__(f"collective failed on rank {rank}; root cause: {root}")
        self.root = root
        self.rank = rank


class RefusedError(RuntimeError):
    """The group was not opened on any rank; `reasons` are (rank, reason) in rank order."""

    def __init__(self, reasons: list[tuple[int, str]]) -> None:
        self.reasons = reasons
        super().__init__("; ".join(f"rank {rank}: {reason}" for rank, reason in reasons))


class BuildError(RuntimeError):
    """The proxy could not be built or its cached file could not be trusted."""
