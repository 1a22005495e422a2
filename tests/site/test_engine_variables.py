"""Variables of the engine: one that it ignores is an error that says what it reads instead."""

import re
from pathlib import Path

import pytest

from scripts.engine_variables import table
from tests.engine.memory_tree import INSTALLED
from tetraspark.engine.tree import package_root
from tetraspark.errors import Problem, UsageError
from tetraspark.line.fleet_plan import fleet_plan
from tetraspark.site import engine_variables
from tetraspark.site.engine_variables import release_names
from tetraspark.site.load import load_source
from tetraspark.site.source import decode_source

SITES = Path(__file__).parents[2] / "sites"
LOCAL = (SITES / "local.toml").read_text() + "\n[env]\n"
RELEASE = (SITES / "four-sparks-switch.toml").read_text()
BRANCH = (SITES / "four-sparks-ring.toml").read_text()
DSPARK = '\n[speculative]\nalgorithm = "DSPARK"\n'
ACCEPT = "SGLANG_OPT_DSV41_SAMPLING_ACCEPT_GRAPH"
FOLDED = "SGLANG_DSPARK_FOLDED_SAMPLING"
PROPOSAL = "SGLANG_DSPARK_FOLDED_PROPOSAL"


def problems(text: str) -> tuple[Problem, ...]:
    try:
        load_source(decode_source(SITES / "mine.toml", text.encode()))
    except UsageError as error:
        return error.problems
    return ()


def with_key(text: str, value: str) -> str:
    """Set the typed key of a fleet site, in the section it has or in one of its own."""
    line = f"sampled_in_graph = {value}\n"
    if "[speculative]" in text:
        return text.replace("block_size = 3\n", f"block_size = 3\n{line}")
    return text.replace("[ssh]", f"{DSPARK}{line}\n[ssh]")


def variables(text: str) -> dict[str, str | None]:
    plan = fleet_plan(load_source(decode_source(SITES / "mine.toml", text.encode())))
    return {one.name: one.value for one in plan.settings if one.kind == "env"}


def test_the_table_is_what_the_installed_engine_holds() -> None:
    file = Path(engine_variables.__file__).with_name("sglang-0.5.23.variables.txt")
    assert file.read_text() == table(INSTALLED)


def test_no_name_of_the_engines_compiled_parts_is_left_out() -> None:
    root = package_root("sglang")
    assert root is not None
    found = {
        name.decode()
        for file in root.rglob("*.so")
        for name in re.findall(rb"SGLANG_[A-Z0-9_]+", file.read_bytes())
    }
    names = release_names()
    known = (*names.known, *names.deprecated)
    # strings lie one behind the other there, so a name may have the next one at its end
    assert [name for name in found if not name.startswith(known)] == []
    assert len(found) > 4


def test_what_our_own_plans_set_is_known() -> None:
    source = Path(SITES.parent / "src" / "tetraspark" / "line" / "local_plan.py").read_text()
    for name in re.findall(r'"(SGLANG_\w+)"', source):
        assert release_names().has(name)


@pytest.mark.parametrize("base", [LOCAL, RELEASE], ids=["local", "release"])
@pytest.mark.parametrize(
    ("name", "seen", "fix"),
    [
        ("SGLANG_ROCE_ALLREDUCE", "occurs nowhere in this site's engine, sglang 0.5.23", "remove"),
        ("SGLANG_CACHE_DIRR", "occurs nowhere", "did you mean SGLANG_CACHE_DIR?"),
        ("SGLANG_ENABLE_CP_V2", "is deprecated", "remove it"),
        ("SGLANG_DSPARK_OPT_FUSED_GREEDY_MARKOV", "deprecated", "SGLANG_DSPARK_USE_GREEDY_DRAFT"),
        ("SGLANG_SCHEDULER_DECREASE_PREFILL_IDLE", "deprecated", "set --enable-prefill-delayer"),
        ("SGLANG_USE_TRITON_ROUTER_SUM", "deprecated", "set SGLANG_USE_CUSTOM_ROUTER_SUM"),
        ("SGL_CACHE_DIR", "an old spelling", "set SGLANG_CACHE_DIR"),
        (FOLDED, "is deprecated", ""),
    ],
)
def test_a_name_that_the_release_does_not_read_is_refused(
    base: str, name: str, seen: str, fix: str
) -> None:
    text = f'{base}{name} = "1"\n'
    (problem,) = problems(text)
    assert problem.where.endswith(f":{text.count(chr(10))}")
    assert f"`{name}`" in problem.seen and seen in problem.seen
    assert fix in problem.fix


@pytest.mark.parametrize(
    "name",
    [
        "SGLANG_CACHE_DIR",
        "SGLANG_HOST_IP",  # read by os.environ, declared nowhere
        "SGLANG_TONIC_PAYLOAD",  # read by a compiled server
        "SGLANG_ENABLE_NVTX_ANYTHING",  # a family of names
        PROPOSAL,
        "SGL_TEST_FILES_CI_DATA_REPO",  # not an old spelling of anything
        "SGLANGUAGE",
        "MY_SGLANG_FLAG",
    ],
)
@pytest.mark.parametrize("base", [LOCAL, RELEASE], ids=["local", "release"])
def test_a_name_that_it_may_read_is_accepted(base: str, name: str) -> None:
    assert problems(f'{base}{name} = "1"\n') == ()


