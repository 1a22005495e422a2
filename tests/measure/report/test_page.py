"""The page: whole without a network, closed to what reports say, honest about what is no number."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.measure.report import reports
from tests.measure.report.html import Page
from tetraspark.measure.report.anchors import anchors
from tetraspark.measure.report.compare import compare
from tetraspark.measure.report.page import render
from tetraspark.measure.report.read import read_report

AT = "2026-11-30T12:00:00+00:00"
HOSTILE = (
    '</td></svg></style><script>alert(1)</script><img src="http://198.51.100.1/x" onerror="x">'
    "{{ 7 * 7 }} {% raw %} &amp; \x1b[31mred\x07\u202eevil\u2066 ' \" <!-- ]]>"
)


def page_of(
    folder: Path, runs: dict[str, Any], against: dict[str, Any] | None = None
) -> tuple[Page, str]:
    sources = [read_report(one) for one in reports.write(folder / "run", runs)]
    others = [read_report(one) for one in reports.write(folder / "against", against or {})]
    text = render(compare(sources, others), AT)
    return Page(text), text


def test_every_suite_is_on_a_page_that_loads_nothing(tmp_path: Path) -> None:
    page, _ = page_of(tmp_path, reports.everything())
    assert page.loaded() == []
    assert "script" not in page.tags
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    assert ("meta", "content", policy) in page.attributes
    for title in ("Decode", "Prefill", "Needle", "Soak", "Cold start", "Transport", "Collectives"):
        assert title in page.words
    # decode: rate, first token and acceptance of four kinds; prefill 2, needle 1, soak 2,
    # quality 1, start 1, transport 1, collectives 2
    assert page.tags.count("svg") == 12 + 2 + 1 + 2 + 1 + 1 + 1 + 2


def hostile(value: Any) -> Any:
    """Put hostile text in place of every text but those that choose how a report is read."""
    if isinstance(value, dict):
        fixed = {"suite", "hardware_class", "text", "verdict"}
        return {key: one if key in fixed else hostile(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [hostile(one) for one in value]
    return HOSTILE if isinstance(value, str) else value


@pytest.mark.parametrize("suite", list(reports.everything()))
def test_nothing_a_report_says_becomes_part_of_the_page(tmp_path: Path, suite: str) -> None:
    report = hostile(reports.everything()[suite])
    if suite == "decode":
        report["about"]["engine"][HOSTILE] = HOSTILE
    page, text = page_of(tmp_path, {"honest": report}, {"other": hostile(reports.decode(2.0))})
    allowed = Page(page_of(tmp_path / "plain", reports.everything(), reports.everything())[1])
    assert set(page.tags) <= set(allowed.tags)
    assert page.loaded() == []
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    assert "<script>alert(1)</script>" in page.words
    assert "{{ 7 * 7 }}" in page.words
    assert not set("\x1b\x07\u202e\u2066") & set(text)


def test_an_invalid_cell_is_never_a_number(tmp_path: Path) -> None:
    report = reports.decode(broken=8)
    for cell in report["cells"]:
        for round_ in cell["rounds"]:
            if cell["concurrency"] == 8:
                round_["tokens_per_second"] = 31415.9
    page, text = page_of(tmp_path, {"decode": report})
    assert "31,416" not in text and "31415" not in text
    assert "at most 8 of 8 requests ran at once" in page.words
    crosses = [value for _, name, value in page.attributes if (name, value) == ("class", "invalid")]
    assert len(crosses) == 3 * 4


def test_a_change_of_the_servers_settings_makes_every_cell_invalid(tmp_path: Path) -> None:
    report = reports.decode(broken=0) | {"changed_settings": ["tp_size is 2, and was 4"]}
    page, _ = page_of(tmp_path, {"decode": report})
    assert page.words.count("the server's settings changed: tp_size is 2") >= 60
    assert "number" not in {value for _, name, value in page.attributes if name == "class"}


def test_two_sets_have_ratios_and_say_when_they_may_be_chance(tmp_path: Path) -> None:
    page, _ = page_of(tmp_path, {"decode": reports.decode(1.5)}, {"other": reports.decode(1.0)})
    assert page.words.count("1.500") == 16
    near, _ = page_of(tmp_path / "near", {"a": reports.decode(1.02)}, {"b": reports.decode(1.0)})
    assert near.words.count("1.020 within the spread") == 16


def test_anchors_stand_beside_sparks_only_and_each_has_its_source(tmp_path: Path) -> None:
    page, _ = page_of(tmp_path, {"decode": reports.decode(hardware_class="spark")})
    links = {value for tag, name, value in page.attributes if (tag, name) == ("a", "href")}
    assert links == {row.url for group in anchors() for row in group.row}
    assert "sparkDash 1.8.8, greedy, 256 tokens" in page.words
    assert "565.5" in page.words
    for name, said in (("stand-in", "Stand-in."), ("unknown", "Hardware not known.")):
        other, _ = page_of(tmp_path / name, {"decode": reports.decode(hardware_class=name)})
        assert "a" not in other.tags
        assert "565.5" not in other.words
        assert said in other.words
        assert f"these runs were not ({name})" in other.words


def test_every_anchor_says_who_where_and_how() -> None:
    rows = [row for group in anchors() for row in group.row]
    assert len(rows) >= 20
    decode = anchors()[0]
    assert decode.row[0].values["json"] == [124.3, 177.6, 311.2, 468.8, 653.0]
    assert decode.row[0].date == "2026-09-25"
    # Real text and filler are two protocols: a number of one is none of the other.
    texts = [group.protocol.split()[0] for group in anchors() if group.suite == "prefill"]
    assert texts == ["filler:", "real", "text"]


def test_a_task_without_a_score_is_not_a_wrong_one(tmp_path: Path) -> None:
    page, _ = page_of(tmp_path, {"quality": reports.quality()})
    assert "NUMBER 2 of 3 3 of 3 CODE 0 of 0 0 of 1" in page.words
    assert "NUMBER.003 wrong: 17" in page.words
    assert "CODE.001 not run: sandbox: no namespaces" in page.words


def zero(report: dict[str, Any]) -> None:
    for cell in report["cells"]:
        for one in cell["rounds"]:
            one["tokens_per_second"] = 0.0


def empty(report: dict[str, Any]) -> None:
    report["cells"] = []


def huge(report: dict[str, Any]) -> None:
    report["cells"][0]["concurrency"] = 10**15
    report["cells"][0]["rounds"][0]["tokens_per_second"] = 1e15


@pytest.mark.parametrize("change", [zero, empty, huge])
def test_odd_numbers_make_a_page_too(
    tmp_path: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    report = copy.deepcopy(reports.decode())
    change(report)
    page, text = page_of(tmp_path, {"odd": report}, {"other": reports.decode(2.0)})
    assert "svg" in page.tags
    assert "nan" not in text.lower().split() and "inf" not in text.lower().split()
