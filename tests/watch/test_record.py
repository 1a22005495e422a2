"""What a watch keeps on disk, and how that limits what the next one may do."""

from pathlib import Path
from typing import get_args

import pytest

from tetraspark.errors import Problem, RunError
from tetraspark.site.watch import OnWedge
from tetraspark.watch.record import KEPT_ACTS, RESTARTS, Act, Page, Record, choose
from tetraspark.watch.told import told_of


def act(run: str, done: OnWedge) -> Act:
    return Act(1.0, run, "no token for 120 s", 1, done, "", "/run/wedge", {"0": "broadcast"})


@pytest.mark.parametrize("wanted", ["restart-once", "restart-without-transport"])
@pytest.mark.parametrize("before", ["restart-once", "restart-without-transport"])
def test_a_second_restart_is_never_chosen(tmp_path: Path, wanted: OnWedge, before: OnWedge) -> None:
    assert choose(wanted, Record(tmp_path).acts(), changed=False)[0] == wanted
    Record(tmp_path).add(act("first", before))
    done, why = choose(wanted, Record(tmp_path).acts(), changed=False)
    assert done == "nothing"
    assert "restarted before" in why


@pytest.mark.parametrize("wanted", ["nothing", "stop"])
def test_what_starts_nothing_may_be_done_again(tmp_path: Path, wanted: OnWedge) -> None:
    Record(tmp_path).add(act("first", "restart-once"))
    assert choose(wanted, Record(tmp_path).acts(), changed=False)[0] == wanted


@pytest.mark.parametrize("wanted", get_args(OnWedge))
def test_a_changed_site_stops_restarts_alone(wanted: OnWedge) -> None:
    done, why = choose(wanted, [], changed=True)
    if wanted in RESTARTS:
        assert (done, why.partition(",")[0]) == (
            "nothing",
            "the site file is not what this run was served from",
        )
    else:
        assert (done, why) == (wanted, f'on_wedge = "{wanted}"')


def test_serving_by_hand_puts_acts_aside_and_forgets_none_soon(tmp_path: Path) -> None:
    record = Record(tmp_path)
    for number in range(KEPT_ACTS + 5):
        record.add(act(f"run {number}", "restart-once"))
        record.served_by_hand()
        assert record.acts() == []
    text = (tmp_path / "watch-acts.json").read_text()
    assert "run 5" in text
    assert '"run 4"' not in text


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 9000, '{"acts": [3]}', '{"acts": 3}', "{}"])
def test_a_damaged_record_of_acts_lets_nothing_be_done_until_it_is_put_aside(
    tmp_path: Path, text: str
) -> None:
    """Who does not know whether the line was restarted before must not restart it."""
    file, record = tmp_path / "watch-acts.json", Record(tmp_path)
    file.write_text(text)
    with pytest.raises(RunError, match=str(file)):
        record.acts()
    with pytest.raises(RunError, match="serve --replace puts it aside"):
        record.add(act("first", "restart-once"))
    assert file.read_text() == text
    problem = record.served_by_hand()
    assert problem is not None and "put aside as watch-acts.json.damaged-1" in problem.seen
    assert (tmp_path / "watch-acts.json.damaged-1").read_text() == text
    assert record.acts() == []


def test_a_damaged_word_of_a_watch_is_told_and_written_anew(tmp_path: Path) -> None:
    (tmp_path / "watch.json").write_text("{")
    with pytest.raises(RunError, match=r"watch\.json: damaged: Invalid JSON"):
        Record(tmp_path).said()
    told = told_of(tmp_path)
    assert (told["state"], told["pid"]) == (None, None)
    assert [one["where"] for one in told["damaged"]] == [str(tmp_path / "watch.json")]


@pytest.mark.parametrize(
    "page",
    [Page(), Page("http://127.0.0.1:9400/"), Page(problem=Problem("page", "taken", "free", "ss"))],
)
def test_where_the_page_is_or_why_there_is_none_is_kept_whole(tmp_path: Path, page: Page) -> None:
    assert Record(tmp_path).page() is None
    Record(tmp_path).show(page)
    assert Record(tmp_path).page() == page
    Record(tmp_path).hide_page()
    assert Record(tmp_path).page() is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"problem": {"odd": 1}}', '{"problem": "x"}'])
def test_a_page_that_cannot_be_read_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "watch-page.json").write_text(text)
    with pytest.raises(RunError, match=r"watch-page\.json: damaged: "):
        Record(tmp_path).page()
