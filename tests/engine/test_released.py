"""Released engines from the package index: ours is as it was, and the drift of others is seen."""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tetraspark.engine.check import EngineReport, check_engine
from tetraspark.engine.tree import open_tree

CACHE = Path.home() / ".cache" / "tetraspark" / "wheels"
DSPARK = "speculative.dspark_components"
# Sources do not differ between platforms; one name for all machines keeps one copy in the cache.
WHICH = ("--python-version=3.11", "--platform=manylinux_2_34_x86_64", "--platform=any")


def report(version: str) -> EngineReport:
    """Check the wheel of a version; about 40 MB for the newest, from the cache if it is there."""
    found = sorted(CACHE.glob(f"sglang-{version}-*.whl"))
    if not found:
        CACHE.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=CACHE) as part:
            argv = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *WHICH]
            argv += ["--only-binary=:all:", f"--dest={part}", f"sglang=={version}"]
            done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
            assert done.returncode == 0, done.stderr
            (wheel,) = Path(part).glob("*.whl")
            found = [wheel.replace(CACHE / wheel.name)]
    return check_engine(open_tree(found[0]))


def verdicts(found: EngineReport) -> dict[str, str]:
    return {one.target.path.removeprefix("sglang.srt."): one.verdict for one in found.findings}


def test_the_release_we_are_written_for_has_not_drifted() -> None:
    found = report("0.5.23")
    assert [str(one) for one in found.findings if one.verdict != "found"] == []
    assert [pin for pin in found.pins if pin.verdict != "same"] == []
    assert found.ok and found.version == "0.5.23"


# Read in both sources: what stands in each, and that the others stayed as they are.
RELEASES = {
    "0.5.22": {
        # its publisher of KV events came up last; an all-reduce of NPUs; no `stream_ordered`;
        # uvicorn was started without a choice of the application; no sampling-accept graph
        "managers.scheduler.Scheduler.__init__": "changed",
        "distributed.parallel_state.GroupCoordinator.all_reduce": "changed",
        "managers.overlap_utils.FutureMap.resolve_seq_lens_cpu": "changed",
        "entrypoints.http_server._setup_and_run_http_server": "changed",
        f"{DSPARK}.dspark_sampling_accept_graph.DsparkSamplingAcceptGraph.run": "missing",
        f"{DSPARK}.dspark_verify.TargetVerifyExecutor.accept_and_finalize": "changed",
        f"{DSPARK}.dspark_verify.AcceptOuts": "found",
        "managers.scheduler.Scheduler.process_batch_result": "found",
        "entrypoints.http_server._freeze_gc_after_server_warmup": "found",
        "plugins.hook_registry.HookRegistry.register": "found",
    },
    "0.5.10.post1": {
        # no plugins yet, no freeze after warm-up; a mixin of the scheduler processed results
        "plugins.hook_registry.HookRegistry.register": "missing",
        "plugins.hook_registry.HookRegistry.apply_hooks": "missing",
        "managers.scheduler_components.batch_result_processor"
        ".SchedulerBatchResultProcessor.advance_grammar_fsm": "missing",
        "managers.overlap_utils.FutureMap.resolve_seq_lens_cpu": "missing",
        "entrypoints.http_server._freeze_gc_after_server_warmup": "missing",
        "distributed.parallel_state.GroupCoordinator.all_gather": "changed",
        "distributed.parallel_state.get_tp_group": "changed",
        "utils.auth.add_api_key_middleware": "found",
    },
}


@pytest.mark.parametrize("version", RELEASES)
def test_the_drift_of_another_release_is_caught(version: str) -> None:
    found = report(version)
    wanted = RELEASES[version]
    assert {path: verdicts(found)[path] for path in wanted} == wanted
    assert not found.ok
    differing = {pin.package: pin.asked for pin in found.pins if pin.verdict == "differs"}
    assert differing["sglang"] == version
    assert "flashinfer-python" in differing
