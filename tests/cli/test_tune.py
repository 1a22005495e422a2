"""`tetraspark tune` on real ranks over shared memory, and docs/tune.md, command by command."""

import json
import re
import shlex
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from rich.text import Text
from typer.testing import CliRunner

from tests.serving import COMMAND, ROOT, Command, write_site
from tetraspark.cli.curve_plot import Curve, plot
from tetraspark.cli.main import app
from tetraspark.collectives.thresholds import ThresholdKey, Thresholds
from tetraspark.errors import RunError, UsageError
from tetraspark.line.threshold_store import ThresholdStore
from tetraspark.measure import tune_run
from tetraspark.measure.collectives import Bench
from tetraspark.measure.tune import Timing, decide
from tetraspark.measure.tune_measured import Measured, measured_of
from tetraspark.measure.tune_report import TuneReport

PAGE = (ROOT / "docs" / "tune.md").read_text()
COMMANDS = re.findall(r"(?m)^tetraspark .*$", "".join(re.findall(r"(?ms)^```sh\n(.*?)^```", PAGE)))
TUNED = 'transport = "shm"\nmax_two_shot_bytes = "tuned"\ntwo_shot_from = "tuned"'
FEW = "--min 4K --max 16K --repeats 1 --rounds 2"
KEY = ThresholdKey(2, 1, 0, "shm", "0123456789abcdef")
BENCH = Bench(2, "all_reduce", "bf16", 1 << 12, 1 << 14, 1, "pull", True, "cpu", 2, 5)
CROSSING = tuple(
    Timing(1 << power, 20 + (1 << power) / 5000, 40 + (1 << power) / 10000, 400.0)
    for power in range(12, 22)
)


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Command:
    folder = tmp_path_factory.mktemp("tuned")
    command = Command(
        write_site(folder, "tuned", {'transport = "shm"': TUNED}, 2), folder / "state"
    )
    command.env |= {"TETRASPARK_SITE": str(command.site), "COLUMNS": "120"}
    return command


@pytest.fixture(scope="module")
def report(line: Command) -> Any:
    """One real run of two ranks; one repeat cannot disagree with itself, so it is kept."""
    return typed(line, f"tetraspark tune {FEW} --svg {line.site.with_name('curves.svg')} --json")


def typed(line: Command, command: str, *, ends: int = 0) -> Any:
    """Run a command as its reader types it; returns its JSON, or its text."""
    result = subprocess.run(
        [str(COMMAND), *shlex.split(command)[1:]],
        env=line.env,
        cwd=line.site.parent,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == ends, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    return json.loads(result.stdout) if "--json" in command else result.stdout + result.stderr


def test_before_a_run_nothing_is_stored_and_it_says_what_to_type(line: Command) -> None:
    if ThresholdStore(Path(line.env["TETRASPARK_STATE"])).all():
        pytest.fail("another test ran before: this one asks what is there without a run")
    told = typed(line, "tetraspark tune --show", ends=1)
    assert "no thresholds are stored" in told
    assert f"tetraspark tune --site {line.site}" in told
    would = typed(line, "tetraspark tune --dry-run --json")
    assert would["sizes"] == [1 << power for power in range(12, 25)]
    assert not Path(would["would_write"]).exists()
    assert "warning" in typed(line, "tetraspark plan")


def test_a_real_run_measures_every_size_and_keeps_what_all_ranks_were_told(report: Any) -> None:
    assert report["ok"]
    (curve,) = report["measured"]["repeats"]
    assert [one["size"] for one in curve] == [4096, 8192, 16384]
    assert all(one[name] > 0 for one in curve for name in ("one_shot", "two_shot", "rival"))
    # Two ranks compare each of both algorithms at each size.
    assert (report["wrong"], report["compared"]) == (0, 2 * 2 * (4096 + 8192 + 16384) // 2)
    stored = json.loads(Path(report["stored"]).read_text())
    assert stored["thresholds"] == report["thresholds"]
    decision = decide(tuple(Timing(**one) for one in curve))
    told = {name: stored["thresholds"][name] for name in asdict(decision)}
    assert told == asdict(decision)


def test_what_is_stored_is_shown_and_drawn(line: Command, report: Any) -> None:
    shown = typed(line, "tetraspark tune --show --json")
    assert shown["thresholds"] == report["thresholds"]
    text = typed(line, "tetraspark tune --show")
    assert "16384" in text
    assert "g gloo, 1 one-shot, 2 two-shot" in text
    drawing = ET.parse(line.site.with_name("curves.svg")).getroot()
    assert drawing.tag == "{http://www.w3.org/2000/svg}svg"
    names = {one.text for one in drawing.iter("{http://www.w3.org/2000/svg}text")}
    assert {"one-shot", "two-shot", "gloo"} <= names


def test_the_plan_takes_what_is_stored(line: Command, report: Any) -> None:
    found = typed(line, next(one for one in COMMANDS if "--explain" in one))
    assert "warning" not in found
    assert "TETRASPARK_TWO_SHOT_FROM" in found
    plan = typed(line, "tetraspark plan --json")
    (origin,) = [
        one["origin"]["where"]
        for one in plan["settings"]
        if one["name"] == "TETRASPARK_MAX_TWO_SHOT_BYTES"
    ]
    assert report["stored"] in origin


def test_the_commands_of_the_page(line: Command, report: Any) -> None:
    """The long ones with fewer sizes; `bench transport` is run by its own test."""
    told = [one for one in COMMANDS if "bench transport" not in one]
    assert [one.split()[1] for one in told] == ["tune", "tune", "tune", "plan"]
    for command in told:
        typed(line, command if "svg" not in command else f"{command} {FEW}")
    words = (ROOT / "tests" / "measure" / "test_transport.py").read_text()
    (bench,) = [one for one in COMMANDS if one not in told]
    assert bench.removeprefix("tetraspark bench transport ") in words


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--max 8K", "2 sizes"),
        ("--min 3K", "a power of two"),
        ("--device cuda", "0 GPUs for 2 ranks"),
        ("--svg /nowhere/x.svg", "another --svg"),
    ],
)
def test_bad_usage(line: Command, words: str, says: str) -> None:
    assert says in refused(line, *words.split())


