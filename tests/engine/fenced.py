"""Run by test_fence.py in an interpreter of its own: the engine's real classes, on the CPU.

Prints two JSON lines, without the hooks and with them: what each path returned, before and after
the next replay overwrote the buffers of the verify graph.
"""

import json
from types import SimpleNamespace
from typing import Any

import torch
from sglang.srt.environ import envs
from sglang.srt.managers.overlap_utils import FutureMap, FutureRelayBuffers
from sglang.srt.plugins.hook_registry import HookRegistry
from sglang.srt.speculative.dspark_components.dspark_sampling_accept_graph import (
    DsparkSamplingAcceptGraph,
)
from sglang.srt.speculative.dspark_components.dspark_verify import (
    AcceptOuts,
    DsparkVerifyEpilogue,
    TargetVerifyExecutor,
)
from sglang.srt.speculative.dspark_components.dspark_worker_v2 import DSparkWorkerV2

from tetraspark.engine.hooks import FENCE, HOOKS
from tetraspark.engine.plugin import apply_hooks

REQUESTS, STRIDE = 3, 4


def epilogue() -> Any:
    """Make the graph's epilogue, whose replay writes its buffers and does nothing else here."""
    tp_sync: Any = SimpleNamespace(enabled=lambda site: False)
    with envs.SGLANG_OPT_DSV41_POST_FORWARD_CUDA_GRAPH.override(True):
        made: Any = DsparkVerifyEpilogue(
            max_bs=8, verify_num_draft_tokens=STRIDE, device="cpu", tp_sync=tp_sync
        )
    made.engram_history = lambda: None
    made.static_io = {REQUESTS: SimpleNamespace(logits=torch.zeros(1))}
    made.run_static = lambda *args, **named: replay(made, 7)
    return made


def replay(graph: Any, value: int) -> None:
    """Write what a replay writes: every buffer of the epilogue."""
    for name, buffer in vars(graph).items():
        if name.endswith("_buf"):
            buffer.fill_(value)


def values(accept: Any) -> list[Any]:
    """Return the numbers an accept holds."""
    return [getattr(accept, name).tolist() for name in AcceptOuts.__struct_fields__]


def folded(graph: Any, folded_accept: bool) -> Any:
    """Accept through the executor's real method."""
    executor = object.__new__(TargetVerifyExecutor)
    executor.verify_epilogue = graph
    absent = "verify_ids_2d target_logits draft_block sampling_info draft_input layout prefix_lens"
    named = dict.fromkeys([*absent.split(), "draft_tokens"])
    return executor.accept_and_finalize(folded_accept=folded_accept, bs=REQUESTS, **named)


def sampled(graph: Any, disabled: bool = False) -> Any:
    """Accept through the sampling-accept graph's real method; its first step runs eagerly."""
    params = SimpleNamespace(temperatures=torch.ones(8))
    sampler = SimpleNamespace(greedy_draft=True, step_logits=None, params=params)
    made = DsparkSamplingAcceptGraph(
        epilogue=graph,
        resolve_draft_sampler=lambda: sampler,
        tp_sync=None,
        fused_argmax=False,
        block_verification=False,
        device="cpu",
    )
    made.disabled = disabled
    return made.run(bs=REQUESTS, target_logits=graph.static_io[REQUESTS].logits)


def block_lengths(graph: Any, accept: Any, folded_accept: bool) -> Any:
    """Read the block lengths through the worker's real method."""
    worker = object.__new__(DSparkWorkerV2)
    worker._verify_epilogue = graph
    return worker._block_accept_lens(accept=accept, folded_accept=folded_accept, bs=REQUESTS)


def relayed(accept: Any) -> bool:
    """Tell whether the engine's FutureMap takes an accept for what its graph has published."""
    relay = FutureRelayBuffers(req_pool_size=8, device="cpu")
    relay.published_seq_lens = accept.new_seq_lens
    future = object.__new__(FutureMap)
    future._relay = relay
    future.new_seq_lens_buf = torch.full((8,), -1)
    future.needs_confidence_relay = False
    future.spec_algo = SimpleNamespace(is_some=lambda: False)
    future.publish(torch.arange(REQUESTS), accept.new_seq_lens)
    return relay.published_seq_lens is None and bool((future.new_seq_lens_buf == -1).all())


def look() -> dict[str, Any]:
    """Run every path once, then replay, then look again."""
    graph = epilogue()
    replay(graph, 7)
    first, second = folded(graph, True), sampled(graph)
    lengths = block_lengths(graph, first, True)
    found: dict[str, Any] = {
        "before": [values(first), values(second), lengths.tolist()],
        "eager": block_lengths(graph, first, False).tolist(),
        "not taken": sampled(graph, disabled=True),
        "relayed": relayed(first),
        "type": type(first).__name__,
    }
    replay(graph, 9)
    found["after"] = [values(first), values(second), lengths.tolist()]
    return found | {"patched": sorted(HookRegistry._patched)}


def main() -> None:
    """Look at the engine as it is, then with the hooks."""
    print(json.dumps(look()), flush=True)
    apply_hooks(tuple(hook for hook in HOOKS if hook.target.adapter == FENCE))
    print(json.dumps(look()), flush=True)


if __name__ == "__main__":
    main()
