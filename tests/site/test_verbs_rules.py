"""Collectives over RDMA: what a site must have for the lanes, refused where it is written."""

from pathlib import Path

import pytest

from tetraspark.errors import UsageError
from tetraspark.site.load import load_source
from tetraspark.site.source import decode_source

SITES = Path(__file__).parents[2] / "sites"
VERBS = '[collectives]\ntransport = "verbs"\n'


def text_of(name: str, section: str = VERBS) -> str:
    """Return an example site with a section of collectives."""
    text = (SITES / f"{name}.toml").read_text()
    return text.replace("\n[env]\n", f"\n{section}\n[env]\n")


def refused(text: str) -> list[tuple[str, str, str]]:
    """Return line number, what was seen and the fix of each problem."""
    with pytest.raises(UsageError) as caught:
        load_source(decode_source(SITES / "mine.toml", text.encode()))
    problems = caught.value.problems
    return [
        (one.where.rpartition(":")[2], one.seen.partition(" (see ")[0], one.fix) for one in problems
    ]


def line_of(text: str, start: str) -> str:
    return str(next(i for i, line in enumerate(text.splitlines(), 1) if line.startswith(start)))


def test_the_fleet_on_a_switch_may_have_lanes() -> None:
    source = decode_source(SITES / "mine.toml", text_of("four-sparks-switch").encode())
    assert load_source(source).site.collectives is not None


@pytest.mark.parametrize(
    ("name", "old", "new", "at", "seen", "fix"),
    [
        (
            "four-sparks-switch", 'transport = "verbs"', 'transport = "shm"', "transport",
            'transport = "shm" in a fleet', 'set transport = "verbs"',
        ),
        (
            "four-sparks-ring", "", "", "transport",
            'transport = "verbs" on a ring without `ring_plan`',
            'add ring_plan = "ring.json", as `tetraspark ring plan` wrote it, or transport = "off"',
        ),
        (
            "four-sparks-switch", VERBS, VERBS + 'ring_plan = "ring.json"\n', "ring_plan",
            '`ring_plan` is set but `fabric.topology` is "switch"',
            'remove it or set topology = "ring"',
        ),
        (
            "four-sparks-switch", 'devices = ["rocep1s0f1", "roceP2p1s0f1"]',
            'devices = ["rocep1s0f1"]', "devices",
            '1 devices, nodes[0] has 2, with transport = "verbs"', "name as many",
        ),
        (
            "four-sparks-switch", VERBS, VERBS + "min_lanes = 3\n", "min_lanes",
            "min_lanes = 3, and 2 devices", "min_lanes = 2",
        ),
        (
            "four-sparks-switch", VERBS, VERBS + "lanes = 2\n", "lanes",
            '`lanes` is set but `collectives.transport` is "verbs"',
            'remove it or set transport = "shm"',
        ),
        (
            "four-sparks-switch", VERBS, VERBS + 'max_two_shot_bytes = "tuned"\n',
            "max_two_shot_bytes", 'max_two_shot_bytes = "tuned" with transport = "verbs"',
            "max_two_shot_bytes = 4194304",
        ),
    ],
)  # fmt: skip
def test_what_keeps_lanes_from_being_made(
    name: str, old: str, new: str, at: str, seen: str, fix: str
) -> None:
    text = text_of(name).replace(old, new)
    assert (line_of(text, at), seen, fix) in refused(text)


def test_a_local_line_has_no_lanes() -> None:
    text = (SITES / "local.toml").read_text().replace('"shm"', '"verbs"')
    seen = 'transport = "verbs" in a local line'
    assert (line_of(text, "transport"), seen, 'set transport = "shm"') in refused(text)


def test_an_engine_that_is_not_hooked_has_no_lanes() -> None:
    text = text_of("four-sparks-switch").replace('recipe = "release"', 'recipe = "canary"')
    seen = 'transport = "verbs" with recipe "canary"'
    fix = 'set recipe = "release", or transport = "off"'
    assert (line_of(text, "transport"), seen, fix) in refused(text)


def test_fewer_lanes_are_enough_only_over_rdma() -> None:
    text = (SITES / "local.toml").read_text()
    text = text.replace('transport = "shm"', 'transport = "shm"\nmin_lanes = 1')
    seen = '`min_lanes` is set but `collectives.transport` is "shm"'
    fix = 'remove it or set transport = "verbs"'
    assert (line_of(text, "min_lanes"), seen, fix) in refused(text)
