"""Reported faults of a node's system, by number, with what must be said of each."""

import json

import pytest

from tests.doctor.stand import BUDDY, GIB, GPU_PROCESSES, GPUS, Stand, burned
from tetraspark.doctor.baseline import NodeState, keep_baseline
from tetraspark.doctor.check import Check
from tetraspark.doctor.gpu import mebibytes, rows
from tetraspark.fleet.facts import Said


def test_L13_the_models_path_is_expanded_on_each_node(stand: Stand) -> None:
    shown = {one.node: one.observed for one in stand.examine("CHECKPOINT.FOLDER").checks
             if one.id == "CHECKPOINT.FOLDER"}  # fmt: skip
    assert shown["spark1"].startswith("/home/alice/models/v4: ")
    assert shown["spark4"].startswith("/home/bob/models/v4: ")


@pytest.mark.parametrize(
    ("release", "options", "verdict"),
    [
        ("6.17.0-1031-nvidia", "quiet", "ok"),
        ("7.0.0-1019-nvidia", "quiet", "failed"),
        ("7.0.0-1019-nvidia", "quiet kho=off", "warning"),
        ("6.11.0-1016-nvidia", "quiet", "warning"),
        ("7.0.0-2001-nvidia", "quiet", "warning"),
        ("", "", "unknown"),
    ],
)
def test_L39_kernels_on_which_rdma_memory_fails(
    stand: Stand, release: str, options: str, verdict: str
) -> None:
    stand[2].say("kernel", f"{release}\n")
    stand[2].files["/proc/cmdline"] = f"BOOT_IMAGE=/vmlinuz {options}\n"
    stand[2].memory["CmaTotal"] = 0
    found = stand.check("KERNEL.RELEASE", "spark2")
    assert found.verdict == verdict
    if release:
        assert found.observed.startswith(f"{release}, CmaTotal 0 MiB")
    if verdict in ("failed", "warning"):
        assert "https://forums.developer.nvidia.com/" in found.fix


def test_L43_memory_in_the_page_cache_is_available_and_not_free(stand: Stand) -> None:
    cached = {"MemFree": 2_097_152, "MemAvailable": 122_683_392, "Cached": 119_537_664}
    stand[2].memory |= cached
    assert stand.check("MEMORY.AVAILABLE", "spark2").verdict == "ok"
    found = stand.check("MEMORY.FREE", "spark2")
    assert found.verdict == "warning"
    assert found.observed == (
        "MemFree 2.0 GiB, MemAvailable 117.0 GiB of 121.7 GiB; page cache 114.1 GiB"
    )
    assert found.fix.startswith("tetraspark weights evict --site ")
    assert "drop_caches" in found.fix


def test_L44_memory_that_nvidia_smi_does_not_know_is_unknown_and_not_none() -> None:
    assert [mebibytes(text) for text in ("[N/A]", "Not Supported", "19135 MiB", "19135", "")] == [
        *(None, None, 19135, 19135, None)
    ]


def test_L44_memory_is_judged_by_meminfo_alone(stand: Stand) -> None:
    assert "memory unknown to nvidia-smi" in stand.check("GPU.PRESENT", "spark1").observed
    stand[1].memory |= {"MemFree": 43_536_875, "MemAvailable": 121_267_814}
    found = stand.check("MEMORY.AVAILABLE", "spark1")
    assert found.verdict == "ok"
    assert found.observed.startswith("MemFree 41.5 GiB, MemAvailable 115.6 GiB of ")
    stand[2].say("gpus", f"{GPUS}0, NVIDIA GB10, 580.1, Not Supported, Not Supported\n")
    assert stand.check("GPU.PRESENT", "spark2").verdict == "ok"


