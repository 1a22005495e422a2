"""Every place where the plugin touches the engine, with the source hashes it was written for."""

from tetraspark.engine.drift import Target
from tetraspark.engine.guard_hooks import GUARD_CALLED, GUARD_HOOKS
from tetraspark.engine.hook import Hook, Role, Type
from tetraspark.engine.indexer_hooks import INDEXER_CALLED, INDEXER_HOOKS

PLUGIN = "src/tetraspark/engine/plugin.py"
SCHEDULER = "src/tetraspark/engine/scheduler.py"
API_KEY = "src/tetraspark/engine/api_key.py"
FENCE = "src/tetraspark/engine/fence.py"
DSPARK = "sglang.srt.speculative.dspark_components"


def _scheduler(path: str, sha256: str, type: Type, function: str) -> Hook:
    target = Target(f"sglang.srt.{path}", (sha256,), SCHEDULER)
    return Hook(target, f"tetraspark.engine.scheduler:{function}", type, "scheduler")


def _server(path: str, sha256: str, type: Type, function: str) -> Hook:
    target = Target(f"sglang.srt.{path}", (sha256,), API_KEY)
    return Hook(target, f"tetraspark.engine.api_key:{function}", type, "server")


def _fence(path: str, sha256: str, function: str) -> Hook:
    target = Target(f"{DSPARK}.{path}", (sha256,), FENCE)
    return Hook(target, f"tetraspark.engine.fence:{function}", "AFTER", "scheduler")


HOOKS = (
    _scheduler(
        "managers.scheduler.Scheduler.__init__",
        "93ad4787d25f76ee4af16e5f7cb35d56fe8b6d9fdab9b7974c4f03a5f20c78eb",
        "AFTER",
        "after_scheduler_init",
    ),
    _scheduler(
        "distributed.parallel_state.GroupCoordinator.all_reduce",
        "8d4026274e64a92c76728250e56a9d7e9d734c7bd9fe82d69813bc0a20deee81",
        "AROUND",
        "around_all_reduce",
    ),
    _scheduler(
        "distributed.parallel_state.GroupCoordinator.all_gather",
        "10e3bee61f2a3ea4c8f762f9323f95bd354328cdb2a0f6466c8515a467c05184",
        "AROUND",
        "around_all_gather",
    ),
    _scheduler(
        "distributed.parallel_state.GroupCoordinator.all_gather_into_tensor",
        "5097a50ac29549cb58e433224c4b63bb9db613589f416a09c73734bea7d10768",
        "AROUND",
        "around_all_gather_into",
    ),
    # The result boundaries: whatever reads a step's outputs first.
    _scheduler(
        "managers.scheduler.Scheduler.process_batch_result",
        "a67c683e53477b437143ae9836a19bb2b2c3024bda821624891389e07c1feb9a",
        "BEFORE",
        "before_results",
    ),
    _scheduler(
        "managers.scheduler_components.batch_result_processor"
        ".SchedulerBatchResultProcessor.advance_grammar_fsm",
        "30b46f5b13c2b1b6fc0fcca9c96909199044bc4d60f790a71cd65d2f1e042c76",
        "BEFORE",
        "before_grammar",
    ),
    _scheduler(
        "managers.overlap_utils.FutureMap.resolve_seq_lens_cpu",
        "9f97fe148379476833753cc428779a276b4e5ac7b2818012b63f944b8ddb7688",
        "AFTER",
        "after_sequence_lengths",
    ),
    _scheduler(
        "managers.scheduler.Scheduler.run_event_loop",
        "7966bc22c946f6eec0320d4de989746e6f775374bc452dbd9e88c385657c8db7",
        "AROUND",
        "around_event_loop",
    ),
    _server(
        "entrypoints.http_server._setup_and_run_http_server",
        "7b68d6a8a80953ba57fd92707fc63446d5fab2575c80177e8227f46905e120a8",
        "BEFORE",
        "before_http_server",
    ),
    _server(
        "entrypoints.http_server._freeze_gc_after_server_warmup",
        "9f604baf62c7da02a2b5ee8b258b2568f6126c33202a658480adb11d96e8a7cd",
        "REPLACE",
        "freeze_gc",
    ),
    # A folded accept must not be overwritten before it has been read.
    _fence(
        "dspark_verify.TargetVerifyExecutor.accept_and_finalize",
        "07ff2365976db9d9f72088ae20d67db3f0b9c1733954856adb50015638e423a6",
        "after_accept",
    ),
    _fence(
        "dspark_sampling_accept_graph.DsparkSamplingAcceptGraph.run",
        "c1003fb7e55ace93631d08577eff87b27ee73cabe691e0f02723afeec851c3ec",
        "after_sampled_accept",
    ),
    _fence(
        "dspark_worker_v2.DSparkWorkerV2._block_accept_lens",
        "525a68da04b3722221c11b124483a27b44a04670faec2d52c00189c3dd042fa9",
        "after_block_lengths",
    ),
    *GUARD_HOOKS,
    *INDEXER_HOOKS,
)

# Called, not hooked: a change here breaks the plugin just as surely.
CALLED = (
    Target(
        "sglang.srt.utils.auth.add_api_key_middleware",
        ("33b82c7ebe4c98897edac2f899e834fa7883058a902982f4226ebfb3926ce24c",),
        API_KEY,
    ),
    Target(
        "sglang.srt.distributed.parallel_state.get_tp_group",
        ("50f914beec732ff7521851d9efa8cb97d59ec742bde8a2e25acef059c1cec679",),
        SCHEDULER,
    ),
    Target(
        "sglang.srt.plugins.hook_registry.HookRegistry.register",
        ("269af21f6a3ef44b87415a643893208bd5d25d62ea279679888ca4c16671838e",),
        PLUGIN,
    ),
    Target(
        "sglang.srt.plugins.hook_registry.HookRegistry.apply_hooks",
        ("e5c55fda696ce75fc8cf2d0495a4d37a593158bdd5ebb44229ea5b77877c94a9",),
        PLUGIN,
    ),
    Target(
        f"{DSPARK}.dspark_verify.AcceptOuts",
        ("f7f97dcc7d61a9feee66ab317c6f20dc9267e482413784a053f05adce2250f6c",),
        FENCE,
    ),
    Target(
        f"{DSPARK}.dspark_verify.DsparkVerifyEpilogue.read_accept",
        ("e26ff46c1374ef4dadf7c140a2903309f8ea36c65415c6672adecc0dc12b2916",),
        FENCE,
    ),
    Target(
        f"{DSPARK}.dspark_verify.DsparkVerifyEpilogue.read_block_accept_lens",
        ("e461f1289bc3fbc5d9f44c6407dcef2482b71705945f4d6e3492dfb80c9f9bfa",),
        FENCE,
    ),
    *GUARD_CALLED,
)

TARGETS = (*(hook.target for hook in HOOKS), *CALLED, *INDEXER_CALLED)


def hooks_of(role: Role, *, cuda: bool) -> tuple[Hook, ...]:
    """Return the hooks of one kind of engine process."""
    return tuple(hook for hook in HOOKS if hook.role == role and hook.applies(cuda=cuda))


def targets_of(role: Role, *, cuda: bool) -> tuple[Target, ...]:
    """Return everything of the engine that the hooks of such a process rely on."""
    indexer = INDEXER_CALLED if role == "scheduler" and cuda else ()
    return (*(hook.target for hook in hooks_of(role, cuda=cuda)), *CALLED, *indexer)
