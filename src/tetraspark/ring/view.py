"""What a node answered about a plan: every object's state, the journal, the surroundings. Pure."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

State = Literal["present", "different", "missing", "not-in-hardware", "conflict", "no-link"]


@dataclass(frozen=True)
class ObjectState:
    """One planned object as it is on a node; `owned` when the node's journal says it is ours."""

    key: str
    kind: str
    state: State
    detail: str
    owned: bool


@dataclass(frozen=True)
class HairpinState:
    """The queues of a function: `in effect`, `pending`, `different` or `failed`."""

    netdev: str
    pci: str
    state: str
    detail: str


@dataclass(frozen=True)
class JournalState:
    """What is applied on a node. `seconds_left` is None once confirmed.

    `timer` says whether the process that would undo it runs; `this_boot` whether it was applied
    or restored since the node booted.
    """

    plan: str
    token: str
    phase: str
    seconds_left: float | None
    timer: bool
    this_boot: bool
    owned: tuple[str, ...]
    adopted: tuple[str, ...]


@dataclass(frozen=True)
class Identity:
    """What a receipt is bound to: MAC addresses by device, firmware by RDMA device, kernel."""

    macs: Mapping[str, str]
    firmware: Mapping[str, str | None]
    kernel: str


@dataclass(frozen=True)
class NodeView:
    """A node as it answered. `leftovers` are files of others that speak of the ring's devices.

    `later` are those of them that would overrule our netplan file. `gids` are the indices of the
    planned addresses by RDMA device, None where there is none. `last` is the last rollback.
    """

    node: str
    objects: tuple[ObjectState, ...]
    files: tuple[ObjectState, ...]
    hairpin: tuple[HairpinState, ...]
    journal: JournalState | None
    last: Mapping[str, Any] | None
    leftovers: tuple[str, ...]
    later: tuple[str, ...]
    ip_forward: str | None
    forward_policy: str | None
    gids: Mapping[str, int | None]
    identity: Identity

    @classmethod
    def of(cls, node: str, answer: Mapping[str, Any]) -> Self:
        """Return the view of an answer to `look`. Raises KeyError, TypeError."""
        journal = answer["journal"]
        sequences = ("owned", "adopted")
        around = answer["surroundings"]
        return cls(
            node=node,
            objects=tuple(ObjectState(**one) for one in answer["objects"]),
            files=tuple(ObjectState(**one) for one in answer["files"]),
            hairpin=tuple(
                HairpinState(one["netdev"], one["pci"], one["state"], one["detail"])
                for one in answer["hairpin"]
            ),
            journal=None
            if journal is None
            else JournalState(**journal | {name: tuple(journal[name]) for name in sequences}),
            last=answer["last"],
            leftovers=tuple(answer["leftovers"]),
            later=tuple(answer["later"]),
            ip_forward=around["ip_forward"],
            forward_policy=around["forward_policy"],
            gids=answer["gids"],
            identity=Identity(**answer["identity"]),
        )

    @property
    def wrong(self) -> tuple[ObjectState, ...]:
        """The objects that are not as planned."""
        return tuple(one for one in self.objects if one.state != "present")

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON-able values."""
        return asdict(self)
