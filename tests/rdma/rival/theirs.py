"""One rank's end of b12x's proxy; a CPU thread does what its GPU kernel would (operation.c)."""

import ctypes
import mmap
from pathlib import Path

import torch

from tests.collectives.ranks import FolderExchange
from tests.rdma.rival.package import load
from tetraspark.collectives.build import Unit, build

OPERATION = Unit(Path(__file__).with_name("operation.c"))
LIMIT_NS = 60 * 10**9
GID_INDEX = 1
"""Of a port's only address in the VM; b12x takes one index for all devices."""


class Region(ctypes.Structure):
    """Mirror of `rival` in operation.c."""

    _fields_ = (
        *((name, ctypes.c_uint64) for name in ("region", "recv", "flag", "send", "control")),
        *((name, ctypes.c_uint64) for name in ("stride", "slots", "slot_bytes")),
        *((name, ctypes.c_uint32) for name in ("world", "rank", "rails", "spins")),
    )


class Theirs:
    """The proxy of b12x 1.5.1 with its own layout, connections and thread."""

    name = "b12x 1.5.1"

    def __init__(
        self, rank: int, world: int, rails: int, exchange: FolderExchange, nbytes: int
    ) -> None:
        package = load()
        layout = package.Layout(world, nbytes)
        self._memory = mmap.mmap(-1, layout.total_bytes)
        base = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._proxy = package.Proxy(
            world_size=world,
            rank=rank,
            hca_names=tuple(f"n{rank}r{rail}" for rail in range(rails)),
            gid_index=GID_INDEX,
            region_ptr=base,
            region_bytes=layout.total_bytes,
            slot_bytes=nbytes,
        )
        offsets = (layout.recv_off, layout.flag_off, layout.send_off, layout.ctrl_off)
        sizes = (layout.flag_stride, layout.slots, nbytes)
        self._region = Region(base, *offsets, *sizes, world, rank, rails, 0)
        self._library = ctypes.CDLL(str(build(OPERATION)))
        self._proxy.connect(exchange(self._proxy.local_blob()))
        exchange(b"connected")
        self._sequence = 0

    def reduce(self, tensor: torch.Tensor, out: torch.Tensor) -> None:
        """Sum bf16 over the ranks."""
        self._sequence += 1
        pointers = (ctypes.c_void_p(tensor.data_ptr()), ctypes.c_void_p(out.data_ptr()))
        count, limit = ctypes.c_uint32(tensor.numel()), ctypes.c_uint64(LIMIT_NS)
        if not self._library.reduce(
            ctypes.byref(self._region), self._sequence, *pointers, count, limit
        ):
            raise TimeoutError(f"operation {self._sequence}: {self._proxy.error() or 'no flag'}")

    def counted(self) -> tuple[int, int]:
        """Return posts and completions so far: each post ends in one signalled flag."""
        writes = int(self._proxy.stats()["writes_completed"])
        return writes, writes

    def wake(self) -> None:
        """Start the proxy's thread, which polls; it goes on from the last operation."""
        self._proxy.start()

    def rest(self) -> None:
        """Stop the thread, so that it takes no core from the other contender."""
        self._proxy.stop()

    def close(self) -> None:
        """Release everything."""
        self._proxy.close()
