"""Asynchronous events that soft RoCE never raises, given to a rank in the kernel's own format.

A pipe takes the place of the device's event descriptor; libibverbs reads the record from it and
the proxy acts on it, as they would on a card. Used inside the VM, in a rank's process.
"""

import ctypes
import os
import struct
from pathlib import Path

from tests.collectives.ranks import COMMANDS
from tetraspark.collectives.group import Group
from tetraspark.collectives.verbs import VerbsTransport
from tetraspark.collectives.verbs_native import LANE_BYTES, Lanes, VerbsConfig

EVENTS = {"queue pair": 1, "device": 8, "port": 10}
"""IBV_EVENT_QP_FATAL, IBV_EVENT_DEVICE_FATAL and IBV_EVENT_PORT_ERR of verbs.h."""

RECORD = struct.Struct("<QII")
"""struct ib_uverbs_async_event_desc: element, event type, reserved."""

QP_NUMBER_AT = 52
"""A lane's own state begins with its `ibv_qp *`, which holds its number there."""


def inject(group: Group, event: str, device: int, peer: int, lane: int) -> None:
    """Give this rank an event of its `device`: of the port, the device, or one lane's queue pair.

    A group that got a queue pair's event cannot be closed: the kernel did not count it.
    """
    element = {"queue pair": _queue_pair(group, peer, lane), "device": 0, "port": 1}[event]
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.dup2(reading, _event_descriptors()[device])
    os.write(writing, RECORD.pack(element, EVENTS[event], 0))


def _event_descriptors() -> list[int]:
    """Return the devices' event descriptors, in the order in which they were opened."""
    names = {
        int(link.name): str(link.readlink())
        for link in Path("/proc/self/fd").iterdir()
        if link.is_symlink()
    }
    return sorted(fd for fd, name in names.items() if "infinibandevent" in name)


def _queue_pair(group: Group, peer: int, lane: int) -> int:
    transport = group._link.transport
    assert isinstance(transport, VerbsTransport)
    contents = transport.connections.context.contents
    lanes = ctypes.addressof(contents) + ctypes.sizeof(Lanes) + ctypes.sizeof(VerbsConfig)
    at = lanes + (peer * 4 + lane) * LANE_BYTES
    address = ctypes.c_uint64.from_address(at).value
    number = ctypes.c_uint32.from_address(address + QP_NUMBER_AT).value
    assert number == contents.state[peer][lane].qp
    return address


COMMANDS["inject"] = inject