def refused(line: Command, *words: str) -> str:
    """Return the refusal of bad usage, without the cost of a process."""
    result = CliRunner().invoke(app, ["tune", "--site", str(line.site), *words], env=line.env)
    assert isinstance(result.exception, UsageError)
    return str(result.exception)


def test_collectives_that_are_off_are_not_tuned(tmp_path: Path) -> None:
    swaps = {'transport = "shm"': 'transport = "off"'}
    line = Command(write_site(tmp_path, "off", swaps), tmp_path / "state")
    assert 'transport = "shm"' in refused(line)


def test_a_rank_that_was_told_otherwise_fails_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "rank.py"
    script.write_text(
        "import os\n"
        "from tetraspark.measure import tune_rank\n"
        "from tetraspark.measure.rank_result import leave\n"
        "def run(folder, rank):\n"
        "    found = tune_rank.run(folder, rank)\n"
        "    if rank == 1:\n"
        "        found['decision'] = {'two_shot_from': 16, 'reduce_limit': 16}\n"
        "    return found\n"
        "os._exit(leave(run))\n"
    )
    monkeypatch.setattr(tune_run, "RANK", (tune_run.RANK[0], str(script)))
    heard: list[str] = []
    with pytest.raises(RunError, match="one decision on every"):
        tune_run.tune(BENCH, 1, KEY, heard.append)
    assert heard[0].startswith("repeat 1 of 1, ")


def reported(*repeats: tuple[Timing, ...], wrong: int = 0) -> TuneReport:
    measured = Measured("2026-01-01T00:00:00+00:00", {"cores": "2"}, "gloo", 5, repeats)
    return TuneReport(KEY, measured, decide(measured.curve), wrong, 8192)


def test_wrong_bits_and_repeats_that_disagree_are_reasons_not_to_keep() -> None:
    assert reported(CROSSING, CROSSING).problems() == ()
    (wrong,) = reported(CROSSING, wrong=3).problems()
    assert wrong.seen == "3 of 8192 values of ours are wrong"
    never = tuple(replace(one, two_shot=one.one_shot * 2) for one in CROSSING)
    (apart,) = reported(CROSSING, never).problems()
    assert apart.seen.startswith("repeat 1: two-shot from ")
    assert "--repeats 5" in apart.fix


@pytest.mark.parametrize(
    "change",
    [
        lambda found: found.pop("repeats"),
        lambda found: found.update(repeats=[]),
        lambda found: found.update(repeats=[[]]),
        lambda found: found.update(rounds="many"),
    ],
)
def test_damaged_curves_are_refused_with_their_file(
    tmp_path: Path, change: Callable[[dict[str, Any]], object]
) -> None:
    store, found = ThresholdStore(tmp_path), reported(CROSSING)
    told = json.loads(json.dumps(found.measured.as_dict()))
    path = store.write(found.thresholds, told)
    kept = store.read(KEY)
    assert kept is not None
    assert measured_of(kept) == found.measured
    change(kept.measured)
    with pytest.raises(UsageError, match=re.escape(str(path))):
        measured_of(kept)


def test_the_thresholds_in_words() -> None:
    assert str(Thresholds(None, 4096, KEY)) == "two-shot nowhere, ours up to 4096 bytes"
    assert str(Thresholds(4096, None, KEY)) == "two-shot from 4096 bytes, ours nowhere"


def test_a_plot_has_its_letters_where_the_values_are() -> None:
    curves = (Curve("a", "a", "", (10.0, 100.0, 1000.0)), Curve("b", "b", "", (1000.0,) * 3))
    lines = [line.plain for line in plot((4096, 8192, 16384), curves, {"here": 8192}, 80)]
    rows = {letter: [n for n, line in enumerate(lines) if letter in line[8:]] for letter in "ab"}
    assert lines[0].startswith(" 1,000 │")
    assert rows["b"] == [0]
    assert len(rows["a"]) == 2, "the last a is under the last b"
    columns = [line[8:].index("a") for line in lines if "a" in line[8:]]
    assert columns == [7, 0]
    assert lines[-2].split() == ["4k", "8k", "16k"]
    assert lines[-1].index("^") - 8 == 7
    assert all(
        isinstance(line, Text) for line in plot((16,), (Curve("a", "a", "", (1.0,)),), {}, 1)
    )


def test_a_site_of_one_node_has_nothing_to_tune(tmp_path: Path) -> None:
    alone = Command(write_site(tmp_path, "alone", ranks=1), tmp_path / "state")
    assert "1 node" in refused(alone, "--show")
    assert "2 to 8, for collectives of ours" in refused(alone, "--dry-run")
