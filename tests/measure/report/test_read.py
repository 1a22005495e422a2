"""What is refused: damaged and foreign files, and sets that may not be put side by side."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.measure.report import reports
from tetraspark.cli.main import app
from tetraspark.errors import Problem, UsageError
from tetraspark.measure.report.compare import compare
from tetraspark.measure.report.read import read_report


def refused(make: Callable[[], object]) -> Problem:
    with pytest.raises(UsageError) as caught:
        make()
    problem = caught.value.problems[0]
    assert problem.where and problem.seen and problem.wanted and problem.fix
    return problem


@pytest.mark.parametrize(
    ("data", "seen"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"[1]", "JSON that is a list"),
        (b"[" * 200_000, "nested too deep"),
        (b"{}", "neither about.suite nor"),
        (b'{"about": {"suite": "decode"}}', "Field required"),
        (b'{"about": {"suite": "weather"}}', "'weather'"),
        (b'{"about": {"suite": ["decode"]}}', "['decode']"),
    ],
)
def test_damaged_and_foreign_files_are_refused(tmp_path: Path, data: bytes, seen: str) -> None:
    file = tmp_path / "odd.json"
    file.write_bytes(data)
    problem = refused(partial(read_report, file))
    assert problem.where.startswith(str(file))
    assert seen in problem.seen


@pytest.mark.parametrize(
    ("suite", "path", "value", "key"),
    [
        ("decode", ("cells", 3, "rounds", 1, "tokens_per_second"), "fast", None),
        ("decode", ("cells", 3, "rounds", 1, "tokens_per_second"), -1.0, None),
        ("decode", ("cells", 3, "rounds", 1, "tokens_per_second"), float("nan"), None),
        ("decode", ("cells", 0, "concurrency"), 0, None),
        ("decode", ("about", "hardware_class"), "Spark", None),
        ("prefill", ("rows", 0, "text"), "prose", None),
        ("needle", ("cases", 2, "found"), 1, None),
        ("soak", ("waves", 1, "counters"), [], None),
        ("start", ("samples", 0, "floor"), None, None),
        ("collectives", ("rows", 0, "ours"), {"us": 1}, "rows[0].ours"),
    ],
)
def test_a_damaged_value_is_refused_by_its_key(
    tmp_path: Path, suite: str, path: tuple[str | int, ...], value: object, key: str | None
) -> None:
    report: Any = json.loads(json.dumps(reports.everything()[suite]))
    place = report
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    (file,) = reports.write(tmp_path, {suite: report})
    where = refused(partial(read_report, file)).where
    wanted = key or "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in path)[1:]
    assert where.startswith(f"{file}: {wanted}")


def test_a_file_that_is_not_there_or_a_folder_is_refused(tmp_path: Path) -> None:
    for path, seen in ((tmp_path, "a folder"), (tmp_path / "none.json", "no such file")):
        assert refused(partial(read_report, path)).seen == seen


def test_a_stand_in_never_stands_beside_a_spark(tmp_path: Path) -> None:
    here = read_report(reports.write(tmp_path, {"here": reports.decode()})[0])
    for name, other in {
        "spark": reports.decode(2.0, hardware_class="spark"),
        "unknown": reports.decode(2.0, hardware_class="unknown"),
    }.items():
        there = read_report(reports.write(tmp_path, {name: other})[0])
        problem = refused(partial(compare, [here], [there]))
        assert problem.where == f"{there.path}: about.hardware_class"
        assert f'"{name}" beside "stand-in"' in problem.seen


def test_benchmarks_of_one_machine_never_stand_beside_a_spark(tmp_path: Path) -> None:
    spark = reports.decode(hardware_class="spark")
    for suite in ("start", "transport", "collectives"):
        files = reports.write(tmp_path, {"spark": spark, suite: reports.everything()[suite]})
        problem = refused(partial(compare, [read_report(one) for one in files], []))
        assert '"stand-in" beside "spark"' in problem.seen


@pytest.mark.parametrize("key", ["model", "hardware", "site_sha256"])
def test_one_set_is_of_one_thing(tmp_path: Path, key: str) -> None:
    change: dict[str, Any] = {key: "another"}
    other = reports.prefill(**change)
    files = reports.write(tmp_path, {"one": reports.decode(), "two": other})
    one, two = map(read_report, files)
    assert refused(partial(compare, [one, two], [])).where == f"{two.path}: about.{key}"
    assert compare([one], [two]).hardware_class == "stand-in"


def test_a_report_twice_is_not_two_measurements(tmp_path: Path) -> None:
    files = reports.write(tmp_path, {"one": reports.decode(), "copy": reports.decode()})
    one, copy = map(read_report, files)
    assert "the same report as" in refused(partial(compare, [one, copy], [])).seen


def test_two_runs_of_a_set_share_their_cells_and_a_fault_of_one_is_a_fault_of_both(
    tmp_path: Path,
) -> None:
    files = reports.write(
        tmp_path, {"one": reports.decode(1.0, broken=0), "two": reports.decode(2.0, broken=8)}
    )
    found = compare([read_report(one) for one in files], []).pairs
    first = next(pair for pair in found if pair.key.label == "c1" and pair.key.panel == "prose")
    eighth = next(pair for pair in found if pair.key.label == "c8" and pair.key.panel == "prose")
    assert first.run is not None and len(first.run.samples) == 6
    assert first.run.median == pytest.approx((42 + 76.8) / 2)
    assert eighth.run is not None and not eighth.run.valid


def test_another_protocol_is_another_cell(tmp_path: Path) -> None:
    longer: Any = json.loads(json.dumps(reports.decode(broken=0)))
    for cell in longer["cells"]:
        cell["max_tokens"] = 256
    files = reports.write(tmp_path, {"one": reports.decode(broken=0), "two": longer})
    one, two = map(read_report, files)
    assert {pair.ratio for pair in compare([one], [two]).pairs} == {None}


def test_the_command_writes_the_page_and_refuses_with_exit_code_2(tmp_path: Path) -> None:
    runs = reports.write(tmp_path, {"decode": reports.decode(), "prefill": reports.prefill()})
    (other,) = reports.write(tmp_path / "other", {"decode": reports.decode(2.0)})
    page = tmp_path / "page.html"
    words = ["report", *map(str, runs), "--against", str(other), "--out", str(page)]
    result = CliRunner().invoke(app, [*words, "--json"])
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert page.read_text().startswith("<!doctype html>")
    ratios = {one["ratio"] for one in told["cells"] if one["quantity"] == "Decode rate"}
    assert ratios == {0.5, None}
    invalid = [one["run"] for one in told["cells"] if one["run"] and not one["run"]["valid"]]
    assert invalid and all(set(one) == {"valid", "why"} for one in invalid)
    for target in (tmp_path / "none" / "page.html", tmp_path, runs[0]):
        result = CliRunner().invoke(app, [*words[:-1], str(target)])
        assert isinstance(result.exception, UsageError) and result.exception.exit_code == 2
    assert json.loads(runs[0].read_text())["about"]["suite"] == "decode"
