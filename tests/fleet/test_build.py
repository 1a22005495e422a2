"""`tetraspark build` on four nodes with real Docker daemons: the same image, or who failed."""

import json
import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.nodes.base_image import make_base
from tests.fleet.nodes.fleet import Fleet
from tests.fleet.sources import BASE, WHEEL, Workshop
from tests.images.web import Web
from tests.serving import ROOT

pytestmark = pytest.mark.fleet
NODES = ["spark1", "spark2", "spark3", "spark4"]
STAGED = "root/.cache/tetraspark/ring/context"


@pytest.fixture(scope="session")
def base(running_fleet: Fleet) -> str:
    return make_base(running_fleet.registry, BASE.split(":")[0])


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    made = Web()
    yield made
    made.close()


@pytest.fixture
def shop(fleet: Fleet, base: str, web: Web, tmp_path: Path) -> Workshop:
    """A site whose files are fetched; the nodes keep Docker's build cache between tests."""
    made = Workshop(tmp_path, "ring", web, base)
    made.fill()
    return made


def report(shop: Workshop, *words: str, code: int = 0) -> dict[str, Any]:
    done = shop.build("--json", *words)
    assert done.returncode == code, done.stdout + done.stderr
    value: dict[str, Any] = json.loads(done.stdout)
    return value


def by_node(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["node"]: one for one in found["nodes"]}


def use_buildkit(fleet: Fleet, number: int) -> None:
    daemon = fleet[number].root / "etc/tetraspark/daemon.json"
    settings = json.loads(daemon.read_text())
    daemon.write_text(json.dumps(settings | {"features": {"buildkit": True}}))
    fleet[number].exec("kill", "-HUP", (fleet[number].root / "run/docker.pid").read_text())


def tamper(folder: Path) -> None:
    """Change a file of a staged context, its size and time kept."""
    script = folder / "files/health.py"
    state = script.stat()
    script.write_bytes(script.read_bytes().replace(b"import json", b"import jsom"))
    os.utime(script, (state.st_atime, state.st_mtime))


def test_one_node_fails_then_all_build_the_same_image(fleet: Fleet, shop: Workshop) -> None:
    """The recipe canary as it is rendered, on small stand-ins for base, branch and wheels.

    One node builds with BuildKit, the others with the legacy builder.
    """
    use_buildkit(fleet, 4)
    fleet[3].break_containers("PYTHONHOME=/nowhere")
    done = shop.build()
    assert done.returncode == 1
    for node in ("spark1", "spark2", "spark4"):
        assert f"{node}  built" in done.stdout
        assert f"{node} build: step 1/" in done.stderr
    assert "spark3  failed: build, step 4/" in done.stdout
    assert "seen:   build: command failed: The command" in done.stderr
    assert "in step 4/" in done.stderr
    assert "spark3 | Fatal Python error" in done.stderr
    log = shop.folder / "state/ring/build/spark3.log"
    assert f"all of it: {log}" in done.stderr
    assert "returned a non-zero code" in log.read_text()

    assert fleet[3].exec("docker", "ps", "--all", "--quiet").stdout == ""

    fleet[3].heal()
    found = report(shop)
    images = [by_node(found)[node]["image"] for node in NODES]
    assert len({image["id"] for image in images}) == 4
    for key in ("base_layers", "labels", "receipt", "contents"):
        assert len({json.dumps(image[key]) for image in images}) == 1
    assert images[0]["receipt"]["packages"]["kernel-one"] == "1.2"
    trees = {"/opt/tetraspark", "/sgl-workspace/sglang/python"}
    assert set(images[0]["contents"]) == {*trees, "kernel-one"}
    program = ("python3", "-c", "import sglang.srt.server_args as s; print(s.ORIGIN)")
    said = fleet[2].exec("docker", "run", "--rm", "--network=none", "tetraspark:ring", *program)
    assert said.stdout == "branch\n"

    tamper(fleet[2].root / STAGED)
    (fleet[3].root / STAGED / "files/extra").write_text("extra")
    (fleet[3].root / STAGED / "../keep").write_text("not in the context's folder")
    again = shop.build()
    assert again.returncode == 0, again.stderr
    assert "tetraspark:ring: the same image on every node" in again.stdout
    assert not (fleet[3].root / STAGED / "files/extra").exists()
    assert (fleet[3].root / STAGED / "../keep").exists()

    # A file of a layer goes bad on one node's disk: same IDs, labels and receipt as before.
    layers = fleet[2].root / "var/lib/docker/overlay2"
    (module,) = layers.glob("*/diff/usr/**/kernel_one.py")
    sound = module.read_text()
    module.write_text(sound.replace("42", "43"))
    found = report(shop, code=1)
    module.write_text(sound)
    assert [one["ok"] for one in found["nodes"]] == [True] * 4
    (problem,) = found["differences"]
    assert problem["where"] == "spark2 image"
    assert problem["seen"].startswith("contents kernel-one: ")
    assert problem["wanted"] == "as on spark1, spark3, spark4"


