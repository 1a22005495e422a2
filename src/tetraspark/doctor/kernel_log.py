"""What the kernel has logged since the node booted: memory the driver lacked, PCIe errors."""

import re
from collections import Counter
from collections.abc import Iterator

from tetraspark.doctor.finding import Finding
from tetraspark.doctor.node_view import NodeView
from tetraspark.fleet.facts import Wanted

PATTERN = "NVRM|AER:|PCIe Bus Error"
WANTED = Wanted(
    commands={
        "journal": ("journalctl", "--no-pager", "-k", "-b", "-n", "400", "--grep", PATTERN),
        "dmesg": ("dmesg",),
    }
)
BLIND = re.compile(
    r"not seeing messages from other users|insufficient permissions|No journal files were"
    r"|not permitted|Permission denied|--grep.*not (compiled|supported)|Compiled without pattern"
)
NO_MEMORY = re.compile(r"NVRM: .*(NV_ERR_NO_MEMORY|[Oo]ut of memory)")
AER = re.compile(r"(\S+) (\w{4}:\w\w:\w\w\.\w): (?:AER|PCIe Bus Error): (.*)")
READERS = "sudo usermod -aG adm,systemd-journal $USER"


def kernel_lines(view: NodeView) -> list[str] | None:
    """Return kernel messages of this boot, or None where this login may see none."""
    for name in ("journal", "dmesg"):
        said = view.said(name)
        # journalctl ends with 1 where nothing matches.
        good = (0, 1) if name == "journal" else (0,)
        if said.rc in good and not BLIND.search(said.stderr):
            return said.stdout.splitlines()
    return None


def _blind(view: NodeView, wanted: str) -> Finding:
    seen = "this login may read neither the kernel's journal nor dmesg"
    return Finding("unknown", seen, wanted, view.shell(READERS))


def nvrm(view: NodeView) -> Iterator[Finding]:
    """Judge the lines in which the GPU driver says that it got no memory."""
    wanted, lines = "no line of the GPU driver (NVRM) about memory since boot", kernel_lines(view)
    if lines is None:
        yield _blind(view, wanted)
        return
    found = [line for line in lines if NO_MEMORY.search(line)]
    if found:
        seen = f"{len(found)} lines, the last: {found[-1].strip()[-200:]}"
        yield Finding("warning", seen, wanted, f"reboot the node: {view.shell('sudo reboot')}")
    else:
        yield Finding("ok", "none", wanted)


def aer(view: NodeView) -> Iterator[Finding]:
    """Count PCIe errors since boot, by device."""
    wanted, lines = "no PCIe error (AER) since boot", kernel_lines(view)
    if lines is None:
        yield _blind(view, wanted)
        return
    found = [match for match in map(AER.search, lines) if match]
    if not found:
        yield Finding("ok", "none", wanted)
        return
    counts = Counter(match[2] for match in found)
    seen = ", ".join(f"{device} {count} lines" for device, count in counts.items())
    last = found[-1][3].strip()[:120]
    fatal = any(re.search(r"[Uu]ncorrect|[Ff]atal", match[3]) for match in found)
    fix = view.shell("sudo dmesg | grep -E 'AER|PCIe Bus Error'")
    fix += "; check temperature and seating, then power the node off at the wall"
    yield Finding("failed" if fatal else "warning", f"{seen}; the last: {last}", wanted, fix)
