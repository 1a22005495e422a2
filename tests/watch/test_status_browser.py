"""The page in a real browser: fits, refreshes, says when it is stale, and obeys nobody's text."""

import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.watch import hostile
from tests.watch import status_lines as lines
from tests.watch.browser import DESKTOP, PHONE, Browser, Tab, require_browser
from tetraspark.watch.board import Board
from tetraspark.watch.http import Server, serve_page
from tetraspark.watch.observation import Observation

STATES = ("ready", "degraded", "wedged", "down", "starting", "empty")
LIVE = "document.documentElement.classList.contains('live')"
# Every text that is seen, with the contrast between its colour and that of what it lies on.
# A canvas knows every way to write a colour.
CONTRAST = """
(() => {
  const pen = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgb = (colours) => {
    pen.clearRect(0, 0, 1, 1);
    for (const one of colours) { pen.fillStyle = one; pen.fillRect(0, 0, 1, 1); }
    return [...pen.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], 0);
  const behind = (element) => {
    const found = [];
    for (let one = element; one; one = one.parentElement)
      found.unshift(getComputedStyle(one).backgroundColor);
    return ["white", ...found];
  };
  const bad = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let seen = 0;
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !element.checkVisibility()) continue;
    if (["SCRIPT", "STYLE", "title"].includes(element.tagName)) continue;
    const style = getComputedStyle(element), under = behind(element);
    const ink = element instanceof SVGElement ? style.fill : style.color;
    const [a, b] = [light(rgb([...under, ink])), light(rgb(under))];
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    seen += 1;
    if (ratio < 4.5) bad.push(`${ratio.toFixed(2)} ${element.className} ${texts.currentNode.data}`);
  }
  return {seen, bad};
})()
"""
OVER = """
(() => {
  const wide = document.documentElement.clientWidth, found = [];
  for (const one of document.querySelectorAll("body *")) {
    if (one.closest(".wide, svg") || !one.checkVisibility()) continue;
    const box = one.getBoundingClientRect();
    if (box.right > wide + .5 || box.left < -.5) found.push(`${one.tagName}.${one.className}`);
  }
  return found;
})()
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    made = Browser(require_browser(), tmp_path_factory.mktemp("profile"))
    yield made
    made.close()


@pytest.fixture
def server(board: Board) -> Iterator[Server]:
    made = serve_page(board, "127.0.0.1", 0, stale_after=3600)
    yield made
    made.close()


def seen_as(name: str, at: float) -> Observation | None:
    if name == "empty":
        return None
    made: Observation = getattr(lines, name)(at)
    return made


def url(server: Server) -> str:
    return f"http://127.0.0.1:{server.port}/"


def opened(browser: Browser, server: Server, **how: Any) -> Tab:
    tab = browser.open(url(server), **how)
    tab.until(LIVE)
    return tab


def text(tab: Tab, selector: str = "body") -> str:
    found = tab.value(f"document.querySelector({selector!r})?.innerText ?? ''")
    assert isinstance(found, str)
    return found


@pytest.mark.parametrize("name", STATES)
def test_a_state_fits_every_width_and_is_legible_in_both_colours(
    browser: Browser, server: Server, board: Board, name: str
) -> None:
    seen = seen_as(name, time.time())
    if seen is not None:
        board.post(seen)
    tab = opened(browser, server)
    papers = []
    for width, dark in ((DESKTOP, False), (700, True), (PHONE, False), (PHONE, True)):
        tab.show(width=width, dark=dark)
        assert tab.value(OVER) == []
        assert tab.value("document.documentElement.scrollWidth") <= width
        contrast = tab.value(CONTRAST)
        assert contrast["bad"] == [] and contrast["seen"] > (3 if name == "empty" else 40)
        papers.append(tab.value("getComputedStyle(document.body).backgroundColor"))
    assert papers[0] == papers[2] != papers[1] == papers[3]
    tab.show(width=DESKTOP, dark=True, media="print")
    assert tab.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert tab.value(CONTRAST)["bad"] == []
    assert tab.faults() == []
    tab.close()


@pytest.mark.parametrize("bad", [hostile.TEXT, hostile.LONG], ids=["hostile", "long"])
def test_names_that_mean_ill_do_nothing(
    browser: Browser, server: Server, board: Board, bad: str
) -> None:
    wrong = replace(hostile.everywhere(lines.degraded(time.time()), bad), rank=1)
    board.post(wrong)
    tab = opened(browser, server, width=PHONE)
    assert tab.value(OVER) == []
    # What comes later is put into the page by the script: another way in.
    board.post(replace(wrong, rank=2))
    tab.until("document.querySelector('.state .rank')?.innerText === 'rank 2'")
    assert tab.value("window.pwned ?? null") is None
    assert tab.value("document.querySelectorAll('script, style, img, [onload]').length") == 2
    assert tab.value(OVER) == []
    assert tab.value("location.href") == url(server)
    assert tab.faults() == []
    tab.close()


def test_it_follows_the_board_and_keeps_what_its_reader_opened(
    browser: Browser, server: Server, board: Board
) -> None:
    tab = opened(browser, server)
    assert "Not seen yet" in text(tab)
    now = time.time()
    board.post(lines.ready(now - 10, sent=10**9))
    tab.until("document.querySelector('.state h1')?.innerText.startsWith('Ready')")
    assert tab.value("document.title") == "ready · v41-flash"
    icon = tab.value("document.getElementById('icon').href")
    tab.value("document.getElementById('lanes').open = true")
    board.post(lines.degraded(now, sent=2 * 10**9))
    tab.until("document.querySelector('.state h1')?.innerText.startsWith('Degraded')")
    assert tab.value("document.title") == "degraded · v41-flash"
    assert tab.value("document.getElementById('icon').href") != icon
    assert tab.value("document.getElementById('lanes').open") is True
    assert "600 MB/s" in text(tab, "#lanes")
    down = tab.value(
        "(() => { const one = getComputedStyle(document.querySelector('.lane.down'));"
        " return [one.strokeDasharray, one.stroke]; })()"
    )
    up = tab.value(
        "(() => { const one = getComputedStyle(document.querySelector('.lane:not(.down)'));"
        " return [one.strokeDasharray, one.stroke]; })()"
    )
    assert down[0] != up[0] == "none" and down[1] != up[1]
    badge = tab.value("document.querySelector('.badge').textContent")
    assert "lane 1 down" in badge
    assert tab.faults() == []
    tab.close()


def test_it_says_that_the_server_is_gone_and_when_it_is_back(
    browser: Browser, board: Board
) -> None:
    board.post(lines.ready(time.time() - 120))
    server = serve_page(board, "127.0.0.1", 0, stale_after=3600)
    port = server.port
    tab = opened(browser, server)
    tab.until("document.getElementById('age').innerText.startsWith('Seen 2 min')")
    assert text(tab, "#lost") == ""
    server.close()
    tab.until("!document.getElementById('lost').hidden")
    told = text(tab, "#lost")
    assert "The server does not answer: what you see is stale." in told
    assert "the values are 2 min" in told
    assert text(tab, ".state h1").startswith("Last known: Ready")
    assert tab.value("document.title").startswith("(stale) ready")
    assert tab.value(CONTRAST)["bad"] == []
    again = serve_page(board, "127.0.0.1", port, stale_after=3600)
    board.post(lines.wedged(time.time()))
    tab.until("document.getElementById('lost').hidden")
    assert text(tab, ".state h1").startswith("Wedged")
    again.close()
    tab.close()


def test_without_a_script_it_is_whole_and_loads_itself_anew(
    browser: Browser, server: Server, board: Board
) -> None:
    board.post(lines.degraded(time.time()))
    tab = browser.open(url(server), script=False)
    assert not tab.value(LIVE)
    shown = text(tab)
    for wanted in ("Degraded", "LANE.DOWN", lines.LANE_DOWN.fix, "318", "spark4"):
        assert wanted in shown
    assert "Copy" not in shown
    assert tab.value("document.querySelector('meta[http-equiv=refresh]')?.content") == "10"
    tab.close()


def test_a_saved_page_is_whole_without_a_network(
    browser: Browser, board: Board, tmp_path: Path
) -> None:
    from tetraspark.watch.http_health import health_of
    from tetraspark.watch.page.render import Shown, render_page

    seen = lines.degraded(time.time())
    file = tmp_path / "saved.html"
    file.write_text(render_page(Shown(seen, health_of(seen, seen.at, 90), {})))
    tab = browser.open(file.as_uri())
    assert "lane 1 down" in tab.value("document.querySelector('.badge').textContent")
    loaded = (
        "performance.getEntriesByType('resource').filter((one) => !one.name.startsWith('data:'))"
    )
    assert tab.value(f"{loaded}.map((one) => one.name)") == []
    tab.until("!document.getElementById('lost').hidden")
    tab.close()


def test_a_fix_is_copied(browser: Browser, server: Server, board: Board) -> None:
    board.post(lines.degraded(time.time()))
    tab = opened(browser, server)
    tab.value("document.getElementById('copy-2').click()")
    tab.until("document.getElementById('copy-2').innerText !== 'Copy'")
    assert text(tab, "#copy-2") in ("Copied", "Selected")
    assert tab.value("getSelection().toString()") == lines.MEMORY.fix
    assert tab.faults() == []
    tab.close()


def test_all_that_is_drawn_or_pressed_has_a_name(
    browser: Browser, server: Server, board: Board
) -> None:
    board.post(lines.degraded(time.time()))
    tab = opened(browser, server)
    tab.value("document.getElementById('lanes').open = true")
    found: dict[str, list[str]] = {}
    for node in tab.call("Accessibility.getFullAXTree")["nodes"]:
        if not node["ignored"]:
            name = node.get("name", {}).get("value", "")
            found.setdefault(node["role"]["value"], []).append(name)
    for role in ("button", "link", "image", "meter", "heading", "region"):
        assert found[role] and all(found[role]), role
    assert "Copy the fix of LANE.DOWN" in found["button"]
    assert any("Down: rank 1 to rank 2, lane 1" in name for name in found["image"])
    assert found["heading"][0] == "Degraded rank 1"
    assert tab.value("document.documentElement.lang") == "en"
    order = tab.value(
        "[...document.querySelectorAll('h1, h2, h3')].map((one) => Number(one.tagName[1]))"
    )
    assert all(after - before <= 1 for before, after in pairwise(order))
    tab.close()


def test_on_paper_the_lanes_are_open(browser: Browser, server: Server, board: Board) -> None:
    board.post(lines.ready(time.time()))
    tab = opened(browser, server)
    height = "document.querySelector('#lanes table').getBoundingClientRect().height"
    assert tab.value(height) == 0 or not tab.value(
        "document.querySelector('#lanes table').checkVisibility({contentVisibilityAuto: true})"
    )
    tab.show(width=DESKTOP, dark=False, media="print")
    assert tab.value(height) > 300
    assert tab.value("document.querySelector('#lanes table').checkVisibility()")
    tab.close()
