"""The page as text: whole without a browser, closed to what it shows, right in its figures."""

import math
from dataclasses import replace
from itertools import combinations

import pytest

from tests.measure.report.html import Page
from tests.watch import hostile
from tests.watch import status_lines as lines
from tetraspark.watch.http_health import health_of
from tetraspark.watch.observation import Observation
from tetraspark.watch.page import picture as drawing
from tetraspark.watch.page import quantity
from tetraspark.watch.page.icon import MARKS, icon_of
from tetraspark.watch.page.lane_rates import Lane, LaneRates
from tetraspark.watch.page.lanes import lane_ends, lane_pairs
from tetraspark.watch.page.picture import picture
from tetraspark.watch.page.quantity import NOT_TOLD
from tetraspark.watch.page.render import PARTS, Shown, render_page, render_parts
from tetraspark.watch.page.sparkline import sparkline

NOW = lines.AT + 2
STATES = ("ready", "degraded", "wedged", "down", "starting")


def shown(seen: Observation | None, rates: dict[Lane, float] | None = None) -> Shown:
    return Shown(seen, health_of(seen, NOW, 90), rates or {})


def page(seen: Observation | None) -> Page:
    return Page(render_page(shown(seen)))


def loaded(found: Page) -> list[str]:
    return [one for one in found.loaded() if not one.startswith("data:image/svg+xml,")]


@pytest.mark.parametrize("name", STATES)
def test_all_that_is_known_stands_on_the_page_without_a_script(name: str) -> None:
    seen: Observation = getattr(lines, name)()
    found = page(seen)
    assert loaded(found) == []
    words = found.words
    for text in (name.capitalize(), seen.reason, seen.line, seen.run, *lines.NODES):
        assert text and text in words
    for part, version in seen.versions.items():
        assert part in words and version in words
    for one in seen.findings:
        assert {one.id, one.where, one.observed, one.wanted, one.fix} <= set(found.text)
    ids = [value for _, name, value in found.attributes if name == "id"]
    assert len(ids) == len(set(ids)) and set(PARTS) <= set(ids)


def test_the_figures_are_those_of_the_observation() -> None:
    words = page(lines.degraded()).words
    for text in ("318 tok/s", "43 %", "91 % nearly full", "2.41 tokens", "18,204,991"):
        assert text in words
    for text in ("✓ answered in 0.42 s, 12 s before this look", "11.4 GiB", "91,204,113"):
        assert text in words
    assert "Degraded rank 1" in words
    assert page(lines.wedged()).words.count("waiting") == words.count("waiting") + 3
    assert "4 nodes, 12 lanes, 1 down" in words
    assert "lane 1 down" in words


def test_an_empty_page_says_so() -> None:
    found = page(None)
    assert "Not seen yet" in found.words and "table" not in found.tags
    assert render_parts(shown(None))["fleet"].strip() == ""


@pytest.mark.parametrize("text", [hostile.TEXT, hostile.LONG], ids=["hostile", "long"])
@pytest.mark.parametrize("name", STATES)
def test_nothing_that_is_shown_becomes_part_of_the_page(name: str, text: str) -> None:
    bad = replace(hostile.everywhere(getattr(lines, name)(), text), rank=0)
    source = render_page(shown(bad))
    found = Page(source)
    allowed = {tag for state in STATES for tag in page(getattr(lines, state)()).tags}
    assert set(found.tags) <= allowed
    assert found.tags.count("script") == found.tags.count("style") == 1
    assert not [one for _, one, _ in found.attributes if one.startswith("on")]
    assert not [value for _, one, value in found.attributes if one == "style"]
    assert loaded(found) == []
    assert not set("\x1b\x07\x00\u202e\u2066\udc80") & set(source)
    source.encode()


def test_a_look_that_is_too_old_is_called_so() -> None:
    old = Shown(lines.ready(), health_of(lines.ready(), lines.AT + 500, 90), {})
    words = Page(render_page(old)).words
    assert "Last known: Ready" in words
    assert "Stale. The last look at the line is 500 s old" in words
    assert old.title == "last known: ready · v41-flash"
    assert old.icon != shown(lines.ready()).icon


def test_every_state_has_a_shape_of_its_own() -> None:
    shapes = [MARKS[state] for state in STATES]
    assert all(one != other for one, other in combinations(shapes, 2))
    assert icon_of("no such state") == icon_of("")


# --- rates ---


def test_a_rate_needs_two_looks_at_one_run() -> None:
    rates = LaneRates()
    assert rates.look(None) == {}
    first = lines.ready(lines.AT, sent=1000)
    assert rates.look(first) == {}
    second = lines.ready(lines.AT + 10, sent=3000)
    found = rates.look(second)
    assert found[(0, 1, 0)] == pytest.approx(1200)  # 6000 bytes more in 10 s
    assert rates.look(second) == found
    other = replace(lines.ready(lines.AT + 20, sent=5000), run="another")
    assert rates.look(other) == {}


def test_a_counter_that_fell_has_no_rate() -> None:
    rates = LaneRates()
    rates.look(lines.ready(lines.AT, sent=1000))
    assert rates.look(lines.ready(lines.AT + 10, sent=10)) == {}
    assert rates.look(lines.ready(lines.AT + 10, sent=20)) == {}, "no time between the two"
    assert min(rates.look(lines.ready(lines.AT + 11, sent=20)).values()) == 0


# --- picture ---


