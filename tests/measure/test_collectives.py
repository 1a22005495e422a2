"""The benchmark of the collectives: its arithmetic, its table, and real runs of two ranks."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from tests.serving import COMMAND
from tetraspark.cli.bench_collectives import table
from tetraspark.cli.main import app
from tetraspark.errors import RunError, UsageError
from tetraspark.measure import collectives_run, rank_processes
from tetraspark.measure.collectives import (
    Bench,
    Op,
    Report,
    Row,
    Samples,
    bus_factor,
    parse_size,
)
from tetraspark.measure.oracle import Answer, gathered, rotated, shards, summed

BENCH = Bench(
    world=2,
    op="all_reduce",
    dtype="bf16",
    smallest=1 << 10,
    largest=1 << 11,
    lanes=1,
    delivery="pull",
    in_place=True,
    device="cpu",
    rounds=2,
    calls=3,
)
FEW = ("--world", "2", "--min", "1K", "--max", "2K", "--rounds", "2", "--calls", "3")
Impostor = Callable[[str], Path]


@pytest.fixture(scope="module", autouse=True)
def private_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def impostor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Impostor:
    """Let real ranks run with an all-reduce of ours that does something else at its end."""

    def patch(body: str) -> Path:
        script = tmp_path / "rank.py"
        script.write_text(
            "import os, signal, time, torch\n"
            "from tetraspark.collectives.group import Group\n"
            "from tetraspark.measure import collectives_rank\n"
            "real = Group.all_reduce\n"
            "def all_reduce(self, tensor, out=None, algorithm=None):\n"
            "    found = real(self, tensor, out, algorithm)\n"
            "    if self.rank == 1:\n"
            f"        {body}\n"
            "    return found\n"
            "Group.all_reduce = all_reduce\n"
            "os._exit(collectives_rank.main())\n"
        )
        command = (collectives_run.RANK[0], str(script))
        monkeypatch.setattr(collectives_run, "RANK", command)
        return tmp_path

    return patch


@pytest.mark.parametrize(
    ("text", "size"), [("16", 16), ("16K", 16384), ("1m", 1 << 20), ("2M", 2 << 20)]
)
def test_sizes_take_suffixes(text: str, size: int) -> None:
    assert parse_size(text, "--min") == size


@pytest.mark.parametrize("text", ["", "0", "-16K", "3K", "1.5M", "16KB", "16G", "K", "1 6", "0K"])
def test_other_sizes_are_refused_by_the_option_they_came_from(text: str) -> None:
    with pytest.raises(UsageError) as found:
        parse_size(text, "--max")
    problem = found.value.problems[0]
    assert (problem.where, problem.seen) == ("--max", text)
    assert found.value.exit_code == 2


def test_sizes_double_from_the_smallest_to_the_largest() -> None:
    assert replace(BENCH, smallest=1 << 14, largest=1 << 17).sizes() == (
        16384,
        32768,
        65536,
        131072,
    )
    assert replace(BENCH, smallest=1 << 14, largest=1 << 14).sizes() == (16384,)


def test_a_gather_is_as_large_as_its_result() -> None:
    gather = replace(BENCH, op="all_gather", in_place=False, world=3)
    assert gather.share(16384) == 5456
    assert gather.moved(16384) == 16368
    assert (BENCH.share(16384), BENCH.moved(16384)) == (16384, 16384)


def test_a_scatter_is_given_a_whole_of_equal_parts() -> None:
    scatter = replace(BENCH, op="reduce_scatter", in_place=False, world=3)
    assert (scatter.share(16384), scatter.moved(16384)) == (16368, 16368)


def test_the_answer_of_a_scatter_is_the_part_of_the_rank() -> None:
    whole = summed(shards(3, 2, 64, torch.bfloat16))
    for rank, part in enumerate(whole.values.chunk(2)):
        answer = whole.part(rank, 2)
        assert answer.differing(part) == answer.beyond(part) == 0
        assert answer.differing(whole.part(1 - rank, 2).values) > 20


@pytest.mark.parametrize(
    ("op", "world", "factor"),
    [
        ("all_reduce", 2, 1.0),
        ("all_reduce", 4, 1.5),
        ("all_gather", 2, 0.5),
        ("all_gather", 4, 0.75),
        ("reduce_scatter", 4, 0.75),
    ],
)
def test_bus_bandwidth_is_that_of_nccl_tests(op: Op, world: int, factor: float) -> None:
    assert bus_factor(op, world) == factor
    bench = replace(BENCH, op=op, world=world, in_place=False)
    assert bench.busbw(1_000_000, 100.0) == pytest.approx(10.0 * factor)


@pytest.mark.parametrize(
    "words",
    [
        ("--min", "3K"),
        ("--min", "2M", "--max", "1M"),
        ("--max", "512M"),
        ("--min", "8"),
        ("--op", "all_gather", "--in-place"),
        ("--op", "all_gather", "--min", "32"),
        ("--op", "reduce_scatter", "--min", "32"),
        ("--world", "9"),
        ("--world", "1"),
        ("--lanes", "5"),
        ("--dtype", "int8"),
        ("--rounds", "0"),
    ],
)
def test_what_cannot_be_measured_is_bad_usage(words: tuple[str, ...]) -> None:
    result = _command(*words)
    assert result.returncode == 2
    assert words[-1] in result.stderr or words[-2] in result.stderr
    assert "Traceback" not in result.stderr


def test_fewer_gpus_than_ranks_is_bad_usage_that_names_both() -> None:
    result = _command("--device", "cuda", "--world", "2", "--json", CUDA_VISIBLE_DEVICES="")
    (problem,) = json.loads(result.stdout)["problems"]
    assert result.returncode == 2
    assert problem["seen"] == "0 GPUs for 2 ranks"
    assert "NCCL" in problem["wanted"]


def test_without_torch_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(UsageError, match="no torch"):
        collectives_run.measure(BENCH)


def test_the_oracle_adds_in_rank_order_in_fp32() -> None:
    big = float(1 << 24)
    ordered = [torch.tensor([value]) for value in (big, 1.0, -big, 1.0)]
    assert summed(ordered).values.item() == 1.0
    assert summed(ordered[::-1]).values.item() == 2.0


def test_the_oracle_rounds_once() -> None:
    given = [torch.tensor([value], dtype=torch.bfloat16) for value in (256.0, 1.0, 1.0)]
    assert (given[0] + given[1] + given[2]).item() == 256.0
    assert summed(given).values.item() == 258.0


def test_every_bit_of_ours_counts_and_every_nan_of_a_rival() -> None:
    wanted = Answer(torch.tensor([0.0, 1.0, 2.0]), torch.tensor([0.0, 0.5, 0.5]))
    seen = torch.tensor([-0.0, 1.5, 2.0])
    assert (wanted.differing(seen), wanted.beyond(seen)) == (2, 0)
    bad = torch.tensor([float("nan"), 1.51, float("inf")])
    assert (wanted.differing(bad), wanted.beyond(bad)) == (3, 3)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_slack_allows_another_order_and_not_a_missing_rank(dtype: torch.dtype) -> None:
    given = shards(3, 4, 4096, dtype)
    other = given[3] + given[1] + given[0] + given[2]
    assert summed(given).beyond(other) == 0
    assert summed(given).beyond(given[0] + given[1] + given[2]) > 3500


def test_a_result_of_the_round_before_is_wrong() -> None:
    given = shards(3, 2, 4096, torch.bfloat16)
    for answer in (summed, gathered):
        before, after = answer(given), answer(rotated(given, 1))
        assert after.differing(before.values) > 0.9 * before.values.numel()


def test_a_round_is_as_slow_as_its_slowest_rank_and_wrong_values_add_up() -> None:
    def rank(us: tuple[float, ...], wrong: int) -> list[dict[str, object]]:
        found = {"us": us, "wrong": wrong, "compared": 8, "cpu_us": us}
        return [{"size": 64, "samples": {"ours": found}}]

    (row,) = collectives_run.merge([rank((1.0, 5.0), 1), rank((3.0, 2.0), 2)])
    assert row == Row(64, {"ours": Samples((3.0, 5.0), 3, 16, (4.0, 7.0))})


def test_ours_has_the_samples_of_every_run_and_each_rival_its_own() -> None:
    runs = [
        [Row(64, {"ours": Samples((1.0,), 0, 8), "nccl": Samples((2.0,), 0, 8)})],
        [Row(64, {"ours": Samples((3.0,), 1, 8), "nccl-p2p-off": Samples((8.0,), 0, 8)})],
    ]
    (row,) = collectives_run.join(runs)
    assert row.samples["ours"] == Samples((1.0, 3.0), 1, 16)
    assert row.rivals == ("nccl", "nccl-p2p-off")
    assert (row.ratio("nccl"), row.ratio("nccl-p2p-off")) == (1.0, 0.25)


def test_p90_is_a_round_that_was_timed() -> None:
    assert Samples(tuple(float(one) for one in range(1, 11)), 0, 1).p90 == 9.0
    assert Samples((7.0,), 0, 1).p90 == 7.0


@pytest.mark.parametrize(("wrong", "verdict"), [(0, "PASS"), (1, "FAIL")])
def test_every_line_but_the_rows_starts_with_a_hash(wrong: int, verdict: str) -> None:
    samples = {"ours": Samples((50.0,), wrong, 8), "gloo": Samples((200.0,), 3, 8)}
    report = Report(BENCH, {"cores": "1", "torch": "2"}, (Row(1024, samples),))
    lines = list(table(report))
    (row,) = [line.split() for line in lines if not line.startswith("#")]
    gloo = ["200.0", "200.0", "0.005", "3", "0.250"]
    assert row == ["1024", "50.0", "50.0", "0.020", str(wrong), *gloo]
    titles = lines[-3].removeprefix("#")
    assert titles.split() == ["bytes", *("us", "p90", "busbw", "wrong") * 2, "ratio"]
    assert lines[-1] == f"# {verdict}: {wrong} of 8 values of ours wrong; of rivals: gloo 3"
    assert "# 2 ranks share 1 cores: every time includes waiting for a core" in lines


def test_two_shot_has_its_ratio_and_its_bits_are_promised() -> None:
    samples = {"ours": Samples((50.0,), 0, 8), "two-shot": Samples((40.0,), 1, 8)}
    row = Row(1024, samples | {"gloo": Samples((200.0,), 3, 8)})
    report = Report(BENCH, {}, (row,))
    assert not report.ok
    assert report.as_dict()["wrong"] == 1
    lines = list(table(report))
    (cells,) = [line.split() for line in lines if not line.startswith("#")]
    assert cells[5:10] == ["40.0", "40.0", "0.026", "1", "1.250"]
    assert lines[-1] == "# FAIL: 1 of 16 values of ours wrong; of rivals: gloo 3"


def test_nothing_compared_is_no_pass() -> None:
    row = Row(1024, {"ours": Samples((50.0,), 0, 0), "gloo": Samples((50.0,), 0, 0)})
    assert not Report(BENCH, {}, (row,)).ok


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--out-of-place", "--delivery", "push", "--lanes", "2"),
        ("--op", "all_gather"),
        ("--op", "reduce_scatter"),
    ],
)
def test_a_real_run_of_two_ranks(words: tuple[str, ...]) -> None:
    result = _command(*FEW, *words, "--json")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert (report["ok"], report["wrong"]) == (True, 0)
    assert report["about"]["torch"] == torch.__version__
    assert report["bench"]["in_place"] is (not words)
    assert [row["bytes"] for row in report["rows"]] == [1024, 2048]
    for row in report["rows"]:
        names = ["ours", "gloo"] if "--op" in words else ["ours", "two-shot", "gloo"]
        assert [name for name in row if name not in ("bytes", "ratio")] == names
        for name in names:
            # Both ranks compare all of a result of bf16 in each of two rounds.
            whole = 2 * 2 * row["bytes"] // 2
            compared = whole // 2 if "reduce_scatter" in words else whole
            assert (row[name]["wrong"], row[name]["compared"]) == (0, compared)
            assert len(row[name]["rounds_us"]) == 2
            assert row[name]["cpu_us"] > 0
            assert 0 < row[name]["us"] <= row[name]["p90"] == max(row[name]["rounds_us"])
        assert row["ratio"] == {name: row["ours"]["us"] / row[name]["us"] for name in names[1:]}


def test_one_wrong_bit_on_one_rank_fails_the_command(impostor: Impostor) -> None:
    impostor("found.view(torch.int16)[7] ^= 1")
    result = CliRunner().invoke(app, ["bench", "collectives", *FEW, "--out-of-place"])
    assert result.exit_code == 1
    rows = [line.split() for line in result.stdout.splitlines() if not line.startswith("#")]
    # One value of one rank in each of two rounds, by both of our ways.
    assert [(row[4], row[8]) for row in rows] == [("2", "2")] * 2
    last = result.stdout.splitlines()[-1]
    assert last.startswith("# FAIL: 8 of 12288 values of ours wrong; of rivals: gloo 0")


def test_a_killed_rank_ends_the_run_and_is_named(impostor: Impostor) -> None:
    impostor("os.kill(os.getpid(), signal.SIGKILL)")
    started = time.monotonic()
    with pytest.raises(RunError) as found:
        collectives_run.measure(BENCH)
    assert time.monotonic() - started < 30
    seen = {problem.where: problem.seen for problem in found.value.problems}
    assert "ended with -9 and no result" in seen["rank 1, beside gloo"]
    assert "root cause: dead: rank 1" in seen["rank 0, beside gloo"]


def test_ranks_that_stand_still_are_killed(
    impostor: Impostor, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = impostor("time.sleep(600)")
    monkeypatch.setattr(rank_processes, "SILENT_S", 6.0)
    with pytest.raises(RunError, match="did not end and was killed"):
        collectives_run.measure(BENCH)
    assert _processes_of(folder / "rank.py") == []


def _processes_of(script: Path) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:  # it ended meanwhile
            continue
        if str(script).encode() in words:
            found.append(path.parent.name)
    return found


def _command(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(COMMAND), "bench", "collectives", *words],
        env=os.environ | {"COLUMNS": "200"} | env,
        capture_output=True,
        text=True,
        check=False,
    )
