"""What a rank's log tells of its engine: KV tokens on every rank, NCCL, and causes."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from tetraspark.errors import Problem, RunError
from tetraspark.line.engine_causes import cause_of, explained, explained_failure
from tetraspark.line.engine_facts import EngineFacts, engine_problems, read_engine
from tetraspark.line.kv_pool import KvPool, PoolUsage, read_usage

LOGS = Path(__file__).parent / "logs"
NODES = ["spark1", "spark2", "spark3", "spark4"]
V41 = (LOGS / "engine" / "v41-rank1.log").read_text().splitlines()


def pools(*tokens: int | None) -> dict[int, EngineFacts]:
    return {rank: EngineFacts(KvPool(one, None, True)) for rank, one in enumerate(tokens)}


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_every_rank_of_a_real_start_tells_its_pool(rank: int) -> None:
    text = (LOGS / "killed_rank" / f"rank{rank}.log").read_text()
    found = read_engine(text.splitlines())
    assert found.pool == KvPool(4096, None, True)


def test_the_models_own_pool_is_taken_and_not_the_drafts_nor_an_estimate() -> None:
    found = read_engine(V41)
    assert found.pool == KvPool(7999744, 16384, True)


def test_a_pool_resized_after_graph_capture_counts() -> None:
    more = "[TP1] Post-capture KV sizing: full_layer_tokens=7000064, swa_layer_tokens=16384"
    assert read_engine([more], read_engine(V41)).pool.tokens == 7000064


def test_lines_may_come_in_parts() -> None:
    assert read_engine(V41[5:], read_engine(V41[:5])) == read_engine(V41)


@pytest.mark.parametrize(
    ("texts", "pool"),
    [
        (
            [
                "Use sliding window memory pool. full_layer_tokens=4096, swa_layer_tokens=512",
                "[TP0] Full KV Cache is allocated. dtype: x, #tokens: 4096, K size: 0.00 GB",
                "[TP0] SWA KV Cache is allocated. dtype: x, #tokens: 512, K size: 0.00 GB",
            ],
            KvPool(4096, 512, True),
        ),
        (["DeepSeekV4 pool: full_token=16735744, c4=1"], KvPool(16735744, None, False)),
        (["[TP0] KV Cache skipped (no-op pool). Logical #tokens: 4096, x"], KvPool()),
        ([], KvPool()),
    ],
)
def test_other_pools(texts: list[str], pool: KvPool) -> None:
    assert read_engine(texts).pool == pool


def test_the_texts_are_those_of_the_installed_engine() -> None:
    spec = find_spec("sglang")
    assert spec is not None and spec.submodule_search_locations
    srt = Path(spec.submodule_search_locations[0]) / "srt"
    for file, text in (
        ("model_executor/pool_configurator.py", 'f"DSV4 pool sizes: full={full}, swa={swa}, "'),
        ("model_executor/pool_configurator.py", '"full_layer_tokens={full_tokens}, swa_layer_tok'),
        (
            "model_executor/model_runner_components/kv_pool_runtime.py",
            '"Post-capture KV sizing: full_layer_tokens=%d, swa_layer_tokens=%d"',
        ),
        ("mem_cache/memory_pool.py", "'is allocated'}. dtype: {self.dtype}, \""),
        ("mem_cache/deepseek_v4_memory_pool.py", '"DSV4 SWA storage: worker=%s'),
        ("managers/scheduler.py", 'f"max_total_num_tokens={self.max_total_num_tokens}, "'),
        (
            "managers/scheduler_components/pool_stats_observer.py",
            'f"swa token usage: {self.swa_token_usage:.2f}"',
        ),
        ("entrypoints/http_server.py", "Health check failed. Server couldn't get a response from"),
        ("distributed/device_communicators/pynccl.py", '"sglang is using nccl==%s"'),
    ):
        assert text in (srt / file).read_text(), file


def test_a_rank_with_another_pool_fails_the_start_by_name_and_number() -> None:
    (problem,) = engine_problems(pools(8000, 8000, 7744, 8000), NODES, 8000, fabric=False)
    assert problem.where == "rank 2 (spark3)"
    assert "7744 tokens, 8000 on other ranks" in problem.seen
    assert "engine.kv_tokens = 8000" in problem.wanted


def test_a_pool_cut_to_whole_pages_is_the_pinned_one() -> None:
    assert not engine_problems(pools(*[1999872] * 4), NODES, 2_000_000, fabric=False)


def test_ranks_that_cut_differently_do_not_agree() -> None:
    found = engine_problems(pools(8000, 8000, 7999, 8000), NODES, 8000, fabric=False)
    assert [one.where for one in found] == ["rank 2 (spark3)"]


def test_a_pool_cut_down_on_all_ranks_fails_each_of_them() -> None:
    found = engine_problems(pools(*[4096] * 4), NODES, 8000, fabric=False)
    assert [one.where.split()[1] for one in found] == ["0", "1", "2", "3"]


def test_a_pool_larger_than_the_pin_or_never_told_is_not_the_pinned_one() -> None:
    found = engine_problems(pools(8192, None), ["a", "b"], 8000, fabric=False)
    assert ["8192" in found[0].seen, "does not tell" in found[1].seen] == [True, True]
    assert len(engine_problems({}, ["a"], 8000, fabric=False)) == 1


def test_without_a_pin_no_pool_is_wrong() -> None:
    assert not engine_problems(pools(8000, 4096), ["a", "b"], None, fabric=False)


def test_a_rank_on_sockets_fails_where_the_site_has_a_fabric() -> None:
    names = ("nccl-ib", "nccl-ib", "nccl-socket", "nccl-ib")
    texts = [(LOGS / "engine" / f"{name}.log").read_text().splitlines() for name in names]
    facts = {rank: read_engine(text) for rank, text in enumerate(texts)}
    (problem,) = engine_problems(facts, NODES, None, fabric=True)
    assert (problem.where, problem.seen) == ("rank 2 (spark3)", "NCCL uses TCP sockets")
    assert not engine_problems(facts, NODES, None, fabric=False)


def test_a_rank_with_another_nccl_is_named() -> None:
    facts = {n: read_engine([f"NCCL version 2.{30 + n // 2}.7"]) for n in range(3)}
    (problem,) = engine_problems(facts, NODES, None, fabric=False)
    assert (problem.where, problem.seen) == ("rank 2 (spark3)", "NCCL 2.31.7")
    assert "2.30.7, as rank 0" in problem.wanted


def test_L49_both_parts_of_a_pool_are_told_and_which_one_is_short() -> None:
    usage = read_engine(V41).usage
    assert usage == PoolUsage(0.12, 1.0, 2, 2)
    assert "full 12% used, swa 100% used, waiting 2" in str(usage)
    assert "not the KV size" in str(usage)
    assert "not the KV size" not in str(PoolUsage(0.95, 1.0, 2, 2))
    prefill = (
        "[TP0] Prefill batch, #new-seq: 1, #new-token: 9, #cached-token: 0, "
        "full token usage: 0.50, swa token usage: 0.25, #running-req: 1, #queue-req: 0, x"
    )
    assert read_usage(prefill) == PoolUsage(0.5, 0.25, 1, 0)
    assert read_usage("[TP0] Decode batch, #running-req: 1, #token: 9, token usage: 0.00") is None


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        ("FileNotFoundError: [Errno 2] No such file or directory: 'cargo'", "no cargo", "never"),
        (
            "RuntimeError: buffer_size (1268776960 B) exceeds device memory budget (793399296 B)",
            "page cache in the way",
            "drop_caches",
        ),
        (
            "NVRM: nvCheckOkFailedNoLog: Check failed: Out of memory [NV_ERR_NO_MEMORY] "
            "(0x00000051) returned from _memdescAllocInternal",
            "GPU memory in pieces",
            "buddyinfo",
        ),
        (
            "INFO: No available shared memory broadcast block found in 60 seconds.",
            "a rank is busy elsewhere",
            "status",
        ),
        (
            "Health check failed. Server couldn't get a response from detokenizer for last 20 "
            "seconds. tic start time: 1",
            "no token for long",
            "SGLANG_HEALTH_CHECK_TIMEOUT",
        ),
        (
            "AssertionError: engram target-verify expects one equal block per request, got 42",
            "speed table with Engram",
            "sps_table",
        ),
        ("torch.OutOfMemoryError: CUDA out of memory.", "out of GPU memory", "kv_tokens"),
    ],
    ids=["L25", "L43", "L45", "L57", "L54", "L59b", "memory"],
)
def test_error_texts_of_the_engine_have_a_cause_and_a_next_command(
    text: str, name: str, words: str
) -> None:
    found = cause_of(text, "switch")
    assert found is not None
    assert found.name == name
    assert words in found.fix


def test_a_headline_gets_the_cause_that_its_rank_shows() -> None:
    headline = Problem(
        "rank 0 (spark1)", "RuntimeError: NCCL error", "a rank that stays up", "logs"
    )
    text = (LOGS / "engine" / "eager-tree.log").read_text()
    told = explained(headline, "spark1", 0, text, "ring")
    assert told.seen.startswith("RuntimeError: NCCL error (trees on a ring: ")
    assert told.fix.endswith("; logs")
    assert explained(headline, "spark1", 0, "nothing known", "ring") is headline


def test_a_failure_is_explained_from_the_words_of_the_rank_it_names() -> None:
    words = ["", "Call to ibv_modify_qp failed with error No data available", "", ""]
    failed = RunError(
        Problem("rank 1 (spark2)", "it ended", "a live rank", "logs 1"),
        Problem("rank 0 (spark1)", "it ended", "a live rank", "logs 0"),
        Problem("run 7", "stopped", "left alone", "status"),
    )
    told = explained_failure(failed, NODES, lambda rank: words[rank], "switch").problems
    assert "(empty GID: " in told[0].seen
    assert "on spark2: " in told[0].fix
    assert told[1:] == failed.problems[1:]
