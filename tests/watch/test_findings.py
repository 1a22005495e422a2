"""What is worth a look beside the state: the field's cases by their number."""

from dataclasses import replace
from pathlib import Path

from tests.watch.looks import LOST, engine, look, rank, ranks
from tetraspark.fleet.meminfo import GIB, read_meminfo
from tetraspark.line.ranks import RankStatus
from tetraspark.site.schema import Startup
from tetraspark.watch.findings import findings
from tetraspark.watch.look import Look
from tetraspark.watch.observation import Finding
from tetraspark.watch.samples import lanes_of, rank_sample, root_of

L43 = """MemTotal:       127599616 kB
MemFree:          2097152 kB
MemAvailable:   122683392 kB
Cached:         119537664 kB
"""
INSPECT = Path(__file__).parents[1] / "fleet" / "inspect"


def found(*looks: Look) -> list[Finding]:
    return list(findings(looks, Startup(), nodes=True))


def ids(*looks: Look) -> list[str]:
    return [one.id for one in found(*looks)]


def test_a_line_that_is_well_has_none() -> None:
    assert ids(look(0), look(15)) == []


def test_L43_the_page_cache_holds_the_memory() -> None:
    status = RankStatus(1, "spark2", "running", "", (), (), "", None, None)
    full = rank_sample(status, read_meminfo(L43))
    (one,) = found(look(0, ranks=(full,)))
    assert (one.id, one.where) == ("MEMORY.PAGE_CACHE", "rank 1 (spark2)")
    assert one.observed == "MemFree 2.0 GiB, MemAvailable 117.0 GiB, page cache 114.0 GiB"


def test_L44_free_and_available_are_both_shown_and_little_available_is_told() -> None:
    low = rank(0, memory_free=GIB, memory_available=GIB, page_cache=GIB // 2)
    (one,) = found(look(0, ranks=(low,)))
    assert one.id == "MEMORY.AVAILABLE"
    assert "MemFree 1.0 GiB, MemAvailable 1.0 GiB" in one.observed


def test_one_machine_has_one_memory_and_no_gpu_that_shares_it() -> None:
    low = ranks(memory_free=GIB, memory_available=GIB, page_cache=2 * GIB)
    told = findings([look(0, ranks=low)], Startup(), nodes=False)
    assert [(one.id, one.where) for one in told] == [("MEMORY.AVAILABLE", "rank 0 (spark1)")]


def test_L49_the_limit_is_the_swa_quota_not_the_kv_size() -> None:
    (one,) = found(look(0, engine=engine(kv_used=0.12, swa_used=1.0, waiting=2)))
    assert one.id == "POOL.SWA"
    assert one.observed == (
        "full 12% used, swa 100% used, waiting 2: the limit is the SWA quota, not the KV size"
    )


def test_a_full_pool_is_another_finding_and_no_queue_is_none() -> None:
    assert ids(look(0, engine=engine(kv_used=0.97, swa_used=1.0, waiting=2))) == ["POOL.FULL"]
    assert ids(look(0, engine=engine(kv_used=0.12, swa_used=1.0, waiting=0))) == []


def test_L50_a_container_that_was_restarted_is_a_failure() -> None:
    again = rank(1, state="restarted", detail="its container was restarted 11 times")
    (one,) = found(look(0, ranks=(rank(0), again)))
    assert (one.id, one.wanted[:14]) == ("RANK.RESTARTED", "RestartCount 0")


def test_a_lost_canary_and_a_wrong_answer_have_names_of_their_own() -> None:
    assert ids(look(0, canary=LOST)) == ["CANARY.LOST"]
    assert ids(look(0, canary=replace(LOST, seconds=0.1), silent=False)) == ["CANARY.ANSWER"]


def test_errors_of_a_lane_count_from_one_look_to_the_next() -> None:
    before = look(0)
    lane = before.ranks[2].lanes[0]
    worse = rank(2, lanes=(replace(lane, errors=4),))
    (one,) = found(before, look(15, ranks=(*ranks()[:2], worse, rank(3))))
    assert (one.id, one.where) == ("LANE.ERRORS", "rank 2 (spark3) rocep1s0f0 lane 0 to rank 3")
    assert one.observed == "4 more errors, 4 in all"
    down = rank(2, lanes=(replace(lane, state="down"),))
    assert ids(look(15, ranks=(down,))) == ["LANE.DOWN"]


def late(*counts: int) -> tuple[object, ...]:
    """Return ranks that waited for each peer so often."""
    return tuple(
        rank(own, late=tuple((peer, counts[peer]) for peer in range(4) if peer != own))
        for own in range(4)
    )


def test_a_rank_that_all_others_wait_for_is_slow_and_waits_all_round_are_not() -> None:
    before = look(0, ranks=late(5, 5, 5, 5))
    (one,) = found(before, look(15, ranks=late(5, 5, 25, 6)))
    assert (one.id, one.where) == ("RANK.SLOW", "rank 2 (spark3)")
    assert "waited for 60 times since the last look, all others 3 times" in one.observed
    assert ids(before, look(15, ranks=late(25, 25, 25, 25))) == []


def test_what_a_communicator_says_becomes_lanes_and_a_root() -> None:
    told = {
        "transport": "verbs",
        "verdict": "waiting",
        "operations": 12,
        "root": {"kind": "dead", "peer": 3, "detail": "its process is gone"},
        "peers": [
            {"rank": 3, "late": {"count": 2},
             "lanes": [{"lane": 1, "writes": 5, "bytes": 640, "acked": 5}]}
        ],
        "details": {"lanes": [
            {"peer": 3, "lane": 1, "device": "rocep1s0f1", "failures": 2, "broken": "retries"}
        ]},
    }  # fmt: skip
    (lane,) = lanes_of(told)
    assert (lane.device, lane.bytes, lane.errors, lane.state) == ("rocep1s0f1", 640, 2, "down")
    assert root_of(told) == (3, "dead: its process is gone")
    sample = rank_sample(RankStatus(0, "n", "running", "", (), (), "", told, None), None)
    assert (sample.operations, sample.collective, sample.late) == (12, "waiting", ((3, 2),))


def test_the_stand_in_of_a_communicator_that_says_less_is_read_too() -> None:
    told = {"transport": "off", "verdict": "fine", "operations": 7}
    assert (lanes_of(told), root_of(told), root_of(None)) == ((), None, None)
