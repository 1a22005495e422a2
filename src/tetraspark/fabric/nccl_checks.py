"""Checks of NCCL once a line has started: which library, which version, no trees, which devices.

Pure: what was read in each rank's container comes in, checks go out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tetraspark.doctor.check import Check, Verdict
from tetraspark.fabric.nccl_conf import conf_check
from tetraspark.fabric.nccl_library import DELETED, mapped_libraries
from tetraspark.fabric.nccl_log import NcclLog
from tetraspark.fabric.nccl_profile import NcclProfile, rank_problems
from tetraspark.fabric.nccl_ring_log import RingLog

DEBUG = '[fabric.nccl] debug = "INFO", debug_subsystems = ["INIT", "NET"]; then serve again'
REPLACE = "tetraspark serve --replace"


@dataclass(frozen=True)
class RankNccl:
    """NCCL as it was found in the container of one rank.

    `maps` are the texts of /proc/PID/maps of its processes and `sha256` the hash of each mapped
    library by path, as read inside the container. `environment` is that of the engine's process
    and `conf` the nccl.conf files that are there; None where they could not be read.
    """

    rank: int
    node: str
    maps: tuple[str, ...]
    sha256: Mapping[str, str]
    log: NcclLog = field(default_factory=NcclLog)
    ring: RingLog = field(default_factory=RingLog)
    environment: Mapping[str, str] | None = None
    conf: Mapping[str, str] | None = None

    @property
    def libraries(self) -> tuple[str, ...]:
        """Every libnccl that any of its processes has mapped."""
        return tuple(dict.fromkeys(one for text in self.maps for one in mapped_libraries(text)))


def start_checks(profile: NcclProfile, ranks: Sequence[RankNccl]) -> list[Check]:
    """Return the checks of a started line."""
    ring = profile.name not in ("switch", "pair")
    checks = [_library(profile, one) for one in ranks] + [_same(ranks)]
    checks += [_version(profile, one) for one in ranks]
    checks += [_variables(profile, one) for one in ranks]
    checks += [_trees(profile, one) for one in ranks if ring]
    checks += [_devices(profile, one) for one in ranks]
    for one in ranks:
        if one.conf is not None and one.environment is not None:
            checks.append(conf_check(one.node, one.conf, one.environment))
    return checks


def _library(profile: NcclProfile, one: RankNccl) -> Check:
    """One library in all processes of a rank: a second one has its own idea of the network."""
    target = next((it.target for it in profile.overlays if it.rank == one.rank), None)
    wanted = f"one libnccl, {target}" if target else "one libnccl, the image's"
    found = one.libraries
    if not found:
        fix = f"docker exec the container on {one.node}: grep -h libnccl /proc/*/maps"
        return Check("NCCL.LIBRARY", one.node, "unknown", "no libnccl seen mapped", wanted, fix)
    seen = " and ".join(found)
    if len(found) > 1:
        fix = "set neither LD_PRELOAD nor LD_LIBRARY_PATH for it; mount one over the image's file"
        return Check("NCCL.LIBRARY", one.node, "failed", seen, wanted, fix)
    if found[0].endswith(DELETED) or (target is not None and not _is(found[0], target)):
        fix = f"correct fabric.ring.nccl_target; {REPLACE}"
        return Check("NCCL.LIBRARY", one.node, "failed", seen, wanted, fix)
    return Check("NCCL.LIBRARY", one.node, "ok", seen, wanted)


def _is(mapped: str, target: str) -> bool:
    """Whether a mapped file is the target: a link is mapped by the name of what it leads to."""
    return mapped == target or mapped.startswith(f"{target}.")


def _same(ranks: Sequence[RankNccl]) -> Check:
    wanted = "the same bytes on every rank"
    hashes = {one.node: {one.sha256.get(path) for path in one.libraries} for one in ranks}
    unseen = [node for node, found in hashes.items() if not found or None in found]
    known = {value for found in hashes.values() for value in found if value}
    seen = "; ".join(
        f"{node} {', '.join(sorted(value[:12] for value in found if value)) or 'not read'}"
        for node, found in hashes.items()
    )
    if len(known) > 1:
        fix = f"bring the same libnccl and image to every node; tetraspark build; {REPLACE}"
        return Check("NCCL.SAME", None, "failed", seen, wanted, fix)
    if unseen:
        fix = "sha256sum of the mapped file inside each container"
        return Check("NCCL.SAME", None, "unknown", seen, wanted, fix)
    return Check("NCCL.SAME", None, "ok", f"sha256 {next(iter(known))[:12]}", wanted)


def _version(profile: NcclProfile, one: RankNccl) -> Check:
    told, overlaid = one.log.version, bool(profile.overlays)
    wanted = f"NCCL {profile.version}" if profile.version and not overlaid else "a version told"
    if told is None:
        return Check("NCCL.VERSION", one.node, "unknown", "the log tells none", wanted, DEBUG)
    if overlaid or profile.version is None or told == profile.version:
        return Check("NCCL.VERSION", one.node, "ok", f"NCCL {told}", wanted)
    fix = f"another library than the image's was loaded: see NCCL.LIBRARY; {REPLACE}"
    return Check("NCCL.VERSION", one.node, "failed", f"NCCL {told}", wanted, fix)


def _variables(profile: NcclProfile, one: RankNccl) -> Check:
    wanted = f"the variables of the profile {profile.name}"
    if one.environment is None:
        fix = f"docker exec the container on {one.node}: tr '\\0' '\\n' < /proc/1/environ"
        return Check("NCCL.VARIABLES", one.node, "unknown", "not read", wanted, fix)
    problems = rank_problems(profile, {one.rank: one.environment}, {one.rank: one.node})
    if problems:
        seen = "; ".join(f"{it.seen}, not {it.wanted}" if "=" in it.seen else
                         f"without {it.wanted}" for it in problems)  # fmt: skip
        return Check("NCCL.VARIABLES", one.node, "failed", seen, wanted, REPLACE)
    count = len(profile.variables) + len(profile.kept)
    return Check("NCCL.VARIABLES", one.node, "ok", f"{count} as planned", wanted)


def _trees(profile: NcclProfile, one: RankNccl) -> Check:
    """No trees on a ring: stock NCCL must not have connected any, a patched one must say so."""
    ring = one.ring
    if profile.name == "patched":
        wanted = "Tree and PAT set-up disabled by the patched library"
        if ring.disabled == {"tree", "pat"}:
            return Check("NCCL.TREES", one.node, "ok", "both disabled", wanted)
        if "rings" in ring.connected or ring.trees:
            left = " and ".join(sorted({"tree", "pat"} - ring.disabled))
            seen = f"nothing says that {left} was left out: the library is not the patched one"
            fix = f"see NCCL.LIBRARY; mount the patched file over the image's; {REPLACE}"
            return Check("NCCL.TREES", one.node, "failed", seen, wanted, fix)
        return Check("NCCL.TREES", one.node, "unknown", "the log tells nothing", wanted, DEBUG)
    wanted = "no trees connected: opposite nodes share no cable"
    if "trees" in ring.connected:
        fix = f"NCCL_CUMEM_ENABLE=1 and NCCL_RUNTIME_CONNECT=1 on every rank; {REPLACE}"
        return Check("NCCL.TREES", one.node, "failed", "trees were connected", wanted, fix)
    if not ring.channels and not ring.connected:
        return Check("NCCL.TREES", one.node, "unknown", "the log tells nothing", wanted, DEBUG)
    return Check("NCCL.TREES", one.node, "ok", "none connected", wanted)


def _devices(profile: NcclProfile, one: RankNccl) -> Check:
    expected = profile.carrying.get(one.node, ())
    wanted = f"connections on {', '.join(expected)}" if expected else "no connection over RDMA"
    names = [port.partition(":")[0] for port in one.log.devices]
    sure, maybe = one.ring.used(names)
    if not (sure or maybe):
        known = not expected and one.log.uses_sockets is not None
        verdict: Verdict = "ok" if known else "unknown"
        seen = "the log names no device of a channel"
        return Check("NCCL.DEVICES", one.node, verdict, seen, wanted, DEBUG)
    seen = f"on {', '.join(sorted(sure)) or 'none for sure'}"
    seen += f"; perhaps on {', '.join(sorted(maybe))}" if maybe else ""
    missing = set(expected) - sure
    if missing - maybe:
        fix = "tetraspark fabric nccl says which devices can carry; tetraspark fabric prove counts"
        lacking = ", ".join(sorted(missing - maybe))
        seen = f"{seen}; nothing on {lacking}" + _capped(one.ring)
        return Check("NCCL.DEVICES", one.node, "failed", seen, wanted, fix)
    if missing:
        fix = "tetraspark fabric prove counts what each device carries"
        return Check("NCCL.DEVICES", one.node, "unknown", seen, wanted, fix)
    return Check("NCCL.DEVICES", one.node, "ok", seen, wanted)


def _capped(ring: RingLog) -> str:
    return f"; listeners sent {ring.advertised} GIDs" if ring.advertised is not None else ""