def test_nodes_that_are_away_full_or_without_docker_do_not_stop_the_others(
    fleet: Fleet, shop: Workshop
) -> None:
    fleet[2].power_off()
    fleet[3].docker_stop()
    fleet[4].fill_disk()
    found = report(shop, code=1)
    nodes = by_node(found)
    assert [one["ok"] for one in nodes.values()] == [True, False, False, False]
    assert nodes["spark1"]["phase"] == "done"
    log = Path(nodes["spark2"]["log"]).read_text()
    assert "== reach: docker version" in log and "ssh: connect to host 10.99.0.2" in log
    assert "Cannot connect to the Docker daemon" in Path(nodes["spark3"]["log"]).read_text()
    assert "no space left on device" in Path(nodes["spark4"]["log"]).read_text().lower()
    assert nodes["spark2"]["phase"] == nodes["spark3"]["phase"] == "reach"
    # Where an earlier test has left the same context, there is nothing to copy.
    assert nodes["spark4"]["phase"] in ("copy", "build")
    seen = {node: one["problems"][0]["seen"] for node, one in nodes.items() if not one["ok"]}
    assert "ssh failed: no route" in seen["spark2"] or "ssh failed: timed out" in seen["spark2"]
    assert "no daemon" in seen["spark3"]
    assert "no space left on device" in seen["spark4"].lower()
    fleet.heal()
    assert report(shop)["ok"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_ends_the_build(
    fleet: Fleet, shop: Workshop, number: signal.Signals, code: int
) -> None:
    argv = shop.argv("build", "--no-cache", "--node", "spark1", "--json")
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, env=shop.env, stdout=pipe, stderr=pipe, text=True) as build:
        assert build.stderr is not None
        assert any("spark1 build: step 3/" in line for line in build.stderr)
        begun = time.monotonic()
        build.send_signal(number)
        printed, said = build.communicate()
    assert build.returncode == code, said
    assert json.loads(printed) == {"ok": False, "interrupted": True, "problems": []}
    assert time.monotonic() - begun < 15
    assert "interrupted" in said
    assert not (shop.folder / "cache/tetraspark/contexts/ring").exists()


