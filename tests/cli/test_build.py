"""`tetraspark build` as far as no node is touched: its plan, and what it refuses."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleet.sources import Workshop
from tests.images.web import Web
from tests.serving import write_site
from tetraspark.images import contents, tree

NODES = ["spark1", "spark2", "spark3", "spark4"]


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Workshop]:
    """A site whose files are fetched, and nobody at the addresses of its nodes."""
    web = Web()
    made = Workshop(tmp_path, "planned", web, f"sha256:{'5' * 64}")
    made.fill()
    yield made
    web.close()


def files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


def test_a_plan_has_every_step_in_order_and_writes_nothing(shop: Workshop) -> None:
    before = files(shop.folder)
    done = shop.build("--dry-run", "--json", "--node", "spark2", "--no-cache")
    assert done.returncode == 0, done.stderr
    assert files(shop.folder) == before
    plan = json.loads(done.stdout)
    assert plan["nodes"] == [{"node": "spark2", "ssh": "root@10.99.0.2"}]
    steps = plan["steps"]
    assert [step["phase"] for step in steps] == (
        ["reach", "copy", "copy", "verify", "base", "base", "base", "build", "inspect", "inspect"]
    )
    assert [step["argv"][0] for step in steps] == (
        ["docker", "sh", "rsync", "python3", *["docker"] * 6]
    )
    assert [step["node"] for step in steps if step["argv"][0] == "rsync"] == ["spark2"]
    assert steps[2]["argv"][-2:] == (
        [f"{plan['context']}/", "10.99.0.2:.cache/tetraspark/planned/context/"]
    )
    assert [step["stdin"] for step in steps if step["stdin"]] == [tree.__file__, contents.__file__]
    notes = [f"must print {text}" for text in (plan["platform"], plan["tree_sha256"])]
    notes += ["only where the base was not found", "only after a pull"]
    assert [step["note"] for step in steps if step["note"]] == notes
    build = steps[7]["argv"]
    assert build[:5] == ["docker", "build", "--force-rm", "--network=none", "--no-cache"]
    assert build[-3:-1] == ["--tag", "tetraspark:planned"]


def test_a_person_sees_the_same_plan_each_command_below_where_it_runs(shop: Workshop) -> None:
    plan = json.loads(shop.build("--dry-run", "--json").stdout)
    shown = shop.build("--dry-run").stdout
    heads = [line for line in shown.splitlines() if line.startswith("# ")]
    assert len(heads) == len(plan["steps"])
    tree_hash = f"must print {plan['tree_sha256']}"
    places = [f"this machine, for {node}" for node in NODES]
    assert heads[:7] == [
        f"# reach, on each node, must print {plan['platform']}",
        "# copy, on each node",
        *(f"# copy, on {place}" for place in places),
        f"# verify, on each node, {tree_hash}, stdin is {tree.__file__} of this machine",
    ]
    assert heads[8] == "# base, on each node, only where the base was not found"
    shell = subprocess.run(
        ["sh", "-n"], input=shown[shown.index("# reach") :], capture_output=True, text=True
    )
    assert shell.returncode == 0, shell.stderr


def test_the_printed_preparation_makes_the_folder(shop: Workshop, tmp_path: Path) -> None:
    steps = json.loads(shop.build("--dry-run", "--json").stdout)["steps"]
    subprocess.run(steps[1]["argv"], cwd=tmp_path, check=True)
    assert (tmp_path / ".cache/tetraspark/planned/context").is_dir()


@pytest.mark.parametrize(
    ("words", "where"),
    [
        (["--dry-run"], "--dry-run"),
        (["--node", "spark1"], "--node"),
        (["--no-cache"], "--no-cache"),
        (["--allow-dirty"], "--allow-dirty"),
    ],
)
def test_options_of_a_build_are_refused_with_check_pins(
    shop: Workshop, words: list[str], where: str
) -> None:
    shop.web.seen.clear()
    done = shop.build("--check-pins", *words)
    assert done.returncode == 2
    assert f"error: {where}\n  seen:   given with --check-pins" in done.stderr
    assert shop.web.seen == []


def test_a_mirror_is_refused_without_check_pins(shop: Workshop) -> None:
    done = shop.build("--dry-run", "--mirror", shop.web.url)
    assert done.returncode == 2
    assert "fix:    tetraspark fetch --mirror URL" in done.stderr
    assert "TETRASPARK_MIRROR" in shop.env
    assert shop.build("--dry-run").returncode == 0


def test_an_unknown_node_is_bad_usage(shop: Workshop) -> None:
    done = shop.build("--node", "spark9")
    assert done.returncode == 2
    assert "wanted: one of spark1, spark2, spark3, spark4" in done.stderr
    assert f"fix:    tetraspark plan --site {shop.site} shows them" in done.stderr


def test_a_local_line_needs_no_image(shop: Workshop, tmp_path: Path) -> None:
    folder = tmp_path / "local"
    folder.mkdir()
    site = write_site(folder, "here")
    done = shop.build("--site", str(site))
    assert done.returncode == 2
    assert "wanted: a fleet: a local line needs no image" in done.stderr
    assert f"fix:    tetraspark serve --site {site}" in done.stderr


def test_what_a_node_says_never_moves_the_terminal(shop: Workshop, tmp_path: Path) -> None:
    """Every node's ssh answers with a title and a colour, then fails."""
    programs = tmp_path / "bin"
    programs.mkdir()
    ssh = programs / "ssh"
    said = "\\033]0;title\\007\\033[31mPermission denied (\\033[2Jnone).\\n"
    ssh.write_text(f"#!/bin/sh\nprintf '{said}' >&2\nexit 255\n")
    ssh.chmod(0o755)
    env = shop.env | {"PATH": f"{programs}:{os.environ['PATH']}"}
    argv = shop.argv("build", "--node", "spark1")
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    log = (shop.folder / "state/planned/build/spark1.log").read_text()
    for text in (done.stdout, done.stderr, log):
        assert "\x1b" not in text
    assert "Permission denied (none)." in done.stderr
    assert log.splitlines()[:2] == [
        "== reach: docker version --format {{.Server.Os}}/{{.Server.Arch}}",
        "Permission denied (none).",
    ]
