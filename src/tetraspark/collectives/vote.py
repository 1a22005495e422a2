"""Before anything is set up, every rank says what it has; one that cannot take part stops all."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from tetraspark.collectives.failure import RefusedError
from tetraspark.collectives.message import built, seal, unseal


@dataclass(frozen=True)
class Ballot:
    """One rank's word. All but `rank` and `refusal` must be equal on every rank.

    `protocol` and `proxy` (hash of its source) are versions; `settings` are the shared ones;
    `settings_digest` is their hash; `refusal` says why this rank cannot take part, or "".
    """

    rank: int
    world: int
    protocol: int
    abi: int
    proxy: str
    transport: str
    dtypes: tuple[str, ...]
    settings: dict[str, object]
    settings_digest: str
    refusal: str = ""

    def to_bytes(self) -> bytes:
        """Encode for the exchange."""
        return seal("ballot", asdict(self))

    @classmethod
    def from_bytes(cls, data: bytes) -> "Ballot":
        """Decode. Raises ValueError if it is not a ballot of this version."""
        found = unseal("ballot", data)
        if isinstance(found.get("dtypes"), list):
            found["dtypes"] = tuple(found["dtypes"])
        return built(cls, "ballot", found)


def count(votes: Sequence[bytes]) -> list[Ballot]:
    """Return all ballots if the ranks agree. Raises RefusedError with every reason, by rank."""
    ballots: list[Ballot] = []
    reasons: list[tuple[int, str]] = []
    for rank, vote in enumerate(votes):
        try:
            ballots.append(Ballot.from_bytes(vote))
        except ValueError as error:
            reasons.append((rank, f"cannot be understood: {error}"))
    if reasons:
        raise RefusedError(reasons)
    reasons = [(ballot.rank, ballot.refusal) for ballot in ballots if ballot.refusal]
    for rank, ballot in enumerate(ballots):
        if ballot.rank != rank or ballot.world != len(votes):
            said = f"rank {ballot.rank} of {ballot.world}"
            reasons.append((rank, f"says it is {said}, it is rank {rank} of {len(votes)}"))
        reasons += [(rank, text) for text in differences(ballots[0], ballot)]
    if reasons:
        raise RefusedError(reasons)
    return ballots


def differences(first: Ballot, other: Ballot) -> list[str]:
    """Name every field in which a ballot differs from that of rank 0."""
    if first.refusal or other.refusal:
        return []
    one, two = _flat(first), _flat(other)
    return [
        f"{name} is {two.get(name)!r}, rank 0 has {one.get(name)!r}"
        for name in sorted(one.keys() | two.keys())
        if one.get(name) != two.get(name)
    ]


def _flat(ballot: Ballot) -> dict[str, object]:
    found = asdict(ballot)
    for name in ("rank", "refusal", "settings", "settings_digest"):
        del found[name]
    return found | {f"settings.{name}": value for name, value in ballot.settings.items()}


def unanimous(verdicts: Sequence[bytes]) -> None:
    """Check a later round: each rank sends "" or its reason. Raises RefusedError."""
    reasons = [(rank, text.decode(errors="replace")) for rank, text in enumerate(verdicts) if text]
    if reasons:
        raise RefusedError(reasons)
