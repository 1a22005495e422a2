"""Configuration files of NCCL on a node, which fill in what a launcher does not set."""

from collections.abc import Iterator

from tetraspark.doctor.finding import Finding
from tetraspark.doctor.node_view import NodeView
from tetraspark.fleet.facts import Wanted

FILES = ("/etc/nccl.conf", "~/.nccl.conf")
WANTED = Wanted(files=FILES)


def present(view: NodeView) -> Iterator[Finding]:
    """Show the files that are there; a container has its own, and no doctor looks into it."""
    wanted = f"neither {' nor '.join(FILES)}"
    found = {
        path: " ".join(text.split())
        for name in FILES
        if (text := view.facts.files.get(path := view.facts.expand(name))) is not None
    }
    if not found:
        yield Finding("ok", "neither", wanted)
        return
    seen = "; ".join(f"{path}: {text or 'empty'}" for path, text in found.items())
    fix = view.shell(f"sudo mv {next(iter(found))} {next(iter(found))}.off")
    yield Finding("warning", seen[:400], wanted, fix)
