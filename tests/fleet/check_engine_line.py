"""The real engine as a line of four containers on four nodes: gloo, CPU, the bundled model.

Not part of the tests' default run, for its length. Run it by its name:
`python -m pytest tests/fleet/check_engine_line.py`. The nodes and their containers see this
machine's Python environment; all else is as on a fleet: ssh, Docker, receipts, `/server_info`.
"""

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleet.line import MODEL, FleetLine, give_image
from tests.fleet.nodes.fleet import Fleet
from tests.fleet.nodes.requirements import require_fleet
from tests.serving import ROOT
from tetraspark.engine.standins import MODULES, path_of

pytestmark = [pytest.mark.fleet, pytest.mark.engine]
PYTHON = (Path(sys.prefix), Path(sys.base_prefix))
# Not /usr/sbin: Docker puts its init there.
SYSTEM = [Path("/usr") / name for name in ("bin", "lib", "lib64", "local", "include", "share")]
PACKAGES = [ROOT / "src", *(path_of(name) for name in MODULES)]
FLAGS = (
    *("--device", "cpu", "--attention-backend", "torch_native", "--disable-custom-all-reduce"),
    "--sleep-on-idle",
)
# What an image would bring.
IMAGE = (
    f"PATH={sys.prefix}/bin:/usr/bin:/bin",
    f"PYTHONPATH={':'.join(map(str, PACKAGES))}",
    "SPT_NOENV=1",
)
ENV = {
    "SGLANG_USE_CPU_ENGINE": "1",
    "SGLANG_CPU_OMP_THREADS_BIND": "0|1|0|1",
    "OMP_NUM_THREADS": "1",
    "TORCHDYNAMO_DISABLE": "1",
    "HF_HUB_OFFLINE": "1",
}


@pytest.fixture
def line(tmp_path: Path) -> Iterator[FleetLine]:
    require_fleet()
    fleet = Fleet([*PYTHON, ROOT])
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PATH", f"{fleet.bin}:{os.environ['PATH']}")
            give_image(fleet)
            variables = "\n".join(f"{name} = {json.dumps(value)}" for name, value in ENV.items())
            yield FleetLine(
                fleet,
                tmp_path,
                **{
                    'transport = "verbs"': 'transport = "off"',
                    "mem_fraction = 0.01": "mem_fraction = 0.5",
                    "ep = 4": f"ep = 4\nmax_running_requests = 8\nkv_tokens = 8192\n"
                    f"extra_args = {json.dumps(FLAGS)}",
                    "[deadlines]": f"[env]\n{variables}\n\n[deadlines]",
                    "import_seconds = 20": "import_seconds = 500",
                    "load_seconds = 20": "load_seconds = 300",
                    "warmup_seconds = 20": "warmup_seconds = 300",
                    "canary_seconds = 10": "canary_seconds = 60",
                },
            )
    finally:
        fleet.close()


def test_the_real_engine_serves_on_four_nodes(line: FleetLine) -> None:
    for node in line.fleet.nodes:
        model = node.root / MODEL.lstrip("/")
        shutil.rmtree(model)
        shutil.copytree(ROOT / "models" / "tiny", model)
        node.give_containers(*SYSTEM, *PYTHON, ROOT)
        node.break_containers(*IMAGE)
    begun = time.monotonic()
    result = line.run("serve", "--json", timeout=1200)
    assert result.returncode == 0, result.stderr[-3000:] + line.run("logs", "-n", "30").stdout
    served = json.loads(result.stdout)
    print(f"served in {time.monotonic() - begun:.0f} s: {served['seconds']}")
    assert served["answer"]["text"] == "42"
    status = line.json("status")
    assert status["verdict"] == "ready"
    assert all({"engine", "tp_all_reduce"} <= set(rank["receipts"]) for rank in status["ranks"])
    assert [one for one in status["effective"] if not one["same"]] == []
    assert line.json("smoke")["ok"]
    line.fleet[3].exec("docker", "kill", "tetraspark-line-r2")
    assert "rank 2 (spark3)" in line.json("status")["reason"]
    assert line.run("stop").returncode == 0
    assert line.containers() == []