def test_L44_processes_on_the_gpu_are_told_with_their_memory(stand: Stand) -> None:
    said = Said(0, f"{GPU_PROCESSES}114687, /usr/bin/python3, 19135 MiB\n", "")
    assert rows(said, 3) == [["114687", "/usr/bin/python3", "19135 MiB"]]
    stand[3].say("gpu processes", said.stdout)
    found = stand.check("GPU.IDLE", "spark3")
    assert (found.verdict, found.observed) == (
        "failed",
        "pid 114687 (/usr/bin/python3), 19135 MiB",
    )
    stand[3].say("gpu processes", f"{GPU_PROCESSES}2211, /usr/lib/xorg/Xorg, 18 MiB\n")
    assert stand.check("GPU.IDLE", "spark3").verdict == "ok"


def test_L45_free_memory_in_small_blocks_alone(stand: Stand) -> None:
    stand[2].files["/proc/buddyinfo"] = (
        "Node 0, zone      DMA     10      4      1      0      0    0   0   0   0  0  0\n"
        "Node 0, zone   Normal  90211  40022   1200    310     40    8   1   0   0  0  0\n"
    )
    found = stand.check("MEMORY.FRAGMENTED", "spark2")
    assert (found.verdict, found.observed) == ("warning", "none")
    assert "compact_memory" in found.fix
    stand[2].files["/proc/buddyinfo"] = BUDDY
    assert stand.check("MEMORY.FRAGMENTED", "spark2").verdict == "ok"


NVRM = (
    "[ 9001.5] NVRM: nvCheckOkFailedNoLog: Check failed: Out of memory [NV_ERR_NO_MEMORY] "
    "(0x00000051) returned from _memdescAllocInternal(pMemDesc) @ mem_desc.c:1353"
)


def test_L45_lines_of_the_driver_are_counted_from_the_journal_or_else_dmesg(stand: Stand) -> None:
    stand[2].say("journal", f"{NVRM}\n{NVRM}\n[ 9002.0] NVRM: GPU at PCI:000f:01:00\n")
    found = stand.check("LOG.NVRM", "spark2")
    assert found.verdict == "warning"
    assert found.observed.startswith("2 lines, the last: ")
    stand[3].say("journal", rc=1, stderr="No journal files were opened due to insufficient permiss")
    stand[3].say("dmesg", f"[ 1.0] Booting\n{NVRM}\n")
    assert stand.check("LOG.NVRM", "spark3").observed.startswith("1 lines")
    stand[4].say("journal", rc=127, stderr="journalctl: No such file or directory")
    stand[4].say("dmesg", rc=1, stderr="dmesg: read kernel buffer failed: Operation not permitted")
    assert stand.check("LOG.NVRM", "spark4").verdict == "unknown"


def test_L47_what_an_update_changed_since_the_last_good_start(stand: Stand) -> None:
    good = NodeState("6.17.0-1026-nvidia", "580.159.03", int(110.6 * GIB))
    keep_baseline("four", {"spark2": good})
    stand[2].say("gpus", f"{GPUS}0, NVIDIA GB10, 580.173.02, [N/A], [N/A]\n")
    stand[2].memory |= {"MemAvailable": int(102.0 * GIB / 1024)}
    versions = stand.check("HISTORY.VERSIONS", "spark2")
    assert versions.verdict == "warning"
    assert versions.observed == "kernel 6.17.0-1031-nvidia, driver 580.173.02"
    assert "kernel 6.17.0-1026-nvidia, driver 580.159.03" in versions.wanted
    memory = stand.check("HISTORY.MEMORY", "spark2")
    assert (memory.verdict, memory.observed) == ("warning", "102.0 GiB, 8.6 GiB less")
    assert {one.node for one in stand.examine("HISTORY.MEMORY").checks
            if one.id == "HISTORY.MEMORY"} == {"spark2"}  # fmt: skip


