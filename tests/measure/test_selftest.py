"""The self-test of an image's build: it passes here; wrong values or a dead rank fail it."""

import pytest

from tetraspark.errors import Problem, RunError
from tetraspark.measure import selftest
from tetraspark.measure.collectives import OURS, Bench, Report, Row, Samples


def test_the_collectives_compute_right_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert selftest.main() == 0
    said = capsys.readouterr().out
    assert "all_reduce: 0 of" in said and "all_gather: 0 of" in said


@pytest.mark.parametrize(("wrong", "compared", "code"), [(0, 8, 0), (1, 8, 1), (0, 0, 1)])
def test_wrong_values_and_no_values_fail(
    monkeypatch: pytest.MonkeyPatch, wrong: int, compared: int, code: int
) -> None:
    def measured(bench: Bench) -> Report:
        return Report(bench, {}, (Row(64, {OURS: Samples((1.0,), wrong, compared)}),))

    monkeypatch.setattr(selftest, "measure", measured)
    assert selftest.main() == code


def test_a_rank_that_failed_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measured(bench: Bench) -> Report:
        raise RunError(Problem("rank 1", "no compiler", "a result"))

    monkeypatch.setattr(selftest, "measure", measured)
    assert selftest.main() == 1
    assert "no compiler" in capsys.readouterr().err