def test_a_lane_is_down_when_either_end_says_so_and_carries_what_both_send() -> None:
    seen = lines.degraded()
    ends = lane_ends(seen, {(1, 2, 1): 5.0, (2, 1, 1): 7.0})
    pairs = {(one.low, one.high, one.lane): one for one in lane_pairs(ends)}
    assert len(ends) == 24 and len(pairs) == 12
    assert not pairs[(1, 2, 1)].up and pairs[(1, 2, 1)].rate == 12
    assert pairs[(1, 2, 0)].up and pairs[(1, 2, 0)].rate is None


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 8])
def test_boxes_stand_apart_and_within_the_drawing(count: int) -> None:
    ranks = tuple(replace(lines.ranks(1)[0], rank=rank, lanes=()) for rank in range(count))
    made = picture(ranks, ())
    half = [one / 2 for one in drawing.BOX]
    for box in made.boxes:
        assert half[0] <= box.x <= drawing.WIDTH - half[0]
        assert half[1] <= box.y <= made.height - half[1]
    for one, other in combinations(made.boxes, 2):
        assert abs(one.x - other.x) >= drawing.BOX[0] or abs(one.y - other.y) >= drawing.BOX[1]


def test_labels_of_lanes_do_not_lie_on_each_other_or_on_a_box() -> None:
    seen = lines.degraded()
    rates = {
        (end.source.rank, end.sample.peer, end.sample.lane): 1e8 for end in lane_ends(seen, {})
    }
    made = picture(seen.ranks, lane_pairs(lane_ends(seen, rates)))
    assert all(one.labelled for one in made.strokes)
    for one, other in combinations([stroke.label for stroke in made.strokes], 2):
        assert abs(one[0] - other[0]) >= 50 or abs(one[1] - other[1]) >= 12
    for stroke in made.strokes:
        for box in made.boxes:
            outside = abs(stroke.label[0] - box.x) > drawing.BOX[0] / 2
            assert outside or abs(stroke.label[1] - box.y) > drawing.BOX[1] / 2 + 5


def test_a_lane_to_nobody_is_in_the_table_and_not_in_the_picture() -> None:
    first = lines.ranks(7)[0]
    odd = tuple(replace(first.lanes[0], peer=peer) for peer in (0, 9))
    seen = replace(lines.ready(), ranks=(replace(first, lanes=odd),))
    assert picture(seen.ranks, lane_pairs(lane_ends(seen, {}))).strokes == ()
    assert "rank 9" in page(seen).words


# --- sparkline ---


def test_a_line_is_cut_where_nobody_looked() -> None:
    made = sparkline(lines.history(lines.AT))
    assert made is not None
    assert made.line.count("M") == 2 and (made.first, made.last) == (lines.AT - 600, lines.AT)
    assert made.peak == max(value for _, value in lines.history(lines.AT))
    flat = sparkline([(0, 0), (1, 0)])
    assert flat is not None and flat.peak == 0 and "nan" not in flat.line


@pytest.mark.parametrize(
    "history", [(), ((1.0, 2.0),), ((1.0, math.nan), (2.0, math.inf), (3.0, -1.0), (4.0, 1.0))]
)
def test_too_few_points_are_no_line(history: tuple[tuple[float, float], ...]) -> None:
    assert sparkline(history) is None
    assert "No history yet." in page(replace(lines.ready(), history=history)).words


# --- quantities ---


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (quantity.size(0), "0 B"),
        (quantity.size(1023), "1.00 KiB"),
        (quantity.size(512), "512 B"),
        (quantity.size(3 << 30), "3.00 GiB"),
        (quantity.size(41.3 * (1 << 30)), "41.3 GiB"),
        (quantity.size(None), NOT_TOLD),
        (quantity.rate(312.4e6), "312 MB/s"),
        (quantity.rate(999_600), "1.00 MB/s"),
        (quantity.rate(1e30), "1,000,000,000,000,000,000 TB/s"),
        (quantity.rate(math.nan), NOT_TOLD),
        (quantity.share(0.434), "43 %"),
        (quantity.share(None), NOT_TOLD),
        (quantity.count(1234567), "1,234,567"),
        (quantity.amount(318.4), "318"),
        (quantity.amount(math.inf), NOT_TOLD),
        (quantity.duration(0.42), "0.42 s"),
        (quantity.duration(0.001), "0 s"),
        (quantity.duration(0.996), "1.0 s"),
        (quantity.duration(9.96), "10 s"),
        (quantity.duration(59.6), "1 min"),
        (quantity.duration(61), "1 min 1 s"),
        (quantity.duration(3600), "1 h"),
        (quantity.duration(11_520), "3 h 12 min"),
        (quantity.duration(200_000), "2 d 7 h"),
        (quantity.duration(-5), "0 s"),
        (quantity.duration(math.nan), NOT_TOLD),
        (quantity.clock(lines.AT), "2026-11-30 00:53:20 UTC"),
        (quantity.clock(1e300), NOT_TOLD),
        (quantity.clock(math.nan), NOT_TOLD),
    ],
)
def test_a_quantity_reads_well(found: str, wanted: str) -> None:
    assert found == wanted


def test_strange_numbers_make_a_page_too() -> None:
    engine = replace(lines.ENGINE, kv_used=7.5, swa_used=-1.0, tokens_per_second=math.inf)
    seen = replace(lines.ready(), at=math.inf, since=-1e300, engine=engine, ranks=())
    words = page(seen).words
    assert "750 %" in words and "No rank was told of." in words
