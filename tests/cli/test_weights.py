"""What `tetraspark weights` refuses before it reaches a node, and how its findings look."""

import io
import re
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from tests.serving import ROOT
from tests.weights.fleets import fleet_site
from tetraspark.cli import weights_share, weights_view
from tetraspark.cli.main import app
from tetraspark.doctor.check import Check
from tetraspark.errors import Problem, RunError, UsageError
from tetraspark.weights.copy import CopyReport
from tetraspark.weights.copy_plan import CopyPlan, Transfer
from tetraspark.weights.evict import Evicted
from tetraspark.weights.exports import Export
from tetraspark.weights.mounted import Mount
from tetraspark.weights.place import place_of
from tetraspark.weights.route import route_to
from tetraspark.weights.share import Shared
from tetraspark.weights.share_plan import SharePlan, Step
from tetraspark.weights.status import NodeWeights
from tetraspark.weights.tally import FileSum, Tally
from tetraspark.weights.verify import Verification
from tetraspark.weights.worker_copy import Copied

LOADED = fleet_site('mode = "copy"')
PLACE = place_of(LOADED)
FAULT = Problem("spark3 /m/a", "missing", "a file", "tetraspark weights copy --node spark3")
TALLY = Tally("spark1", "/m", True, {"a": FileSum(1500, "0" * 64)}, 1)


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    file = io.StringIO()
    console = Console(file=file, width=200, highlight=False, emoji=False, soft_wrap=True)
    for module in ("weights_view", "weights_share"):
        monkeypatch.setattr(f"tetraspark.cli.{module}.out", console)
    monkeypatch.setattr("tetraspark.cli.weights_share.err", console)
    monkeypatch.setattr("tetraspark.cli.output.err", console)
    return file


def refused(tmp_path: Path, mode: str, *words: str) -> str:
    """Return the problems with which a verb on a fleet of this mode ends."""
    text = (ROOT / "sites/four-sparks-switch.toml").read_text()
    text = re.sub(r"(?ms)^\[weights\]\n.*?(?=^\[)", f"[weights]\n{mode}\n", text)
    site = tmp_path / "site.toml"
    site.write_text(re.sub(r"(?ms)^\[ssh\]\n.*?(?=^\[)", "", text))
    found = CliRunner().invoke(app, ["weights", *words, "--site", str(site)])
    assert isinstance(found.exception, UsageError), found.output
    return "\n".join(map(str, found.exception.problems))


