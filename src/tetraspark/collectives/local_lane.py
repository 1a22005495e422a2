"""The device a node uses for a lane: what the site asks for, what was found, why it is refused."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from tetraspark.collectives.gid import Address, Gid, choose_gid, parse_address
from tetraspark.collectives.port import ACTIVE, Port

MTUS = (256, 512, 1024, 2048, 4096)
"""The RDMA MTUs there are, in bytes (InfiniBand specification; `enum ibv_mtu`)."""

DEVICE_PORT = re.compile(r"([A-Za-z0-9][A-Za-z0-9_.-]{0,62})(?::([1-9][0-9]{0,2}))?")
"""A device's name is a folder of sysfs, of at most 63 characters; ports are counted from 1."""

REFUSAL = re.compile(
    r"node (?P<node>[^\s,]+), device (?P<device>[^\s:]+): (?P<seen>.*?); wanted: (?P<wanted>.*?)"
    r"(?=; node [^\s,]+, device [^\s:]+: |$)",
    re.DOTALL,
)
"""A refusal as it is written, among others joined by `; `."""


@dataclass(frozen=True)
class Choice:
    """What a site says of one device: its name, and port and address where they are not plain."""

    device: str
    port: int | None = None
    address: Address | None = None

    @classmethod
    def parse(cls, text: str) -> "Choice":
        """Parse `DEVICE[:PORT][@ADDRESS]`. Raises ValueError."""
        name, at, address = text.partition("@")
        match = DEVICE_PORT.fullmatch(name)
        if match is None:
            raise ValueError(f"{text!r} is not DEVICE[:PORT][@ADDRESS]")
        port = int(match[2]) if match[2] else None
        return cls(match[1], port, parse_address(address) if at else None)

    def __str__(self) -> str:
        port = f":{self.port}" if self.port is not None else ""
        address = f"@{self.address}" if self.address is not None else ""
        return f"{self.device}{port}{address}"


@dataclass(frozen=True)
class Refusal:
    """Why a device cannot carry a lane."""

    node: str
    device: str
    seen: str
    wanted: str

    def __str__(self) -> str:
        return f"node {self.node}, device {self.device}: {self.seen}; wanted: {self.wanted}"

    @classmethod
    def parse_all(cls, text: str) -> list["Refusal"]:
        """Return the refusals that a reason of another rank holds; [] if it is of another kind."""
        return [cls(**match.groupdict()) for match in REFUSAL.finditer(text)]


class LaneRefusedError(ValueError):
    """A node's devices cannot be used; `refusals` says which and why, all of them."""

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        super().__init__("; ".join(map(str, refusals)))
        self.refusals = tuple(refusals)


@dataclass(frozen=True)
class LocalLane:
    """A device that passed every check, with the GID it has at this moment; `mtu` in bytes."""

    device: str
    port: int
    gid: Gid
    mtu: int
    domain: str | None


def find_lane(
    node: str, choice: Choice, ports: Sequence[Port], mtus: Mapping[int, int], min_mtu: int
) -> LocalLane:
    """Check one device; `mtus` are the active RDMA MTUs by port number, in bytes.

    Raises LaneRefusedError with everything that is wrong.
    """
    port = _port(node, choice, ports)
    found: list[Refusal] = []

    def refuse(seen: str, wanted: str) -> None:
        found.append(Refusal(node, choice.device, seen, wanted))

    if port.link_layer != "Ethernet":
        refuse(f"link layer {port.link_layer}", "Ethernet")
    if port.state != ACTIVE:
        refuse(f"port {port.number} is {port.state}", f"state {ACTIVE}")
    mtu = mtus.get(port.number, 0)
    if mtu < min_mtu:
        refuse(f"active RDMA MTU {mtu}", f"at least {min_mtu} (the netdev needs 104 more)")
    gid = None
    try:
        gid = choose_gid(port.gids, choice.address)
    except ValueError as error:
        refuse(*error.args)
    if found or gid is None:
        raise LaneRefusedError(found)
    return LocalLane(choice.device, port.number, gid, mtu, port.domain)


def _port(node: str, choice: Choice, ports: Sequence[Port]) -> Port:
    numbers = [port.number for port in ports]
    wanted = choice.port if choice.port is not None else numbers[0] if len(numbers) == 1 else None
    for port in ports:
        if port.number == wanted:
            return port
    text = f"port {choice.port}" if choice.port is not None else "the site to name one port"
    raise LaneRefusedError([Refusal(node, choice.device, f"ports {numbers}", text)])


def check_domains(
    node: str, lanes: Sequence[LocalLane], used_together: Iterable[Sequence[int]]
) -> list[str]:
    """Refuse two lanes to one peer that share a PCI domain, whose one link they would halve.

    `used_together` are the device indices of each peer's lanes. Returns the devices that are not
    on PCI, about which nothing can be said. Raises LaneRefusedError.
    """
    found = {}
    for one, other in (pair for group in used_together for pair in combinations(group, 2)):
        first, second = lanes[one], lanes[other]
        if one != other and first.domain is not None and first.domain == second.domain:
            seen = f"PCI domain {second.domain}, which {first.device} has too"
            wanted = "a domain of its own for each lane to a peer"
            found[second.device] = Refusal(node, second.device, seen, wanted)
    if found:
        raise LaneRefusedError(list(found.values()))
    return [lane.device for lane in lanes if lane.domain is None]
