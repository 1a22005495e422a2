"""Kernel, GPU driver and firmware: the known bad ones, and those that differ between nodes."""

import re
from collections.abc import Callable, Iterator, Mapping

from tetraspark.doctor.finding import Finding
from tetraspark.doctor.gpu import gpus
from tetraspark.doctor.memory import MEMINFO, amount
from tetraspark.doctor.node_view import NodeView
from tetraspark.doctor.size import gib
from tetraspark.fleet.facts import Wanted

CMDLINE = "/proc/cmdline"
BIOS = "/sys/class/dmi/id/bios_version"
RELEASE = Wanted(commands={"kernel": ("uname", "-r")})
RELEASE_AND_MEMORY = RELEASE | Wanted(files=(CMDLINE, MEMINFO))
BOARD = Wanted(files=(BIOS,))
GOOD = re.compile(r"6\.17\.0-")
"""Kernels that lines on Sparks were reported to run on."""
BAD = re.compile(r"7\.0\.0-10\d\d\b")
"""Kernels on which registering memory for RDMA was reported to fail with ENOMEM."""
REPORTS = "https://forums.developer.nvidia.com/t/383023"


def release(view: NodeView) -> str:
    """Return the kernel's release, or ""."""
    return view.said("kernel").stdout.strip()


def known_kernel(view: NodeView) -> Iterator[Finding]:
    """Judge the kernel's release, with CmaTotal and the boot options that decide."""
    found, wanted = release(view), "a kernel that lines are known to run on (6.17)"
    if not found:
        yield Finding("unknown", "uname -r said nothing", wanted, view.shell("uname -r"))
        return
    cma = amount(view, "CmaTotal")
    options = view.facts.files.get(CMDLINE, "").split()
    seen = f"{found}, CmaTotal {'not shown' if cma is None else gib(cma)}"
    if GOOD.match(found):
        yield Finding("ok", seen, wanted)
    elif not BAD.match(found):
        fix = f"nothing is known against it; if RDMA fails with ENOMEM, see {REPORTS}"
        yield Finding("warning", seen, wanted, fix)
    elif "kho=off" in options:
        fix = f"go back to 6.17 where RDMA fails all the same; see {REPORTS}"
        yield Finding("warning", f"{seen}, booted with kho=off", wanted, fix)
    else:
        fix = f"boot 6.17, or add kho=off to the kernel's command line; see {REPORTS}"
        seen += ": registering memory for RDMA is reported to fail with ENOMEM"
        yield Finding("failed", seen, wanted, fix)


def kernels(views: Mapping[str, NodeView]) -> Iterator[Finding]:
    """Compare the kernels of the nodes."""
    yield _same(views, "kernel", release, "the same kernel on every node")


def drivers(views: Mapping[str, NodeView]) -> Iterator[Finding]:
    """Compare the GPU drivers of the nodes."""
    yield _same(views, "GPU driver", driver, "the same GPU driver on every node")


def firmware(views: Mapping[str, NodeView]) -> Iterator[Finding]:
    """Compare the firmware of the board and of the NICs."""
    yield _same(views, "firmware", _firmware, "the same firmware on every node")


def driver(view: NodeView) -> str:
    """Return the version of the GPU driver, or ""."""
    return next((gpu.driver for gpu in gpus(view) or ()), "")


def _firmware(view: NodeView) -> str:
    board = view.facts.files.get(BIOS, "").strip()
    nics = sorted({one.firmware for one in view.fabric.functions if one.firmware})
    if not nics and not board:
        return ""
    return f"board {board or 'not shown'}, NIC {', '.join(nics) or 'not shown'}"


def _same(
    views: Mapping[str, NodeView], what: str, of: Callable[[NodeView], str], wanted: str
) -> Finding:
    found = {node: of(view) for node, view in views.items()}
    unseen = [node for node, value in found.items() if not value]
    told = "; ".join(f"{node} {value or 'not seen'}" for node, value in found.items())
    values = set(found.values()) - {""}
    if len(values) > 1:
        fix = f"bring the nodes to one {what}: sudo apt-get update && sudo apt-get full-upgrade"
        return Finding("warning", told, wanted, fix)
    if unseen:
        return Finding("unknown", told, wanted, f"look at {unseen[0]}: tetraspark doctor --node")
    return Finding("ok", f"{next(iter(values), 'no node')} on all {len(found)}", wanted)
