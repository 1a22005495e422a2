"""What the all-reduce costs on one GPU, beside floors of the same machine.

One rank of two plays against itself: both regions are the same memory, so each launch writes its
bytes and flags over PCIe and reads them back, as one of two GPUs would, with no skew between
them. It stands in for two GPUs and is no measurement of them. NCCL has no such mode: no rival here.

Run: `python tests/gpu/bench_one_gpu.py [--tune]`. Times are medians of graph replays, in us.
"""

import argparse
import mmap
import statistics
import sys
from collections.abc import Callable
from ctypes import Structure, addressof, c_char, c_uint64
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import torch

from tests.gpu.one_gpu import DEVICE, Ranks
from tetraspark.collectives.cuda_compiler import compile_source
from tetraspark.collectives.cuda_driver import MappedHost, Module, capability
from tetraspark.collectives.cuda_events import new_event, new_stream
from tetraspark.collectives.cuda_launch import Form, Launcher, form_of
from tetraspark.collectives.cuda_source import Shape
from tetraspark.collectives.endpoint import Endpoint, configure
from tetraspark.collectives.flags import Dtype
from tetraspark.collectives.layout import Layout
from tetraspark.collectives.relay import Relay
from tetraspark.collectives.requests import reduce_request
from tetraspark.collectives.routes import Routes

SIZES = (16, 4096, 16384, 49152, 61440, 131072, 262144, 491520, 983040, 2097152)
CALLS, REPLAYS, WARM = 50, 21, 3

FLOORS = """
typedef unsigned long long u64;
struct args { u64 host, device, packs; };
extern "C" __global__ void empty(const __grid_constant__ args a) {}
extern "C" __global__ void trip(const __grid_constant__ args a) {
    u64 value;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(a.host) : "memory");
    value++;
    asm volatile("fence.acq_rel.sys; st.relaxed.sys.global.u64 [%0], %1;" ::"l"(a.host), "l"(value)
                 : "memory");
    u64 seen;
    do asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(seen) : "l"(a.host) : "memory");
    while (seen != value);
}
extern "C" __global__ void copy(const __grid_constant__ args a) {
    u64 step = (u64)gridDim.x * blockDim.x, me = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    const uint4 *in = (const uint4 *)a.device;
    uint4 *out = (uint4 *)a.host;
    for (u64 i = me; i < a.packs; i += step) out[i] = in[i];
    uint4 sum = {0, 0, 0, 0};
    for (u64 i = me; i < a.packs; i += step * 4) {
        uint4 v[4] = {};
        for (int u = 0; u < 4; u++)
            if (i + u * step < a.packs)
                asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                             : "=r"(v[u].x), "=r"(v[u].y), "=r"(v[u].z), "=r"(v[u].w)
                             : "l"(out + i + u * step) : "memory");
        for (int u = 0; u < 4; u++) {
            sum.x += v[u].x, sum.y += v[u].y;
            sum.z += v[u].z, sum.w += v[u].w;
        }
    }
    if (sum.x == 12345 && sum.y == 54321) ((uint4 *)a.device)[0] = sum;
}
"""


class Arguments(Structure):
    """Argument of the floor kernels."""

    _fields_ = (("host", c_uint64), ("device", c_uint64), ("packs", c_uint64))


