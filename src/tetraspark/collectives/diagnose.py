"""Why has a peer's stripe not arrived? A pure table over what both sides last said."""

from dataclasses import dataclass

from tetraspark.collectives.failure import Kind
from tetraspark.collectives.liveness import Life
from tetraspark.collectives.transport import Phase, Seen


@dataclass(frozen=True)
class View:
    """One rank's knowledge while it waits for `peer` at `sequence`.

    `missing` are the lanes whose stripe is absent; `doorbell` and `posted` are our own;
    `acked` maps each lane of the route to the last sequence the peer's end acknowledged.
    """

    peer: int
    sequence: int
    missing: tuple[int, ...]
    doorbell: int
    posted: int
    acked: dict[int, int]
    life: Life
    theirs: Seen | None

    @property
    def unacked(self) -> tuple[int, ...]:
        """Lanes that still owe an acknowledgement of a write we posted."""
        if behind(self.posted, self.sequence):
            return ()
        return tuple(lane for lane, last in self.acked.items() if behind(last, self.sequence))


@dataclass(frozen=True)
class Verdict:
    """What a wait means: the failure it becomes once the limit of its kind has passed.

    `lane` -1: no single lane is to blame.
    """

    kind: Kind
    lane: int
    text: str


def behind(one: int, other: int) -> bool:
    """Say whether sequence `one` comes before `other`, across the wrap at 2**32."""
    return 0 < (other - one) % (1 << 32) < 1 << 31


def diagnose(view: View) -> Verdict:
    """Return the verdict on one peer; gone processes first, then our side, then theirs."""
    if view.life is Life.DEAD:
        return Verdict(Kind.DEAD, -1, "its process is gone")
    if view.life is Life.STOPPED:
        return Verdict(Kind.FROZEN, -1, "its process is stopped")
    if behind(view.doorbell, view.sequence):
        return Verdict(Kind.LATE, -1, "our own operation has not been started")
    if behind(view.posted, view.sequence):
        return Verdict(Kind.LATE, -1, "our own proxy is starved: started, not posted")
    if view.unacked:
        return Verdict(Kind.LANE, view.unacked[0], "our write to it is not acknowledged")
    if not view.missing:
        return Verdict(Kind.LATE, -1, "every flag is here and the operation has not seen them")
    return _theirs(view)


def _theirs(view: View) -> Verdict:
    theirs = view.theirs
    if theirs is None:
        return Verdict(Kind.LATE, -1, "it has not reported: late, or its proxy is starved")
    if behind(theirs.doorbell, view.sequence):
        if theirs.phase == Phase.CLOSING:
            return Verdict(Kind.CLOSED, -1, "it closed the group")
        return Verdict(Kind.LATE, -1, f"it is late: it has begun {theirs.doorbell}")
    if behind(theirs.posted, view.sequence):
        return Verdict(Kind.LATE, -1, "its proxy is starved: started, not posted")
    for lane in view.missing:
        if behind(theirs.acked[lane], view.sequence):
            return Verdict(Kind.LANE, lane, "its write to us is not acknowledged")
    return Verdict(
        Kind.LOST, view.missing[0], "its write was acknowledged and the flag is not here"
    )