@pytest.mark.parametrize(
    ("mode", "words", "text"),
    [
        ("local", ("copy",), 'wanted: mode = "copy" for `weights copy`'),
        ("local", ("share",), 'wanted: mode = "nfs" for `weights share`'),
        ("copy", ("share", "--apply", "--dry-run"), "--dry-run: given with --apply"),
        ("copy", ("share", "--apply", "--remove"), "--remove: given with --apply"),
        (
            "copy",
            ("copy", "--node", "spark1"),
            "one of spark2, spark3, spark4: nodes that are workers",
        ),
        ("copy", ("verify", "--node", "spark9"), "nodes that have the folder themselves"),
        ("copy", ("verify", "--sums", "/no/such/file"), "/no/such/file: no such file"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_a_node_is_reached(
    tmp_path: Path, mode: str, words: tuple[str, ...], text: str
) -> None:
    assert text in refused(tmp_path, f'mode = "{mode}"', *words)


def test_a_local_line_has_no_weights_on_nodes() -> None:
    argv = ["weights", "status", "--site", str(ROOT / "sites/local.toml")]
    found = CliRunner().invoke(app, argv)
    assert 'kind = "local"' in str(found.exception)


def node_weights(node: str, holder: bool, verified: float | None, changed: bool) -> NodeWeights:
    failed = Check("CHECKPOINT.SHARDS", node, "failed", "x missing", "all", "copy it")
    return NodeWeights(
        node=node,
        holder=holder,
        folder="/home/bob/[m]",
        present=7,
        total=8,
        bytes=1500,
        missing=("x",),
        mount=Mount("/", "ext4", "/dev/nvme0n1p2"),
        volume=None,
        verified=verified,
        tree="ab" * 32,
        changed=changed,
        checks=(failed,),
    )


def test_status_shows_each_folder_and_what_is_wrong(screen: io.StringIO) -> None:
    nodes = [node_weights("spark1", True, 0.0, False), node_weights("spark2", True, 0.0, True)]
    nodes.append(node_weights("spark3", True, None, False))
    found = {one.node: one for one in nodes}
    weights_view.print_status(PLACE, {**found, "spark4": RunError(FAULT)})
    text = screen.getvalue()
    assert "/home/bob/[m]" in text and "7 of 8" in text and "/dev/nvme0n1p2 (ext4)" in text
    assert "1970-01-01 00:00 UTC, abababababab" in text
    assert "1970-01-01 00:00 UTC, changed since" in text and "never" in text
    assert "failed: spark1 CHECKPOINT.SHARDS" in text and "fix:    copy it" in text
    assert re.search(r"(?m)^spark4 +unreachable *$", text)


def test_a_verification_says_with_what_it_compared(screen: io.StringIO) -> None:
    ok = Verification({"spark1": TALLY}, (), "spark1", {"spark1": ["own.txt"]}, True)
    weights_view.print_verification(ok, Path("/state/r.json"))
    assert "every file as in spark1; receipt /state/r.json" in screen.getvalue()
    assert "left alone: own.txt" in screen.getvalue()
    wrong = Verification({"spark1": TALLY}, (FAULT,), "spark1", {}, False)
    weights_view.print_verification(wrong, Path("/state/r.json"))
    assert screen.getvalue().count("every file") == 1
    assert "error: spark3 /m/a" in screen.getvalue()


def test_a_copy_shows_its_plan_and_what_came_of_it(screen: io.StringIO) -> None:
    route = route_to(LOADED.site, "spark4")
    one = Transfer(route, "/m", "/w", ("a", "b", "c", "d"), 5000, 1000, ("e",), 9000)
    plan = CopyPlan(PLACE, TALLY, {"spark4": one, "spark3": RunError(FAULT)})
    weights_view.print_copy_plan(plan)
    text = screen.getvalue()
    assert "# spark4 /w: 4 files to send, 4.0 kB, 1.0 kB of them there from before" in text
    assert "with the names as stdin: a, b, c, …" in text and "rsync --files-from=-" in text
    copied = Copied("spark4", "/w", ("a",), ("a",), 1500, 2.5, "cd" * 32)
    weights_view.print_copy_report(CopyReport(TALLY, {"spark4": copied, "x": RunError(FAULT)}))
    text = screen.getvalue()
    assert "cdcdcdcdcdcd" in text and "had other bytes, now the head's: a" in text
    assert text.count("error: spark3 /m/a") == 2


def test_a_share_shows_its_steps_and_how_to_undo_them(screen: io.StringIO) -> None:
    export = Export("line", "/m", "/srv/nfs/line", ("10.0.22.0/24",), 1000)
    step = Step("spark2", ("docker", "volume", "create", "w"), "docker volume rm w")
    bad = Check("WEIGHTS.NFS_CLIENT", "spark3", "failed", "it is not", "admitted", "add it")
    weights_share._print_share_plan(SharePlan(export, False, (step,), (bad,)), refused=True)
    text = screen.getvalue()
    assert "on the server, as root" in text and export.text.strip() in text
    assert "# on spark2; undo: docker volume rm w\ndocker volume create w" in text
    assert "failed: spark3 WEIGHTS.NFS_CLIENT" in text and "nothing was done" in text
    read = Check("WEIGHTS.READ", "spark2", "ok", "9 entries", "them")
    weights_share._print_shared(Shared((), (), (read,)))
    assert "spark2: ok, 9 entries" in screen.getvalue()


def test_eviction_shows_free_memory_before_and_after(screen: io.StringIO) -> None:
    before = {"MemFree": 2_000_000_000, "MemAvailable": 100_000_000_000}
    after = {"MemFree": 99_000_000_000, "MemAvailable": 100_000_000_000}
    weights_view.print_evicted([Evicted("spark1", "/m", 5, 97_000_000_000, before, after)])
    assert re.search(r"97\.0 GB +2\.0 GB +99\.0 GB +100\.0 GB", screen.getvalue())
