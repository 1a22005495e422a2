"""What a bundle takes from one node: texts of the system, found by one look that only reads."""

import re

from tetraspark.bundle.containers import NAMES, list_command
from tetraspark.bundle.power import Journals
from tetraspark.bundle.source import TAIL_BYTES, Missing, Source, ends, why
from tetraspark.fleet.facts import Facts, Said, Wanted

_SECONDS = re.compile(r"\d+(?:\.\d+)?")
INFINIBAND = "/sys/class/infiniband/*/ports/*"
PSTORE = ("/sys/fs/pstore/*", "/var/lib/systemd/pstore/*")
FILES = {
    "os-release.txt": "/etc/os-release",
    "meminfo.txt": "/proc/meminfo",
    "buddyinfo.txt": "/proc/buddyinfo",
    "uptime.txt": "/proc/uptime",
    "cmdline.txt": "/proc/cmdline",
    "nccl.conf": "/etc/nccl.conf",
    "home-nccl.conf": "~/.nccl.conf",
}
OPTIONAL = ("nccl.conf", "home-nccl.conf")
"""Files that a node is not expected to have: they set NCCL's variables behind everyone's back."""
COMMANDS = {
    "uname.txt": ("uname", "-a"),
    "docker-version.txt": ("docker", "version"),
    "docker-info.txt": ("docker", "info"),
    "journal.txt": ("journalctl", "--no-pager", "-o", "short-iso", "-n", "1500"),
    "journal-previous-boot.txt": (
        *("journalctl", "--no-pager", "-o", "short-iso", "-n", "500", "-b", "-1"),
    ),
    "dmesg.txt": ("dmesg",),
    "nvidia-smi.txt": ("nvidia-smi", "-q"),
    "fabric/ip-addr.json": ("ip", "-j", "-d", "addr", "show"),
    "fabric/ip-route.json": ("ip", "-j", "route", "show"),
    "fabric/ip-neigh.json": ("ip", "-j", "neigh", "show"),
    "fabric/rdma-link.json": ("rdma", "-j", "link", "show"),
}


def wanted(line: str) -> Wanted:
    """Return what to look at on a node that may run ranks of a line."""
    return Wanted(
        files=(
            *FILES.values(),
            *(f"{INFINIBAND}/{name}" for name in ("state", "phys_state", "rate")),
            *(f"{INFINIBAND}/{name}/*" for name in ("gids", "gid_attrs/types", "gid_attrs/ndevs")),
            *(f"{INFINIBAND}/{name}/*" for name in ("counters", "hw_counters")),
        ),
        sizes=PSTORE,
        commands={**COMMANDS, NAMES: list_command(line)},
    )


def node_sources(facts: Facts) -> tuple[list[Source], list[Missing]]:
    """Return the texts of a node that was looked at, and what it did not give."""
    folder = f"nodes/{facts.node}"
    sources, missing = [], []
    for name, path in FILES.items():
        text = facts.files.get(facts.expand(path))
        if text is not None:
            sources.append(Source(f"{folder}/{name}", text))
        elif name not in OPTIONAL:
            missing.append(Missing(f"{folder}/{name}", f"{path} cannot be read"))
    for name in COMMANDS:
        said = facts.commands[name]
        if said.stdout.strip():
            sources.append(Source(f"{folder}/{name}", _last_part(said.stdout)))
        if said.rc or not said.stdout.strip():
            missing.append(Missing(f"{folder}/{name}", why(said)))
    sources.append(Source(f"{folder}/pstore.txt", _pstore(facts)))
    ports = _infiniband(facts)
    if ports:
        sources.append(Source(f"{folder}/fabric/infiniband.txt", ports))
    else:
        missing.append(Missing(f"{folder}/fabric/infiniband.txt", "no RDMA device"))
    return sources, missing


def journals(facts: Facts) -> Journals:
    """Return what a node's journals are judged from."""
    uptime = _SECONDS.match(facts.files.get("/proc/uptime", ""))
    return Journals(
        node=facts.node,
        current=_journal(facts.commands["journal.txt"]),
        previous=_journal(facts.commands["journal-previous-boot.txt"]),
        crashes=_crashes(facts),
        uptime=float(uptime[0]) if uptime else None,
    )


def _infiniband(facts: Facts) -> str:
    """Return the RDMA ports' files, one a line."""
    rows = (
        f"{path}: {text.strip()}"
        for path, text in sorted(facts.files.items())
        if path.startswith("/sys/class/infiniband/")
    )
    return "".join(f"{row}\n" for row in rows)


def _crashes(facts: Facts) -> tuple[str, ...]:
    return tuple(path for pattern in PSTORE for path in facts.globs.get(pattern, ()))


def _pstore(facts: Facts) -> str:
    crashes = _crashes(facts)
    rows = [f"{path} {facts.sizes.get(path, 'of unknown size')}\n" for path in crashes]
    closed = "" if facts.uid == 0 else f" that uid {facts.uid} may see"
    return "".join(rows) or f"no files{closed} in {', '.join(PSTORE)}\n"


def _journal(said: Said) -> str | None:
    """Return a journal; "" when there is no such boot, None when it could not be read.

    A login that may not see the system's messages gets its own alone, and a hint.
    """
    errors = said.stderr.lower()
    if "no persistent journal" in errors or "not seeing messages" in errors:
        return None
    if said.rc and "boot" in errors:
        return ""
    text = said.stdout.strip()
    return said.stdout if said.rc == 0 and text and text != "-- No entries --" else None


def _last_part(text: str) -> str:
    """Return the end of a text in whole lines, and of a JSON document all of it."""
    data = text.encode(errors="replace")
    if len(data) <= TAIL_BYTES or text.lstrip().startswith(("[", "{")):
        return text
    return ends(data)
