"""Tells late from dead by the wall clock, fails the whole group, and finds the one root cause."""

import logging
from dataclasses import dataclass, field

from tetraspark.collectives import native
from tetraspark.collectives.diagnose import Verdict, View, diagnose
from tetraspark.collectives.endpoint import Endpoint
from tetraspark.collectives.failure import CollectiveError, Failure, Kind, root_of
from tetraspark.collectives.layout import Layout
from tetraspark.collectives.liveness import Life
from tetraspark.collectives.settings import Settings
from tetraspark.collectives.transport import Phase, Transport

log = logging.getLogger(__name__)

FIRST_REPORT_S = 1.0
REPORT_EVERY_S = 30.0

KINDS = {
    native.MISMATCH: Kind.MISMATCH,
    native.DIVERGED: Kind.DIVERGED,
    native.LANE_ERROR: Kind.LANE,
    native.OVERFLOW: Kind.LANE,
    native.STALE_HEADER: Kind.LOST,
}


@dataclass
class Wait:
    """The wait for one sequence; `verdicts` holds each peer's kind and since when it holds."""

    sequence: int
    since: float
    next_look: float
    next_report: float
    verdicts: dict[int, tuple[Kind, float]] = field(default_factory=dict)


@dataclass
class Lateness:
    """What is remembered of a peer's late arrivals."""

    count: int = 0
    longest_s: float = 0.0
    last: str = ""


