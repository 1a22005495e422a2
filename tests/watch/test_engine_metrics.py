"""The engine's own counters, on what it really printed."""

from pathlib import Path

import pytest

from tetraspark.fleet.runner import Inventory
from tetraspark.line.fleet_plan import fleet_plan
from tetraspark.line.local_plan import local_plan
from tetraspark.site.load import load_site
from tetraspark.watch.engine_metrics import read_log, read_metrics
from tetraspark.watch.look import NOTHING_TOLD

FOLDER = Path(__file__).parent
# Recorded from sglang 0.5.23 on four CPU ranks serving sites/local.toml, histograms left out.
RECORDED = (FOLDER / "metrics" / "cpu-0.5.23.txt").read_text()
SITES = FOLDER.parents[1] / "sites"
LOGS = FOLDER.parent / "line" / "logs"
L49 = (
    "[2026-11-30 08:00:14 TP0] Decode batch, #running-req: 2, #full token: 959969, full token "
    "usage: 0.12, #swa token: 16384, swa token usage: 1.00, accept len: 2.10, gen throughput "
    "(token/s): 61.20, #queue-req: 2"
)


def test_the_recorded_engine_is_idle_and_has_no_sliding_window() -> None:
    found = read_metrics(RECORDED)
    assert found is not None
    assert (found.running, found.waiting) == (0, 0)
    assert (found.generated_tokens, found.prefilled_tokens) == (9, 15)
    assert found.kv_used == pytest.approx(0.0017, rel=0.1)
    assert (found.tokens_per_second, found.swa_used, found.acceptance) == (0.0, None, None)


def test_a_sliding_window_part_is_told_where_there_is_one() -> None:
    more = 'sglang:max_total_num_tokens_swa{tp_rank="0"} 16384.0\n'
    text = "\n".join(
        one.replace("} 0.0", "} 1.0") if one.startswith("sglang:swa_token_usage") else one
        for one in RECORDED.splitlines()
        if "max_total_num_tokens_swa" not in one
    )
    found = read_metrics(f"{text}\n{more}")
    assert found is not None
    assert found.swa_used == 1.0


def test_ranks_of_data_parallel_add_up_and_priorities_are_not_counted_twice() -> None:
    text = (
        'sglang:num_running_reqs{dp_rank="0",priority=""} 2.0\n'
        'sglang:num_running_reqs{dp_rank="0",priority="5"} 2.0\n'
        'sglang:num_running_reqs{dp_rank="1",priority=""} 3.0\n'
    )
    found = read_metrics(text)
    assert found is not None
    assert found.running == 5


def test_an_older_engine_counts_finished_requests() -> None:
    text = "sglang:generation_tokens_total 7.0\nsglang:prompt_tokens_total 70.0\n"
    found = read_metrics(text)
    assert found is not None
    assert (found.generated_tokens, found.prefilled_tokens) == (7, 70)


@pytest.mark.parametrize("text", ["", "not metrics at all {", '{"a": [1]}', "other_total 1.0\n"])
def test_what_is_no_text_of_the_engine_is_none(text: str) -> None:
    assert read_metrics(text) is None


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "1e300"])
def test_a_value_that_is_no_count_is_not_told(value: str) -> None:
    text = f"sglang:num_running_reqs {value}\nsglang:num_queue_reqs 3.0\n"
    found = read_metrics(f"{text}sglang:gen_throughput {value}\n")
    assert found is not None
    assert (found.running, found.waiting, found.tokens_per_second) == (None, 3, None)


@pytest.mark.parametrize("value", ["1" * 5000, "1.2.3", "."])
def test_a_line_of_the_log_without_numbers_tells_nothing(value: str) -> None:
    text = f"Decode batch, token usage: {value}, gen throughput (token/s): {value}, #queue-req: 4"
    found = read_log([text], NOTHING_TOLD)
    assert (found.kv_used, found.tokens_per_second, found.waiting) == (None, None, 4)


def test_L59b_metrics_are_on_in_every_plan() -> None:
    inventory = Inventory("/venv/bin/python", "0.5.23", (0,), (), (31000, 1, 2, 3, 4))
    plans = [local_plan(load_site(SITES / "local.toml"), inventory)]
    plans += [fleet_plan(load_site(path)) for path in sorted(SITES.glob("four-sparks-*.toml"))]
    assert len(plans) > 1
    for plan in plans:
        assert all(rank.argv.count("--enable-metrics") == 1 for rank in plan.ranks)


def test_the_log_tells_what_metrics_would() -> None:
    found = read_log([L49, "INFO: something else"], NOTHING_TOLD)
    assert (found.running, found.waiting, found.tokens_per_second) == (2, 2, 61.2)
    assert (found.kv_used, found.swa_used, found.generated_tokens) == (0.12, 1.0, None)


def test_prefilled_tokens_of_a_real_log_are_added_up() -> None:
    texts = (LOGS / "killed_rank" / "rank0.log").read_text().splitlines()
    found = read_log(texts, NOTHING_TOLD)
    new = sum(
        int(one.split("#new-token: ")[1].split(",")[0]) for one in texts if "#new-token" in one
    )
    assert found.prefilled_tokens == new > 0
    assert found.running is not None
    assert read_log(texts, found).prefilled_tokens == 2 * new
