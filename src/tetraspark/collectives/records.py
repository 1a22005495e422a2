"""Failure records: one a rank, written once, from which all ranks take the same root."""

from tetraspark.collectives.endpoint import Endpoint
from tetraspark.collectives.failure import Failure, Kind, root_of
from tetraspark.collectives.layout import Layout
from tetraspark.collectives.liveness import Life
from tetraspark.collectives.transport import Phase, Transport


class Records:
    """What this rank and its peers left when the group failed.

    A record is the rank's own finding, or empty when it stopped because of another's. It is
    never changed, so ranks that see the same records agree on the root.
    """

    def __init__(self, rank: int, layout: Layout, transport: Transport, link: Endpoint) -> None:
        self._rank = rank
        self._layout = layout
        self._transport = transport
        self._endpoint = link
        self._peers = [peer for peer in range(layout.world) if peer != rank]
        self._own: Failure | None = None

    def leave(self, finding: Failure | None) -> None:
        """Leave this rank's record with everyone and raise the alarm."""
        self._own = finding
        self._transport.leave_record(finding.to_bytes() if finding else b"")

    def of_peers(self) -> dict[int, Failure | None]:
        """Return the records that have arrived; None for an empty one."""
        found: dict[int, Failure | None] = {}
        for peer in self._peers:
            data = self._endpoint.read_record(self._layout.record_at(peer))
            if data is not None:
                found[peer] = self._read(peer, data)
        return found

    def _read(self, peer: int, data: bytes) -> Failure | None:
        """Return a record; one that cannot be read is a finding of this rank's own."""
        try:
            return Failure.from_bytes(data) if data else None
        except ValueError as error:
            own, words = self._endpoint, f"it left {error}"
            return Failure(
                Kind.INTERRUPTED, self._rank, peer, -1, own.sequence, own.nbytes(), words
            )

    def awaited(self) -> list[int]:
        """Return the peers that have left none and still could."""
        found = self.of_peers()
        blamed = {one.peer for one in (*found.values(), self._own) if one is not None}
        return [
            peer for peer in self._peers if peer not in found and self._could(peer, peer in blamed)
        ]

    def _could(self, peer: int, blamed: bool) -> bool:
        life = self._transport.life(peer)
        if life is Life.DEAD or (blamed and life is not Life.RUNNING):
            return False
        return not self.closed(peer)

    def closed(self, peer: int) -> bool:
        """Say whether a peer has said goodbye."""
        seen = self._transport.seen(peer)
        return seen is not None and seen.phase == Phase.CLOSING

    def root(self) -> Failure:
        """Return the root among everything that was left."""
        found = [one for one in (*self.of_peers().values(), self._own) if one is not None]
        if found:
            return root_of(found)
        own, words = self._endpoint, "the group was aborted and no rank left a reason"
        return Failure(
            Kind.INTERRUPTED, self._rank, self._rank, -1, own.sequence, own.nbytes(), words
        )
