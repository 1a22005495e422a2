"""The page on guards: its figures, its texts and its examples are those of the code."""

import json
import re
from pathlib import Path

from tetraspark.engine.guard_env import EFFORTS, MAX_PIECE, GuardSettings
from tetraspark.engine.guard_loop import SHORT, rules_of
from tetraspark.engine.guard_request import cap_of, unknown_effort
from tetraspark.engine.guard_server import HEADER
from tetraspark.line.smoke_guards import guard_checks
from tetraspark.site.guards import OF_BRANCH, OF_RELEASE, Guards

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guards.md").read_text()
SITE_PAGE = (ROOT / "docs" / "site-file.md").read_text()
DEFAULTS = GuardSettings()


def test_the_defaults_of_the_site_file_page_are_the_plugins() -> None:
    table = SITE_PAGE.split("### `[guards]`")[1].split("###")[0]
    said = dict(re.findall(r"(?m)^\| `(\w+)` \|[^|]*\| unset(?:: (.*?))? \|", table))
    assert set(said) == set(Guards.model_fields)
    for name, default in said.items():
        if name in OF_BRANCH:
            continue
        value = getattr(DEFAULTS, name)
        words = {True: "true", EFFORTS: "all"}.get(value, str(value))
        assert default == ("`max_new_tokens`" if name == "default_new_tokens" else words), name


def test_the_page_names_every_key() -> None:
    assert all(f"`{name}`" in PAGE for name in Guards.model_fields)
    for name in set(Guards.model_fields) - set(OF_RELEASE):
        assert f"`{name}`" in PAGE.split("## The dsv4.1 branch")[1]


def test_the_examples_are_what_the_code_says() -> None:
    header, other = re.findall(rf"(?m)^{HEADER}: (.*)$", PAGE)
    assert (header, other) == (str(cap_of(100_000, DEFAULTS)), str(cap_of(None, DEFAULTS)))
    refusal, receipt = (json.loads(text) for text in re.findall(r"```json\n(.*?)\n```", PAGE))
    few = GuardSettings(reasoning_efforts=("none", "high", "max"))
    assert refusal == unknown_effort("turbo", few).as_error()
    assert receipt["settings"].items() <= DEFAULTS.variables().items()
    assert "all nine" in PAGE and len(DEFAULTS.variables()) == 9
    assert all(f"`{effort}`" in PAGE for effort in EFFORTS)


def test_the_figures_are_the_codes() -> None:
    rules = rules_of(DEFAULTS)
    assert f"up to {MAX_PIECE:,} " in PAGE
    assert f"| shorter | covers {SHORT} x `loop_ngram` x `loop_repeats` tokens |" in PAGE
    assert (rules.needed(1, False), rules.needed(32, False), rules.needed(2, False)) == (
        64,
        128,
        512,
    )
    assert "64 equal tokens; 32 tokens four times; two tokens 256 times" in PAGE
    assert rules.needed(12, True) == 32 * 12
    assert "a row of a table 32 times" in PAGE


def test_the_log_line_and_the_checks_are_the_codes() -> None:
    source = (ROOT / "src/tetraspark/engine/guard_scheduler.py").read_text()
    pattern = re.search(r'"(tetraspark guard: .*?)"', source)
    assert pattern is not None
    shape = re.escape(pattern[1]).replace("%s", r"\S+").replace("%d", r"\d+")
    assert re.search(rf"(?m)^{shape}$", PAGE)
    checks = (ROOT / "src/tetraspark/line/smoke_guards.py").read_text()
    assert guard_checks.__doc__
    assert all(f"`{id}`" in PAGE for id in re.findall(r'checked\("(GUARD\.\w+)"', checks))


def test_its_commands_name_files_that_the_tests_run() -> None:
    found = re.findall(r"(?m)^python -m pytest (\S+)$", PAGE)
    assert found and all((ROOT / file).is_file() for file in found)
