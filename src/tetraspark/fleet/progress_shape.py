"""What a communicator writes of itself (collectives/report.py), as far as it is read back."""

from pydantic import Field

from tetraspark.fleet.record_file import Shape


class Root(Shape):
    """The rank that a communicator names as the cause of its failure."""

    peer: int
    kind: str
    detail: str


class Late(Shape):
    """How often a peer was late."""

    count: int


class PeerLane(Shape):
    """What this rank posted on one lane to a peer."""

    lane: int
    bytes: int
    writes: int


class Peer(Shape):
    """A peer, as this rank sees it."""

    rank: int
    late: Late
    lanes: list[PeerLane]


class Device(Shape):
    """A network device, with its own counters."""

    device: str
    counters: dict[str, int | float] = Field(default_factory=dict)


class Lane(Shape):
    """A lane's own account; what a transport does not tell is not there."""

    lane: int
    peer: int
    stalls: int | float


class Details(Shape):
    """What a transport says of itself."""

    devices: list[Device] = Field(default_factory=list)
    lanes: list[Lane] = Field(default_factory=list)


class StoredProgress(Shape):
    """rankN.collectives.json."""

    transport: str
    verdict: str
    root: Root | None = None
    peers: list[Peer] = Field(default_factory=list)
    details: Details | None = None
