"""NCCL's configuration files: what they set that the environment leaves open. Pure.

NCCL reads /etc/nccl.conf and ~/.nccl.conf in the container. They never outrank a variable, but
they fill in every one that is not set, and an image may bring one along.
"""

from collections.abc import Iterable, Mapping

from tetraspark.doctor.check import Check

FILES = ("/etc/nccl.conf", "~/.nccl.conf")
HARMFUL: Mapping[str, str] = {
    "NCCL_IB_GID_INDEX": "a GID index is of one device at one moment",
    "NCCL_IB_USE_INLINE": "with PREPOST beside it the first collective of four bytes hangs",
    "NCCL_IB_PREPOST_RECEIVE_WORK_REQUESTS": "with USE_INLINE beside it the first collective hangs",
    "NCCL_SOCKET_IFNAME": "an interface is of one node",
    "NCCL_IB_HCA": "devices are of one node",
}


def parse_conf(text: str) -> dict[str, str]:
    """Return the variables of a configuration file: `NAME=VALUE` lines, `#` begins a comment."""
    found = {}
    for line in text.splitlines():
        name, equals, value = line.partition("#")[0].partition("=")
        if equals and name.strip().startswith("NCCL_"):
            found[name.strip()] = value.strip()
    return found


def conf_check(node: str, files: Mapping[str, str], environment: Iterable[str]) -> Check:
    """Return the check of one container's configuration files.

    `files` are those that are there, by path; `environment` the names that its rank has.
    """
    known = frozenset(environment)
    wanted = "no variable but those of the line"
    filled = [
        (path, name, value)
        for path, text in files.items()
        for name, value in parse_conf(text).items()
        if name not in known
    ]
    if not filled:
        seen = f"{', '.join(files)} set nothing new" if files else "no nccl.conf"
        return Check("NCCL.CONF", node, "ok", seen, wanted)
    seen = "; ".join(
        f"{path} sets {name}={value}" + (f": {HARMFUL[name]}" if name in HARMFUL else "")
        for path, name, value in filled
    )
    names = " and ".join(dict.fromkeys(name for _, name, _ in filled))
    fix = f"delete {names} from the file in the image, or set it under [env] of the site"
    harmful = any(name in HARMFUL for _, name, _ in filled)
    return Check("NCCL.CONF", node, "failed" if harmful else "warning", seen, wanted, fix)