def test_files_that_are_not_as_pinned_never_reach_a_node(
    fleet: Fleet, base: str, web: Web, tmp_path: Path
) -> None:
    shop = Workshop(tmp_path, "pins", web, base)
    page = shop.pages[WHEEL]
    faults: dict[str, dict[str, object]] = {
        "sha256 ": {"body": b"other"},
        "bytes are here": {"cut": [3] * 9},
        "HTTP 404": {"status": 404},
    }
    for seen, fault in faults.items():
        sound = {"body": shop.body(WHEEL), "cut": [], "status": 200}
        vars(page).update({**sound, **fault})
        fetched = shop.fetch("kernel-one")
        assert fetched.returncode == 1
        assert "kernel-one-1.2" in fetched.stderr
        assert seen in fetched.stderr
    built = shop.build()
    assert built.returncode == 1
    assert "not fetched: engine, kernel-one-1.2" in built.stderr
    assert f"fix:    tetraspark fetch --manifest {shop.manifest} --recipe canary" in built.stderr
    shop.fill()
    stored = next(path for path in shop.cache.iterdir() if path.read_bytes() == shop.body(WHEEL))
    stored.write_bytes(shop.body(WHEEL)[:-1] + b"!")
    built = shop.build()
    assert built.returncode == 1
    assert f"error: {stored}" in built.stderr
    assert not any((node.root / "root/.cache/tetraspark/pins").exists() for node in fleet.nodes)


def test_a_base_that_cannot_be_had(fleet: Fleet, shop: Workshop) -> None:
    """By a registry's name, so that no other registry is asked after it."""
    address = f"10.99.0.254:5000/{BASE}"
    registry = fleet.registry / "manifests" / BASE.split(":")[0]
    forged = f"sha256:{'5' * 64}"
    (registry / forged).write_bytes(next(registry.glob("sha256:*")).read_bytes())
    text = shop.site.read_text()
    cases = {
        f"{address}@{forged}": "digest mismatch",
        f"{address}@sha256:{'4' * 64}": "no such image",
        f"registry.invalid/x:1@{forged}": "registry out of reach",
    }
    for base, name in cases.items():
        shop.site.write_text(text.replace("[image]", f'[image]\nbase = "{base}"'))
        found = by_node(report(shop, "--node", "spark1", code=1))["spark1"]
        assert found["phase"] == "base"
        assert f"base: {name}: " in found["problems"][0]["seen"]
    (registry / forged).unlink()


def test_a_base_for_another_machine(fleet: Fleet, shop: Workshop) -> None:
    foreign = make_base(fleet.registry, BASE.split(":")[0], "s390x")
    text = shop.site.read_text()
    shop.site.write_text(text.replace("[image]", f'[image]\nbase = "{BASE}@{foreign}"'))
    problem = by_node(report(shop, "--node", "spark1", code=1))["spark1"]["problems"][0]
    assert problem["seen"] == "the base image is of linux/s390x"
    shop.site.write_text(text)
    shop.manifest.write_text(shop.manifest.read_text().replace("linux/amd64", "linux/arm64"))
    problem = by_node(report(shop, "--node", "spark1", code=1))["spark1"]["problems"][0]
    assert problem["seen"] == "Docker of the node is of linux/amd64"


def test_a_login_that_may_not_use_docker(fleet: Fleet, shop: Workshop) -> None:
    shop.site.write_text(shop.site.read_text().replace('user = "root"', 'user = "alice"'))
    problem = by_node(report(shop, "--node", "spark1", code=1))["spark1"]["problems"][0]
    assert problem["seen"].startswith("reach: no permission: ")
    assert "usermod -aG docker alice" in problem["fix"]


def page_commands() -> list[str]:
    page = (ROOT / "docs" / "build.md").read_text()
    blocks = re.findall(r"(?ms)^```sh\n(.*?)^```$", page)
    return [line for block in blocks for line in block.splitlines()]


def test_the_commands_of_the_page(fleet: Fleet, shop: Workshop) -> None:
    """In order, on the fleet, with the stand-ins' manifest; after a build, so from the cache."""
    commands = page_commands()
    assert len(commands) == 5
    for command in commands:
        program, verb, *words = shlex.split(command)
        assert (program, verb) == ("tetraspark", "build")
        done = shop.build(*words)
        assert done.returncode == 0, command + done.stdout + done.stderr


def test_check_pins_says_what_was_looked_at(shop: Workshop) -> None:
    done = shop.build("--check-pins")
    assert done.stdout == "canary: 2 files as pinned\n"
