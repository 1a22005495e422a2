"""Find the devices a rank's wiring names, each with the GID and MTU it has at this moment."""

import ctypes
from dataclasses import dataclass
from pathlib import Path

from tetraspark.collectives.local_lane import (
    Choice,
    LaneRefusedError,
    LocalLane,
    Refusal,
    check_domains,
    find_lane,
)
from tetraspark.collectives.port import SYSFS, device_names, read_ports
from tetraspark.collectives.verbs_native import verbs
from tetraspark.collectives.verbs_options import VerbsOptions
from tetraspark.collectives.wiring import Wiring


@dataclass(frozen=True)
class Devices:
    """A rank's devices by their index: those that passed every check, and why others did not.

    `unchecked` names those about whose PCI domain nothing is known.
    """

    usable: dict[int, LocalLane]
    absent: dict[int, tuple[Refusal, ...]]
    unchecked: list[str]


def find_devices(wiring: Wiring, rank: int, options: VerbsOptions, root: Path = SYSFS) -> Devices:
    """Look at the rank's devices. Raises BuildError without libibverbs.

    Raises LaneRefusedError, with every device's problems, where too few lanes to a peer are left.
    """
    node = wiring.nodes[rank]
    usable: dict[int, LocalLane] = {}
    absent: dict[int, tuple[Refusal, ...]] = {}
    for index, choice in enumerate(wiring.devices[rank]):
        try:
            usable[index] = _find(node, choice, options.min_mtu, root)
        except LaneRefusedError as error:
            absent[index] = error.refusals
    groups = wiring.used_together(rank)
    left = [tuple(index for index in group if index in usable) for group in groups]
    if any(
        len(some) < options.needed(len(group)) for some, group in zip(left, groups, strict=True)
    ):
        raise LaneRefusedError([refusal for one in absent.values() for refusal in one])
    places = {index: place for place, index in enumerate(usable)}
    together = [tuple(places[index] for index in group) for group in left]
    return Devices(usable, absent, check_domains(node, list(usable.values()), together))


def _find(node: str, choice: Choice, min_mtu: int, root: Path) -> LocalLane:
    try:
        ports = read_ports(choice.device, root)
    except FileNotFoundError as error:
        seen = ", ".join(device_names(root)) or "no RDMA device at all"
        refusal = Refusal(node, choice.device, f"it is not there; there is {seen}", "this device")
        raise LaneRefusedError([refusal]) from error
    mtus = {port.number: active_mtu(choice.device, port.number) for port in ports}
    return find_lane(node, choice, ports, mtus, min_mtu)


def active_mtu(device: str, port: int) -> int:
    """Ask the device; bytes. Raises OSError when it cannot be opened."""
    mtu = int(verbs().tv_port_mtu(device.encode(), port))
    if not mtu:
        number = ctypes.get_errno()
        raise OSError(number, f"{device} port {port} cannot be asked; is /dev/infiniband open?")
    return mtu


COUNTERS = (
    "counters/port_xmit_data",
    "counters/port_rcv_data",
    "counters/port_xmit_discards",
    "counters/link_downed",
    "hw_counters/out_of_sequence",
    "hw_counters/out_of_seq_request",
    "hw_counters/packet_seq_err",
    "hw_counters/local_ack_timeout_err",
    "hw_counters/completer_retry_err",
    "hw_counters/retry_exceeded_err",
    "hw_counters/duplicate_request",
    "hw_counters/sent_pkts",
    "hw_counters/rcvd_pkts",
)
"""What is shown of a port, where the driver counts it; port_*_data are in units of 4 bytes."""


def port_counters(device: str, port: int, root: Path = SYSFS) -> dict[str, int]:
    """Return the counters that this driver has."""
    found = {}
    for name in COUNTERS:
        path = root / device / "ports" / str(port) / name
        if path.exists():
            found[path.name] = int(path.read_text())
    return found