def timed(step: Callable[[], object], stream: torch.cuda.Stream) -> float:
    """Return the median time of one call, in us, over graph replays."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(CALLS):
            step()
    found = []
    for replay in range(REPLAYS + WARM):
        before, after = (new_event(timing=True) for _ in range(2))
        with torch.cuda.stream(stream):
            before.record()
            graph.replay()
            after.record()
        after.synchronize()
        if replay >= WARM:
            found.append(before.elapsed_time(after) * 1000 / CALLS)
    return float(statistics.median(found))


class Mirror:
    """One rank of two whose peer is itself; `queued`: a relay posts what its kernels stage."""

    def __init__(
        self, lanes: int, shape: Shape | None = None, *, pull: bool = True, queued: bool = False
    ) -> None:
        layout = Layout(2, lanes, max(SIZES), 4096)
        self._memory = mmap.mmap(-1, layout.total)
        address = addressof(c_char.from_buffer(self._memory))
        self.pinned = MappedHost(address, layout.total)
        config = configure(
            layout, Routes.uniform(2, lanes), 0, [self.pinned.device] * 2,
            direct=not queued, pull=pull, start_sequence=0, spins=0, yields=0,
        )  # fmt: skip
        if queued:
            config.base[:2] = [address, address]
            endpoint = Endpoint(layout, config)
            endpoint.copy_queued()
            self.relay = Relay(endpoint)
            self.relay.start()
            config.base[:2] = [self.pinned.device] * 2
        self.launcher = Launcher(config, DEVICE, 0, 5.0, shape)

    def time(self, nbytes: int, form: Form | None = None) -> float:
        """Return the time of one all-reduce in us; negative where the result was wrong."""
        x = torch.randn(nbytes // 2, dtype=torch.bfloat16, device=DEVICE)
        out = torch.zeros_like(x)
        request = reduce_request(2, Dtype.BF16, (nbytes // 2,), nbytes)
        request.input, request.output = x.data_ptr(), out.data_ptr()
        stream = new_stream(DEVICE)
        found = timed(
            lambda: self.launcher.launch(request, torch.cuda.current_stream().cuda_stream, form),
            stream,
        )
        right = torch.equal(out, x + x) and not self.launcher.report.valid
        return found if right else -found


def floors(nbytes: int, module: Module, host: int, device: int) -> tuple[float, ...]:
    """Return the empty kernel, the flag's round trip, and the bytes there and back, in us."""
    arguments = Arguments(host + 4096, device, nbytes // 16)
    flag = Arguments(host, device, 0)
    stream = new_stream(DEVICE)

    def launch(name: str, grid: int, threads: int, told: Arguments) -> Callable[[], object]:
        return lambda: module.launch(
            name, (grid, 1), threads, torch.cuda.current_stream().cuda_stream, (told,)
        )

    empty = timed(launch("empty", 4, 512, flag), stream)
    trip = timed(launch("trip", 1, 1, flag), stream)
    copies = [timed(launch("copy", grid, 512, arguments), stream) for grid in (4, 8, 16, 32)]
    return empty, trip, min(copies)


def contended(world: int, nbytes: int) -> float:
    """Return the slowest rank's time of one all-reduce, all ranks on this GPU and its one link."""
    ranks = Ranks(world, lanes=4, late_limit_s=15.0)
    try:
        xs = [torch.randn(nbytes // 2, dtype=torch.bfloat16, device=DEVICE) for _ in range(world)]
        made = []
        for rank, group in enumerate(ranks.groups):
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=ranks.streams[rank]):
                for _ in range(CALLS):
                    group.all_reduce(xs[rank], xs[rank])
            made.append(graph)
        found = []
        for replay in range(REPLAYS + WARM):
            for x in xs:
                x.zero_()
            pairs = [[new_event(timing=True) for _ in range(2)] for _ in xs]
            torch.cuda.synchronize()
            for rank, stream in enumerate(ranks.streams):
                with torch.cuda.stream(stream):
                    pairs[rank][0].record()
                    made[rank].replay()
                    pairs[rank][1].record()
            ranks.succeed()
            if replay >= WARM:
                slowest = max(before.elapsed_time(after) for before, after in pairs)
                found.append(slowest * 1000 / CALLS)
        return float(statistics.median(found))
    finally:
        ranks.close()


def tune() -> None:
    """Print the all-reduce over forms of a launch, threads, loads in flight and delivery."""
    sizes = (16384, 32768, 61440, 131072, 262144, 491520, 983040, 2097152)
    forms = [Form(), Form(2, 8), Form(4, 8)]
    print("# tune: pull threads unroll lanes stagers reducers | " + " ".join(map(str, sizes)))
    kept = []
    for pull, threads, unroll, lanes in (
        (True, 512, 4, 4), (True, 512, 8, 4), (True, 1024, 2, 4), (True, 512, 4, 2),
        (True, 512, 4, 1), (False, 512, 4, 4),
    ):  # fmt: skip
        mirror = Mirror(lanes, Shape(2, threads, unroll), pull=pull)
        kept.append(mirror)
        for form in forms:
            row = " ".join(f"{mirror.time(nbytes, form):8.2f}" for nbytes in sizes)
            told = f"{int(pull)} {threads:4} {unroll} {lanes} {form.stagers} {form.reducers:2}"
            print(f"{told} | {row}", flush=True)


def main() -> int:
    """Print the tables; returns the exit code."""
    options = argparse.ArgumentParser()
    options.add_argument("--tune", action="store_true")
    asked = options.parse_args()
    if not torch.cuda.is_available():
        print("FAIL no CUDA device: torch sees none")
        return 1
    print(f"# {torch.cuda.get_device_name(0)}, torch {torch.__version__}, bf16, itself its peer")
    print(f"# median of {REPLAYS} replays of {CALLS} calls, us; NCCL: not possible on one GPU")
    torch.zeros(1, device=DEVICE)  # makes the context that pinning needs
    memory = mmap.mmap(-1, 4096 + max(SIZES))
    pinned = MappedHost(addressof(c_char.from_buffer(memory)), 4096 + max(SIZES))
    source = compile_source(FLOORS, capability(DEVICE))
    module = Module(source, ("empty", "trip", "copy"))
    scratch = torch.randn(max(SIZES) // 4, device=DEVICE)
    mirrors = [Mirror(1), Mirror(4), Mirror(1, pull=False, queued=True)]
    mirrors.append(Mirror(2, pull=False, queued=True))
    print("#   bytes    empty     trip there+back  1 lane 4 lanes  relay 1  relay 2  4 lanes/floor")
    wrong = 0
    for nbytes in SIZES:
        floor = floors(nbytes, module, pinned.device, scratch.data_ptr())
        times = [mirror.time(nbytes) for mirror in mirrors]
        wrong += min(times) < 0
        cells = " ".join(f"{one:8.2f}" for one in (*floor, *times))
        print(
            f"{nbytes:9} {cells}   {times[1] / floor[2]:6.2f}   {form_of(nbytes, 4)}",
            flush=True,
        )
    print("# all ranks on this GPU, sharing its link: slowest rank, us")
    for world in (2, 4):
        for nbytes in (16384, 61440, 491520, 983040):
            print(f"{world} ranks {nbytes:9} {contended(world, nbytes):8.2f}", flush=True)
    if asked.tune:
        tune()
    print("# FAIL: wrong results" if wrong else "# every result right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