@pytest.mark.parametrize("base", [LOCAL, RELEASE], ids=["local", "release"])
@pytest.mark.parametrize("name", ["DSV41_CACHE_GIB", "DSV41_MOE_B12X_NEXT", "OFFLOAD_MODE"])
def test_a_name_of_the_branchs_adapters_is_refused(base: str, name: str) -> None:
    text = f'{base}{name} = "1"\n'
    (problem,) = problems(text)
    assert problem.where.endswith(f":{text.count(chr(10))}")
    assert problem.seen == f"`{name}` is not read in this site's engine, sglang 0.5.23"
    assert "branch" in problem.wanted and "remove it" in problem.fix


def test_the_release_reads_no_variable_of_the_branchs_adapters() -> None:
    quoted = re.compile(rf"""["'](?:{"|".join(engine_variables.BRANCH_NAMES)})""")
    files = list(INSTALLED.files())
    assert len(files) > 100
    assert [file for file in files if quoted.search(INSTALLED.read(file) or "")] == []


@pytest.mark.parametrize("name", ["DSV41_IO_THREADS", "DSV41_LOOP_NGRAM", "OFFLOAD_MODE"])
def test_the_sections_of_the_adapters_become_variables_of_the_branch(name: str) -> None:
    assert variables(BRANCH)[name] is not None
    assert name not in variables(RELEASE)


def test_of_the_branch_only_what_is_known_to_be_dead_is_refused() -> None:
    assert problems(f'{BRANCH}SGLANG_ROCE_ALLREDUCE = "1"\n') == ()
    assert problems(f'{BRANCH}{PROPOSAL} = "1"\n') == ()
    (problem,) = problems(f'{BRANCH}{ACCEPT} = "1"\n')
    assert problem.seen == f"`{ACCEPT}` is not read in this site's engine, sglang dsv4.1"
    assert FOLDED in problem.wanted
    assert problem.fix == "remove it and set `speculative.sampled_in_graph`"


def test_the_dead_variable_of_the_branch_names_the_key_that_works() -> None:
    (problem,) = problems(f'{RELEASE}{FOLDED} = "2"\n')
    assert problem.wanted == f"what this engine reads: {ACCEPT}"
    assert problem.fix == "remove it and set `speculative.sampled_in_graph`"


@pytest.mark.parametrize(
    ("base", "value", "wanted"),
    [
        (BRANCH, "true", {FOLDED: "2"}),
        (BRANCH, "false", {FOLDED: "0"}),
        (RELEASE, "true", {ACCEPT: "1", PROPOSAL: "1"}),
        (RELEASE, "false", {ACCEPT: "0"}),
    ],
)
def test_the_key_becomes_the_variables_of_the_images_engine(
    base: str, value: str, wanted: dict[str, str]
) -> None:
    found = variables(with_key(base, value))
    assert {name: found.get(name) for name in (FOLDED, ACCEPT, PROPOSAL) if name in found} == wanted


@pytest.mark.parametrize("base", [BRANCH, RELEASE], ids=["branch", "release"])
def test_without_the_key_the_engine_decides(base: str) -> None:
    assert not {FOLDED, ACCEPT, PROPOSAL} & set(variables(base))


@pytest.mark.parametrize(("base", "name"), [(BRANCH, FOLDED), (RELEASE, ACCEPT)])
def test_what_the_key_sets_is_not_set_in_env(base: str, name: str) -> None:
    (problem,) = problems(f'{base}{name} = "1"\n')
    assert problem.fix == "set `speculative.sampled_in_graph` instead"


@pytest.mark.parametrize("mode", ["compact", "cap-accept"])
def test_other_verify_modes_leave_sampled_requests_out_of_the_graph(mode: str) -> None:
    text = with_key(RELEASE, "true") + f'SGLANG_RAGGED_VERIFY_MODE = "{mode}"\n'
    (problem,) = problems(text)
    assert f'SGLANG_RAGGED_VERIFY_MODE = "{mode}"' in problem.seen
    assert problem.where.endswith(f":{text[: text.index('sampled_in')].count(chr(10)) + 1}")
    assert problems(text.replace("sampled_in_graph = true", "sampled_in_graph = false")) == ()
    assert problems(text.replace(f'"{mode}"', '"static"')) == ()


@pytest.mark.parametrize("value", ["0", "1"])
def test_the_proposal_is_set_in_one_place(value: str) -> None:
    text = with_key(RELEASE, "true") + f'{PROPOSAL} = "{value}"\n'
    (problem,) = problems(text)
    assert f"{PROPOSAL} beside sampled_in_graph = true" in problem.seen
    assert problems(text.replace("sampled_in_graph = true", "sampled_in_graph = false")) == ()


def test_another_algorithm_has_no_such_graph() -> None:
    text = with_key(RELEASE, "true").replace('"DSPARK"', '"EAGLE"')
    (problem,) = problems(text)
    assert 'algorithm = "EAGLE"' in problem.seen
