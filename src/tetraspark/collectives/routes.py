"""Which lanes carry a pair's stripes, in which order."""

from dataclasses import dataclass
from itertools import combinations

MAX_WORLD = 8
MAX_LANES = 4


@dataclass(frozen=True)
class Routes:
    """Lanes of every pair of ranks: stripe i of a payload goes over the pair's i-th lane.

    `pairs` maps (low rank, high rank) to distinct lane numbers below `lanes`; both ends use the
    same list. Raises ValueError if a pair is missing, has no lane, or names one twice.
    """

    world: int
    lanes: int
    pairs: tuple[tuple[tuple[int, int], tuple[int, ...]], ...]

    def __post_init__(self) -> None:
        if not 2 <= self.world <= MAX_WORLD:
            raise ValueError(f"world {self.world} is outside 2..{MAX_WORLD}")
        if not 1 <= self.lanes <= MAX_LANES:
            raise ValueError(f"{self.lanes} lanes: wanted 1..{MAX_LANES}")
        if [pair for pair, _ in self.pairs] != list(combinations(range(self.world), 2)):
            raise ValueError("routes must name every pair of ranks once, in ascending order")
        for pair, order in self.pairs:
            if not order or len(set(order)) != len(order):
                raise ValueError(f"pair {pair}: lanes {order} must be distinct and at least one")
            if not all(0 <= lane < self.lanes for lane in order):
                raise ValueError(f"pair {pair}: lanes {order} must be below {self.lanes}")

    @classmethod
    def uniform(cls, world: int, lanes: int) -> "Routes":
        """Give every pair all lanes; the first lane rotates, so that odd stripes spread."""
        pairs = tuple(
            (pair, tuple((sum(pair) + i) % lanes for i in range(lanes)))
            for pair in combinations(range(world), 2)
        )
        return cls(world, lanes, pairs)

    def between(self, rank: int, peer: int) -> tuple[int, ...]:
        """Return the ordered lanes of a pair."""
        wanted = (min(rank, peer), max(rank, peer))
        return next(order for pair, order in self.pairs if pair == wanted)


def stripe_units(units: int, stripes: int) -> tuple[int, ...]:
    """Split `units` 16-byte units over stripes; the first ones take the remainder."""
    return tuple(units // stripes + (i < units % stripes) for i in range(stripes))
