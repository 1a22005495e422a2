"""Tells late from dead by the wall clock, fails the whole group, and finds the one root cause."""

import logging
import threading
from dataclasses import dataclass, field

from tetraspark.collectives import native
from tetraspark.collectives.diagnose import Verdict, View, diagnose
from tetraspark.collectives.endpoint import Endpoint
from tetraspark.collectives.failure import CollectiveError, Failure, Kind
from tetraspark.collectives.layout import Layout
from tetraspark.collectives.liveness import Life
from tetraspark.collectives.records import Records
from tetraspark.collectives.settings import Settings
from tetraspark.collectives.transport import Transport

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

    A rank that fails stops the others, waits a moment for their findings, and raises the root
    that all of them raise.
    """

    def __init__(
        self, rank: int, settings: Settings, layout: Layout, transport: Transport, link: Endpoint
    ) -> None:
        self._rank = rank
        self._settings = settings
        self._transport = transport
        self._endpoint = link
        self._records = Records(rank, layout, transport, link)
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
        # A watchdog's thread may find what the rank's own thread finds.
        self._first = threading.RLock()
        self._next_roll_call = 0.0
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
            state = self._endpoint.poll()
            kernel = state == native.DONE and self._endpoint.busy
            self._look(native.PENDING if kernel else state, now)
        if self._settle_until is None and now >= self._next_roll_call:
            self._next_roll_call = now + self._settings.notice_s
            self._look_for_dead()
        if self._settle_until is not None:
            self._settle(now)

    def _look_for_dead(self) -> None:
        for peer in self._peers:
            if self._transport.life(peer) is Life.DEAD and not self._records.closed(peer):
                self.fail(Kind.DEAD, peer, -1, "its process is gone")

    def fail(self, kind: Kind, peer: int, lane: int, detail: str) -> None:
        """Make the whole group fail with this rank's finding; only the first one counts.

        Like `heard`, it may be called from any thread.
        """
        own = self._endpoint
        self._stop(Failure(kind, self._rank, peer, lane, own.sequence, own.nbytes(), detail))

    def heard(self) -> Failure | None:
        """Return the root once the group has failed and all have left their findings, else None.

        Looks only at what the ranks have left, not at the operation.
        """
        if self.root is None and (self.settling or self._adopt()):
            self._conclude(self._transport.now())
        return self.root

    def _stop(self, finding: Failure | None) -> None:
        with self._first:
            if self._settle_until is None:
                self._settle_until = self._transport.now() + self._settings.settle_s
                self._records.leave(finding)

    def _adopt(self) -> bool:
        if not self._records.of_peers():
            return False
        self._stop(None)
        return True

    def _look(self, state: int, now: float) -> None:
        if self._adopt():
            return
        if state == native.FAILED:
            found = self._endpoint.state.failure
            detail = self._endpoint.describe_failure()
            self.fail(KINDS[found.kind], found.peer, found.lane, detail)
            return
        broken = self._transport.finding()
        if broken is not None:
            self.fail(broken.kind, broken.peer, broken.lane, broken.detail)
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
        self._conclude(now)
        if self.root is not None:
            raise CollectiveError(self.root, self._rank)

    def _conclude(self, now: float) -> None:
        with self._first:
            assert self._settle_until is not None
            if self.root is None and (now >= self._settle_until or not self._records.awaited()):
                self.root = self._records.root()
