"""Builds the host-compilable part of the kernels' source, with doors for the tests."""

import ctypes
import shutil
import subprocess
from pathlib import Path

from tetraspark.collectives.cuda_source import protocol_source

DOORS = """
extern "C" {
u64 pack(u32 sequence, u32 op, u32 dtype, u32 units) {
    return ts_flag_pack(sequence, op, dtype, units);
}
u32 next_sequence(u32 sequence) { return ts_next_sequence(sequence); }
u32 stripe_first(u32 units, u32 stripes, u32 i) { return ts_stripe_first(units, stripes, i); }
u32 judge(u64 flag, u64 expected, u32 sequence) { return ts_judge(flag, expected, sequence); }
u64 send_slot(const ts_config *c, u32 owner, u32 peer, u32 op, u32 s) {
    return ts_send_slot(*c, owner, peer, op, s);
}
void chunk(const ts_request *r, u32 owner, u32 stripes, u32 stripe, u32 *edges) {
    ts_chunk(*r, owner, stripes, stripe, edges[0], edges[1]);
}
u64 recv_slot(const ts_config *c, u32 owner, u32 source, u32 op, u32 s) {
    return ts_recv_slot(*c, owner, source, op, s);
}
u64 flag_place(const ts_config *c, u32 owner, u32 source, u32 s, u32 stripe) {
    return ts_flag_place(*c, owner, source, s, stripe);
}
u64 arrived(const ts_config *c, u32 source, u32 op, u32 s) { return ts_arrived(*c, source, op, s); }
u64 target(const ts_config *c, u32 peer, u32 op, u32 s) { return ts_target(*c, peer, op, s); }
u64 digest(const ts_request *r, u32 source) { return ts_digest(*r, source); }
u64 gathered(const ts_request *r, u32 source, u32 byte) { return ts_gathered(*r, source, byte); }
u32 bf16_bits(u32 bits) { return ts_bf16_bits(bits); }
}
"""
WIDE = ("pack", "send_slot", "recv_slot", "flag_place", "arrived", "target", "digest", "gathered")


def find_cxx() -> str:
    """Return a C++ compiler. Raises RuntimeError where there is none: these tests need one."""
    for name in ("c++", "g++", "clang++"):
        if shutil.which(name):
            return name
    raise RuntimeError("no C++ compiler: apt-get install g++")


def build_protocol(folder: Path) -> ctypes.CDLL:
    """Compile the protocol part as C++ and load it."""
    source, library = folder / "protocol.cpp", folder / "protocol.so"
    source.write_text(protocol_source() + DOORS)
    command = [find_cxx(), "-std=c++17", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function"]
    subprocess.run([*command, "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    loaded = ctypes.CDLL(str(library))
    for name in WIDE:
        getattr(loaded, name).restype = ctypes.c_uint64
    loaded.pack.argtypes = [ctypes.c_uint32] * 4
    loaded.judge.argtypes = [ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint32]
    for name in ("next_sequence", "stripe_first", "judge", "bf16_bits"):
        getattr(loaded, name).restype = ctypes.c_uint32
    loaded.next_sequence.argtypes = loaded.bf16_bits.argtypes = [ctypes.c_uint32]
    return loaded
