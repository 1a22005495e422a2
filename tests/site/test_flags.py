"""The flags that no site may pass, held against the parser of the real engine."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engine.cpu_engine import STANDINS, python
from tetraspark.errors import Problem, UsageError
from tetraspark.fleet.runner import Inventory
from tetraspark.line.fleet_plan import fleet_plan
from tetraspark.line.local_plan import local_plan
from tetraspark.line.settings import KEYS
from tetraspark.site.finding import Finding
from tetraspark.site.flags import LOCAL_FLAGS, OWNED_FLAGS, REFUSED_FLAGS, flag_findings
from tetraspark.site.load import load_site, load_source
from tetraspark.site.secret import names_secret
from tetraspark.site.source import decode_source

ROOT = Path(__file__).parents[2]
LOCAL, FLEET = ROOT / "sites" / "local.toml", ROOT / "sites" / "four-sparks-switch.toml"
KINDS = {"local": LOCAL, "fleet": FLEET}
OTHER_SERVERS = ("--encoder-only", "--grpc-mode", "--smg-grpc-mode", "--use-ray")
pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def parser() -> Any:
    """What engine_flags.py found."""
    done = python("-m", "tests.engine.engine_flags", PYTHONPATH=f"{STANDINS}:{ROOT}:{ROOT / 'src'}")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def spellings(parser: Any) -> dict[str, tuple[str, ...]]:
    """Each option of the engine -> all options of the same argument."""
    found = {name: tuple(options) for options in parser["options"] for name in options}
    assert len(found) > 500
    return found


def findings(kind: str, word: str) -> list[Finding]:
    return flag_findings(("engine", "extra_args"), [word], kind)


def planned(kind: str) -> set[str]:
    """Return the flags that a plan of a kind sets by itself, whatever the site says."""
    if kind == "local":
        ports = (31000, 1, 2, 3, 4)
        inventory = Inventory("/venv/bin/python", "0.5.23", (0, 1), ("triton",), ports)
        plan = local_plan(load_site(LOCAL), inventory)
    else:
        plan = fleet_plan(load_site(FLEET))
    own = load_site(KINDS[kind]).site.engine.extra_args
    found = {one.name for one in plan.settings if one.kind == "flag" and one.name not in own}
    return found | set(KEYS)


def accepted_spellings(flag: str, options: dict[str, tuple[str, ...]]) -> Iterator[str]:
    """Yield every word that the engine takes for an argument: its options and what begins one
    of them and no other option.
    """
    for name in options[flag]:
        for length in range(3, len(name) + 1):
            begun = [one for one in options if one.startswith(name[:length])]
            if begun == [name] or length == len(name):
                yield name[:length]


@pytest.mark.parametrize("kind", KINDS)
def test_no_spelling_of_a_flag_that_the_plan_sets_is_passed(
    kind: str, spellings: dict[str, tuple[str, ...]]
) -> None:
    wanted = planned(kind) | {"--config", "--help", "--api-key", *OTHER_SERVERS}
    assert len(wanted) > 20 and wanted <= set(spellings)
    words = [word for flag in wanted for word in accepted_spellings(flag, spellings)]
    assert {"--tp", "--conf", "--hos", "--por", "--nnod", "--expert-p"} <= set(words)
    assert [word for word in words if not findings(kind, word)] == []
    assert [word for word in words if not findings(kind, f"{word}=1")] == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_other_flag_of_the_engine_is_passed(
    kind: str, spellings: dict[str, tuple[str, ...]]
) -> None:
    taken = planned(kind) | set(REFUSED_FLAGS) | set(OWNED_FLAGS)
    others = {
        name for name, same in spellings.items() if not taken & set(same) and not names_secret(name)
    }
    assert len(others) > 450
    assert [name for name in sorted(others) if findings(kind, name)] == []


def test_what_is_refused_is_an_option_of_the_engine(spellings: dict[str, tuple[str, ...]]) -> None:
    assert {*REFUSED_FLAGS, *LOCAL_FLAGS} <= set(spellings)
    # the branch has these
    assert set(OWNED_FLAGS) - set(spellings) == {"--tp", "--speculative-algo"}


def test_nothing_but_config_reads_arguments_from_a_file(parser: Any) -> None:
    assert (parser["file_prefix"], parser["abbreviates"]) == (None, True)


def problems(base: Path, words: str) -> tuple[tuple[Problem, ...], int]:
    """Return what is wrong with a site of these `extra_args`, and their line."""
    text = base.read_text()
    lines = [one for one in text.splitlines() if not one.startswith("extra_args")]
    line = next(n for n, one in enumerate(lines) if one.startswith("tp = ")) + 1
    lines.insert(line, f"extra_args = {words}")
    with pytest.raises(UsageError) as caught:
        load_source(decode_source(base.parent / "mine.toml", "\n".join(lines).encode()))
    return caught.value.problems, line + 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("words", "seen", "wanted"),
    [
        ('["--config", "a.yaml"]', "flag `--config`", "nothing checks"),
        ('["--conf=a.yaml"]', "flag `--conf`", "nothing checks"),
        ('["--enable-metr"]', "flag `--enable-metr`", "left to the plan"),
        ('["--use-ray"]', "flag `--use-ray`", "the server that the plan starts"),
        ('["-h"]', "flag `-h`", "an engine that serves"),
        ('["--nod=1"]', "flag `--nod`", "only in `nodes`"),
        ('["--m", "1"]', "`--m`, the beginning of --max-", "a flag in full"),
    ],
)
def test_a_refusal_names_file_and_line(kind: str, words: str, seen: str, wanted: str) -> None:
    (problem,), line = problems(KINDS[kind], words)
    assert problem.where.endswith(f"mine.toml:{line}")
    assert seen in problem.seen and wanted in problem.wanted
    assert problem.fix


def test_what_one_cpu_needs_is_left_to_its_plan_and_free_in_a_fleet() -> None:
    (problem,), line = problems(LOCAL, '["--devi", "cuda"]')
    assert (problem.seen, problem.where[-3:]) == ("flag `--devi`", f":{line}")
    assert findings("fleet", "--device") == []