class Supervisor:
    """Called whenever an operation is not over; costs nothing while they are quick.

    A failing rank leaves one record with every rank and never changes it: its own finding, or
    an empty one when it stops because of another's. All ranks take the root from the same
    records, so all name the same one.
    """

    def __init__(
        self, rank: int, settings: Settings, layout: Layout, transport: Transport, link: Endpoint
    ) -> None:
        self._rank = rank
        self._settings = settings
        self._layout = layout
        self._transport = transport
        self._endpoint = link
        self._peers = [peer for peer in range(layout.world) if peer != rank]
        self._wait: Wait | None = None
        self._limits = {
            Kind.DEAD: 0.0,
            Kind.CLOSED: 0.0,
            # Seen at two looks, so that a flag on its way is not called lost.
            Kind.LOST: settings.notice_s,
            Kind.LANE: settings.ack_limit_s,
            Kind.FROZEN: settings.freeze_limit_s,
            Kind.LATE: settings.late_limit_s,
        }
        self._settle_until: float | None = None
        self._next_roll_call = 0.0
        self._own: Failure | None = None
        self.root: Failure | None = None
        self.late = {peer: Lateness() for peer in self._peers}

    @property
    def settling(self) -> bool:
        """Whether the group has failed and the root is being agreed on."""
        return self._settle_until is not None

    def step(self, state: int) -> None:
        """Look at an operation that `state` says is not done. Raises CollectiveError."""
        now = self._transport.now()
        if self._settle_until is None:
            self._look(state, now)
        if self._settle_until is not None:
            self._settle(now)

    def inspect(self) -> None:
        """Look at the group from outside an operation, or while a kernel runs one.

        Raises CollectiveError once the group has failed. May be called in a loop: processes are
        looked up at most once every `notice_s`.
        """
        if self.root is not None:
            raise CollectiveError(self.root, self._rank)
        now = self._transport.now()
        if self._settle_until is None:
            busy = native.PENDING if self._endpoint.busy else native.DONE
            self._look(native.FAILED if self._endpoint.state.failed else busy, now)
        if self._settle_until is None and now >= self._next_roll_call:
            self._next_roll_call = now + self._settings.notice_s
            self._look_for_dead()
        if self._settle_until is not None:
            self._settle(now)

    def _look_for_dead(self) -> None:
        for peer in self._peers:
            if self._transport.life(peer) is Life.DEAD and not self._closed(peer):
                self.fail(Kind.DEAD, peer, -1, "its process is gone")

    def fail(self, kind: Kind, peer: int, lane: int, detail: str) -> None:
        """Make the whole group fail with this rank's finding; only the first one counts."""
        if self._settle_until is None:
            own = self._endpoint
            self._own = Failure(kind, self._rank, peer, lane, own.sequence, own.nbytes(), detail)
            self._stop(self._own.to_bytes())

    def _stop(self, record: bytes) -> None:
        self._settle_until = self._transport.now() + self._settings.settle_s
        self._transport.leave_record(record)

    def _adopt(self) -> bool:
        if not self._records():
            return False
        self._stop(b"")
        return True

    def _records(self) -> dict[int, Failure | None]:
        found: dict[int, Failure | None] = {}
        for peer in self._peers:
            data = self._endpoint.read_record(self._layout.record_at(peer))
            if data is not None:
                found[peer] = Failure.from_bytes(data) if data else None
        return found

    def _look(self, state: int, now: float) -> None:
        if self._adopt():
            return
        if state == native.FAILED:
            found = self._endpoint.state.failure
            detail = self._endpoint.describe_failure()
            self.fail(KINDS[found.kind], found.peer, found.lane, detail)
        elif state == native.PENDING:
            self._watch(now)

    def _watch(self, now: float) -> None:
        sequence = self._endpoint.sequence
        if self._wait is None or self._wait.sequence != sequence:
            notice = now + self._settings.notice_s
            self._wait = Wait(sequence, now, notice, now + FIRST_REPORT_S)
        wait = self._wait
        if now < wait.next_look:
            return
        wait.next_look = now + self._settings.notice_s / 2
        for peer in self._peers:
            view = self._view(peer)
            if view.missing or view.unacked or self._flags_all_here(view):
                self._judge(wait, peer, diagnose(view), now)
        if now >= wait.next_report:
            wait.next_report = now + REPORT_EVERY_S

    def _flags_all_here(self, view: View) -> bool:
        """Say whether a kernel has all it waits for and does not go on."""
        return self._endpoint.busy and not any(map(self._endpoint.missing, self._peers))

    def _view(self, peer: int) -> View:
        own = self._endpoint
        # The peer's own account first, so that a flag set in between counts as here.
        theirs = self._transport.seen(peer)
        life = self._transport.life(peer)
        lanes = own.lanes_to(peer)
        return View(
            peer=peer,
            sequence=own.sequence,
            missing=tuple(lanes[stripe] for stripe in own.missing(peer)),
            doorbell=own.progress.doorbell,
            posted=own.progress.posted,
            acked=own.acked(peer),
            life=life,
            theirs=theirs,
        )

    def _judge(self, wait: Wait, peer: int, verdict: Verdict, now: float) -> None:
        waited = now - wait.since
        late = self.late[peer]
        late.count += peer not in wait.verdicts
        late.longest_s = max(late.longest_s, waited)
        late.last = verdict.text
        if wait.verdicts.get(peer, (None, 0.0))[0] is not verdict.kind:
            wait.verdicts[peer] = (verdict.kind, now)
        held = now - wait.verdicts[peer][1]
        if held >= self._limits[verdict.kind]:
            self.fail(verdict.kind, peer, verdict.lane, f"{verdict.text} ({waited:.1f} s)")
        elif waited >= self._settings.late_limit_s:
            self.fail(Kind.LATE, peer, verdict.lane, f"{verdict.text} ({waited:.1f} s)")
        elif now >= wait.next_report:
            words = (self._rank, waited, peer, wait.sequence, verdict.text)
            log.warning("rank %d has waited %.1f s for rank %d at sequence %d: %s", *words)

    def _settle(self, now: float) -> None:
        assert self._settle_until is not None
        records = self._records()
        findings = [found for found in (*records.values(), self._own) if found is not None]
        blamed = {found.peer for found in findings}
        awaited = [
            peer
            for peer in self._peers
            if peer not in records
            and not (peer in blamed and self._transport.life(peer) is not Life.RUNNING)
            and self._transport.life(peer) is not Life.DEAD
            and not self._closed(peer)
        ]
        if awaited and now < self._settle_until:
            return
        self.root = root_of(findings) if findings else self._unexplained()
        raise CollectiveError(self.root, self._rank)

    def _unexplained(self) -> Failure:
        own = self._endpoint
        words = "the group was aborted and no rank left a reason"
        return Failure(
            Kind.INTERRUPTED, self._rank, self._rank, -1, own.sequence, own.nbytes(), words
        )

    def _closed(self, peer: int) -> bool:
        seen = self._transport.seen(peer)
        return seen is not None and seen.phase == Phase.CLOSING
