"""What the ring's verbs print of nodes and in narrow windows."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from tetraspark.cli import ring_apply_view
from tetraspark.cli.fabric_inventory import Source, of_site
from tetraspark.cli.fabric_table import unbroken
from tetraspark.cli.ring_apply_view import print_applied, print_diff
from tetraspark.errors import Problem, RunError
from tetraspark.ring.apply import Applied
from tetraspark.ring.diff import Diff


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    text = io.StringIO()
    monkeypatch.setattr(ring_apply_view, "out", Console(file=text, width=80))
    return text


def test_a_diff_without_a_node_is_unknown(printed: io.StringIO) -> None:
    print_diff(Diff("0" * 64, {"a": RunError(Problem("a", "no route", "an answer", "ssh a"))}))
    assert printed.getvalue() == "unknown: no node was seen\n"


def test_what_to_type_after_an_apply_names_the_site(printed: io.StringIO) -> None:
    done = Applied("0" * 64, "t", {"a": 1}, {"a": 0}, 100.0)
    print_applied(done, ("my ring.json", *of_site(Path("four.toml"))))
    assert "  tetraspark ring confirm 'my ring.json' --site four.toml\n" in printed.getvalue()


def test_a_narrow_table_loses_no_letter() -> None:
    text = io.StringIO()
    table = unbroken("node", "address")
    table.add_row("n" * 60, "10.100.200.254/24 10.101.200.254/24")
    Console(file=text, width=40).print(table)
    assert text.getvalue().count("n") >= 60 and "\u2026" not in text.getvalue()


@pytest.mark.parametrize(
    ("fix", "named"),
    [
        ("tetraspark fabric show; then", "tetraspark fabric show --from a.json; then"),
        (
            "tetraspark ring plan --lost-cable 1",
            "tetraspark ring plan --from a.json --lost-cable 1",
        ),
        ("tetraspark ring apply PLAN", "tetraspark ring apply PLAN"),
        ("tetraspark fabric show --site S", "tetraspark fabric show --site S"),
    ],
)
def test_a_fix_names_the_source_where_it_names_none(fix: str, named: str) -> None:
    source = Source(Path("site.toml"), Path("a.json"), ("--from", "a.json"))
    assert source.named(fix) == named


def test_an_error_from_within_names_the_site() -> None:
    source = Source(Path("x.toml"), None, of_site(Path("x.toml")))
    with pytest.raises(RunError, match=r"tetraspark ring status --site x\.toml"), source.naming():
        raise RunError(Problem("a", "b", "c", "wait; tetraspark ring status"))