def test_L50_a_container_that_starts_again_and_again_is_a_failure(stand: Stand) -> None:
    state = {"Status": "running", "OOMKilled": False}
    stand[2].container = {"Name": "/tetraspark-four-r1", "State": state, "RestartCount": 11}
    found = stand.check("LINE.RESTARTS", "spark2")
    assert (found.verdict, found.observed) == ("failed", "RestartCount 11, status running")
    other = {"Names": "vss", "State": "restarting", "Status": "Restarting (1) 5 seconds ago"}
    stand[3].say("docker ps", json.dumps(other) + "\n")
    found = stand.check("LINE.RESTARTS", "spark3")
    assert (found.verdict, found.observed) == ("failed", "vss: Restarting (1) 5 seconds ago")


def test_L57_shared_memory_of_an_earlier_run(stand: Stand) -> None:
    stand[2].sizes |= {"/dev/shm/psm_12ab": GIB, "/dev/shm/tetraspark-7-8-0": GIB // 2}
    stand[2].sizes["/dev/shm/pulse-shm-1"] = GIB
    found = stand.check("LINE.SEGMENTS", "spark2")
    assert found.verdict == "warning"
    assert found.observed.startswith("2 segments, 1.5 GiB: ")
    assert "tetraspark stop" in found.fix


def test_L57_containers_of_this_line_and_of_no_other(stand: Stand) -> None:
    rows = [
        {"Names": "tetraspark-four-r1", "State": "running", "Status": "Up 3 hours"},
        {"Names": "tetraspark-fourteen-r1", "State": "running", "Status": "Up 4 hours"},
        {"Names": "x", "State": "exited", "Status": "Exited (0)", "Labels": "tetraspark.line=four"},
    ]
    stand[2].say("docker ps", "".join(json.dumps(row) + "\n" for row in rows))
    stand[2].sizes["/dev/shm/psm_12ab"] = GIB
    found = stand.check("LINE.CONTAINERS", "spark2")
    assert found.verdict == "failed"
    assert found.observed == "tetraspark-four-r1: Up 3 hours, x: Exited (0): the line runs"
    assert stand.check("LINE.SEGMENTS", "spark2").verdict == "ok"
    stand[3].say("docker ps", json.dumps(rows[1]) + "\n")
    assert stand.check("LINE.CONTAINERS", "spark3").verdict == "ok"


def burn_checks(stand: Stand, *rates: float) -> dict[str | None, Check]:
    for number, rate in enumerate(rates, 1):
        stand[number].burn = burned(rate, "850" if rate < 50 else "2200", "30.2")
    found = stand.examine("TIME", burn=True).checks
    return {one.node: one for one in found if one.id == "BURN.CLOCK"}


def test_L70_a_clock_latched_low_fails_the_bound(stand: Stand) -> None:
    found = burn_checks(stand, 61.2, 60.8, 23.9, 61.0)
    assert [one.verdict for one in found.values()] == ["ok", "ok", "failed", "ok"]
    slow = found["spark3"]
    assert slow.observed == "23.9 TFLOPS, SM at 850 MHz, 30 W; median 60.9 TFLOPS"
    assert "unplug its power" in slow.fix


def test_L70_nodes_are_compared_with_each_other(stand: Stand) -> None:
    found = burn_checks(stand, 61.2, 60.8, 61.0, 54.0)
    assert [one.verdict for one in found.values()] == ["ok", "ok", "ok", "failed"]


AER = "mlx5_core 0002:01:00.0: PCIe Bus Error: severity={}, type=Data Link Layer, (Receiver ID)"


def test_L72_pcie_errors_are_counted_by_device(stand: Stand) -> None:
    port = "pcieport 0002:00:00.0: AER: Correctable error message received from 0002:01:00.0"
    stand[2].say("journal", f"k: {AER.format('Corrected')}\nk: {port}\nk: {port}\n")
    found = stand.check("LOG.AER", "spark2")
    assert found.verdict == "warning"
    assert found.observed.startswith("0002:01:00.0 1 lines, 0002:00:00.0 2 lines; the last: ")
    stand[3].say("journal", f"k: {AER.format('Uncorrected (Fatal)')}\n")
    assert stand.check("LOG.AER", "spark3").verdict == "failed"
