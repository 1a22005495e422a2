"""Everything a group can be told, checked at construction."""

import hashlib
import json
from dataclasses import asdict, dataclass

from tetraspark.collectives.algorithm import Algorithm
from tetraspark.collectives.flags import MAX_SEQUENCE, MAX_UNITS, UNIT
from tetraspark.collectives.routes import MAX_LANES, Routes

LOCAL = frozenset({"spins", "yields"})
"""Settings that change only how one rank waits; all others must be equal on every rank."""


@dataclass(frozen=True)
class Settings:
    """Sizes in bytes, limits in seconds of wall clock.

    `max_two_shot_bytes`: largest tensor of a two-shot all-reduce or a reduce-scatter; 0: neither.
    `two_shot_from`: an all-reduce of that size or more goes two-shot where it fits and the caller
    does not choose; None: never.
    `late_limit_s`: a peer that lives but does not come. `freeze_limit_s`: a stopped process.
    `ack_limit_s`: a write no lane acknowledges. `notice_s`: a wait shorter than this costs
    nothing but the wait. `settle_s`: time given to peers to leave their own findings.
    `delivery`: "pull" reads peers' send slots in place (shared memory only), "push" copies into
    their receive slots. `routes`: None gives every pair all `lanes`. `spins`, `yields`: looks
    before a wait gives its core away, and before it sleeps; None chooses from the core count.
    """

    max_reduce_bytes: int = 2 << 20
    max_gather_bytes: int = 1 << 20
    max_two_shot_bytes: int = 0
    two_shot_from: int | None = None
    lanes: int = 1
    delivery: str = "pull"
    routes: Routes | None = None
    start_sequence: int = 0
    late_limit_s: float = 300.0
    freeze_limit_s: float = 20.0
    ack_limit_s: float = 5.0
    notice_s: float = 0.05
    settle_s: float = 0.5
    close_limit_s: float = 2.0
    spins: int | None = None
    yields: int | None = None

    def __post_init__(self) -> None:
        for name in ("max_reduce_bytes", "max_gather_bytes"):
            value = getattr(self, name)
            if value % UNIT or not UNIT <= value <= MAX_UNITS * UNIT:
                raise ValueError(f"{name} {value}: wanted a multiple of 16 up to 256 MiB")
        self._check_two_shot()
        if not 1 <= self.lanes <= MAX_LANES:
            raise ValueError(f"lanes {self.lanes}: wanted 1..{MAX_LANES}")
        if self.delivery not in ("pull", "push"):
            raise ValueError(f"delivery {self.delivery!r}: wanted 'pull' or 'push'")
        if not 0 <= self.start_sequence <= MAX_SEQUENCE:
            raise ValueError(f"start_sequence {self.start_sequence} does not fit 32 bits")
        for name in ("late", "freeze", "ack", "close"):
            if getattr(self, f"{name}_limit_s") <= 0:
                raise ValueError(f"{name}_limit_s must be positive")
        if not 0 < self.settle_s <= 1 or not 0 < self.notice_s <= 1:
            raise ValueError("settle_s and notice_s must be above 0 and at most 1 second")
        for name in LOCAL:
            if getattr(self, name) is not None and getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative")

    def _check_two_shot(self) -> None:
        largest, start = self.max_two_shot_bytes, self.two_shot_from
        if largest % UNIT or not 0 <= largest <= MAX_UNITS * UNIT:
            raise ValueError(
                f"max_two_shot_bytes {largest}: wanted 0 or a multiple of 16 up to 256 MiB"
            )
        if start is not None and not 0 < start <= largest:
            raise ValueError(
                f"two_shot_from {start}: wanted None or 1 to max_two_shot_bytes, {largest}"
            )

    def algorithm_for(self, nbytes: int) -> Algorithm:
        """Return how an all-reduce of this size goes where its caller does not choose."""
        start = self.two_shot_from
        if start is not None and start <= nbytes <= self.max_two_shot_bytes:
            return Algorithm.TWO_SHOT
        return Algorithm.ONE_SHOT

    def routes_for(self, world: int) -> Routes:
        """Return the route table. Raises ValueError if the configured one is for another group."""
        routes = self.routes or Routes.uniform(world, self.lanes)
        if routes.world != world or routes.lanes != self.lanes:
            raise ValueError(
                f"routes are for {routes.world} ranks and {routes.lanes} lanes, "
                f"the group has {world} ranks and {self.lanes} lanes"
            )
        return routes

    def shared(self) -> dict[str, object]:
        """Return what every rank must agree on, JSON-able."""
        fields = {name: value for name, value in asdict(self).items() if name not in LOCAL}
        return dict(json.loads(json.dumps(fields)))

    def digest(self) -> str:
        """Return the hash of `shared`, for receipts."""
        return hashlib.sha256(json.dumps(self.shared(), sort_keys=True).encode()).hexdigest()
