"""How `tetraspark stop` says what it would do, and what is not known."""

import pytest
import typer

from tetraspark.cli.stop import _print_would
from tetraspark.errors import Problem
from tetraspark.fleet.runner import Part, Present

SILENT = tuple(Problem(f"{node} ssh", "no answer", "one") for node in ("spark3", "spark4"))
UNKNOWN = "not known what would be ended on 2 nodes without an answer"
PART = Part("run", 0, "line-r0 on spark1")


@pytest.mark.parametrize(
    ("there", "told"),
    [
        (Present(()), "would end 0 containers"),
        (Present((PART,)), "would end 1 containers: line-r0 on spark1"),
        (Present((), SILENT), UNKNOWN),
        (Present((PART,), SILENT), f"would end 1 containers: line-r0 on spark1; {UNKNOWN}"),
        (Present((), SILENT[:1]), UNKNOWN.replace("2 nodes", "1 node")),
    ],
)
def test_nodes_that_did_not_answer_are_no_zero(
    capsys: pytest.CaptureFixture[str], there: Present, told: str
) -> None:
    try:
        _print_would(there, "containers", json=False)
    except typer.Exit as end:
        assert (end.exit_code, bool(there.unseen)) == (1, True)
    else:
        assert not there.unseen
    shown = capsys.readouterr()
    assert shown.out == f"{told}\n"
    assert shown.err.count("no answer") == len(there.unseen)
