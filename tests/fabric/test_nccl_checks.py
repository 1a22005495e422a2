"""NCCL of a started line: libraries, versions, trees and devices, as read in the containers."""

from dataclasses import replace

import pytest

from tests.fabric.model import NAMES
from tests.fabric.nccl_sites import profile, site
from tests.fabric.sparks import ring, switched
from tetraspark.doctor.check import Check
from tetraspark.fabric.nccl_checks import RankNccl, start_checks
from tetraspark.fabric.nccl_conf import conf_check, parse_conf
from tetraspark.fabric.nccl_library import mapped_libraries
from tetraspark.fabric.nccl_log import CAUSES, nccl_causes, read_nccl
from tetraspark.fabric.nccl_profile import NcclProfile
from tetraspark.fabric.nccl_ring_log import RingLog, read_ring
from tetraspark.fleet.cause import first_cause

PIP = "/opt/tetraspark/venv/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2"
USING = (
    "NCCL INFO NET/IB : Using [0]rocep1s0f0:1/RoCE [1]rocep1s0f1:1/RoCE "
    "[2]roceP2p1s0f0:1/RoCE [3]roceP2p1s0f1:1/RoCE [RO]; OOB enP7s7:192.168.1.11<0>"
)
FUSED = [
    USING,
    "NCCL INFO NCCL version 2.30.7+cuda13.0",
    "NCCL INFO Trees [0] 2/-1/-1->0->-1 [1] -1/-1/-1->0->2",
    "NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/4",
    "NCCL INFO Channel 01/0 : 0[0] -> 1[0] [send] via NET/IB/5",
    "NCCL INFO NET/IB: Subnet-aware routing: overriding dev 4 with dev 0",
    "NCCL INFO NET/IB: Subnet-aware routing: overriding dev 4 with dev 1",
    "NCCL INFO NET/IB: Subnet-aware routing: overriding dev 5 with dev 2",
    "NCCL INFO NET/IB: Subnet-aware routing: overriding dev 5 with dev 3",
    "NCCL INFO Connected all rings, use ring PXN 0 GDR 0",
]
PATCHED = [
    USING,
    "NCCL INFO NCCL version 2.30.7+cuda13.0",
    "NCCL INFO NCCL_SWITCHLESS_RING_ONLY set by environment to 1.",
    "NCCL INFO Trees [0] 2/-1/-1->0->-1",
    "NCCL INFO NET/IB ListenerRouting format=ipv4-v1 advertised=4 observed=4",
    *(
        f"NCCL INFO NET/IB RouteFinal side={side} comm=0x1 mergedDev=1 qpIndex=0 qpNum=7 "
        f"devIndex=0 ibDev=1 hca={device} port=1 localGid=00 remoteGid=00 remoteQpNum=8"
        for side, device in (
            ("send", "rocep1s0f0"),
            ("recv", "rocep1s0f1"),
            ("send", "roceP2p1s0f0"),
            ("recv", "roceP2p1s0f1"),
        )
    ),
    "NCCL INFO Connected all rings, use ring PXN 0 GDR 0",
    "NCCL INFO Tree transport setup disabled by NCCL_SWITCHLESS_RING_ONLY",
    "NCCL INFO Pat transport setup disabled by NCCL_SWITCHLESS_RING_ONLY",
]


def maps(*paths: str) -> str:
    """The text of a /proc/PID/maps with these files in it, each mapped twice."""
    rows = ["55d0c0000000-55d0c0001000 r--p 00000000 fd:01 11 /usr/bin/python3.12", ""]
    for number, path in enumerate(paths):
        rows += [
            f"7f{number:02x}00000000-7f{number:02x}00001000 {mode} 00000000 00:4f 42   {path}"
            for mode in ("r--p", "r-xp")
        ]
    return "\n".join([*rows, "7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0 [stack]", ""])


def stock() -> NcclProfile:
    return profile(ring(), site())


def patched() -> NcclProfile:
    loaded = site(ring='nccl_library_dir = "/opt/nccl"')
    return profile(ring(), loaded, patch="dual-pci")


def ranks(found: NcclProfile, lines: list[str], path: str = PIP) -> list[RankNccl]:
    return [
        RankNccl(
            rank=rank,
            node=name,
            maps=(maps(), maps(path), maps(path)),
            sha256={path: "ab" * 32},
            log=read_nccl(lines),
            ring=read_ring(lines),
            environment=dict(found.environment),
            conf={},
        )
        for rank, name in enumerate(NAMES)
    ]


def wrong(found: NcclProfile, seen: list[RankNccl]) -> dict[tuple[str, str | None], Check]:
    return {(one.id, one.node): one for one in start_checks(found, seen) if one.verdict != "ok"}


def test_a_stock_ring_passes_every_check() -> None:
    found = stock()
    checks = start_checks(found, ranks(found, FUSED))
    assert {one.verdict for one in checks} == {"ok"}
    assert {one.id.removeprefix("NCCL.") for one in checks} == {
        *("LIBRARY", "SAME", "VERSION", "VARIABLES", "TREES", "DEVICES", "CONF")
    }
    assert len(checks) == 6 * 4 + 1


def test_a_patched_ring_passes_every_check() -> None:
    found = patched()
    assert wrong(found, ranks(found, PATCHED)) == {}


def test_a_log_that_tells_nothing_is_unknown() -> None:
    for found in (stock(), patched()):
        seen = wrong(found, ranks(found, []))
        assert {key[0] for key in seen} == {"NCCL.VERSION", "NCCL.TREES", "NCCL.DEVICES"}
        assert {one.verdict for one in seen.values()} == {"unknown"}


def test_L35_a_library_without_the_patch_is_named_on_its_rank() -> None:
    found = patched()
    seen = ranks(found, PATCHED)
    plain = [line for line in PATCHED if "disabled" not in line and "set by" not in line]
    seen[2] = replace(seen[2], ring=read_ring(plain))
    (check,) = wrong(found, seen).values()
    assert (check.id, check.node, check.verdict) == ("NCCL.TREES", "spark3", "failed")
    assert "the library is not the patched one" in check.observed
    assert "pat and tree" in check.observed


def test_L35_rings_followed_by_the_error_name_the_library_as_well() -> None:
    text = "\n".join(
        [
            "NCCL INFO Trees [0] 2/-1/-1->0->-1",
            "NCCL INFO Connected all rings, use ring PXN 0 GDR 0",
            "RuntimeError: NCCL error: unhandled system error",
        ]
    )
    one = first_cause(nccl_causes("ring"), text)
    assert one is not None and one.name == "trees on a ring"
    assert "patched library" in one.fix


def test_stock_nccl_that_connected_trees_lost_its_variables() -> None:
    found = stock()
    seen = ranks(found, [*FUSED, "NCCL INFO Connected all trees"])
    check = wrong(found, seen)["NCCL.TREES", "spark1"]
    assert check.verdict == "failed" and "NCCL_CUMEM_ENABLE=1" in check.fix


def test_L36_two_libraries_in_one_rank_are_found_in_its_maps() -> None:
    found = stock()
    seen = ranks(found, FUSED)
    other = "/nccl/libnccl.so.2.30.7"
    hashes = {PIP: "ab" * 32, other: "ab" * 32}
    seen[1] = replace(seen[1], maps=(maps(PIP), maps(other)), sha256=hashes)
    (check,) = wrong(found, seen).values()
    assert (check.id, check.node, check.verdict) == ("NCCL.LIBRARY", "spark2", "failed")
    assert check.observed == f"{PIP} and {other}" and "LD_PRELOAD" in check.fix


@pytest.mark.parametrize("joint", ["vs", "and"])
def test_L36_the_engines_own_refusal_has_a_cause(joint: str) -> None:
    text = f"AssertionError: Duplicate NCCL runtime found in the current system: /a {joint} /b"
    one = first_cause(CAUSES, text)
    assert one is not None and one.name == "two NCCL libraries"


def test_L36_other_bytes_on_one_rank_are_found_by_their_hash() -> None:
    found = stock()
    seen = ranks(found, FUSED)
    seen[3] = replace(seen[3], sha256={PIP: "cd" * 32})
    (check,) = wrong(found, seen).values()
    assert (check.id, check.verdict) == ("NCCL.SAME", "failed")
    assert "spark4 cdcdcdcdcdcd" in check.observed
    seen[3] = replace(seen[3], sha256={})
    (check,) = wrong(found, seen).values()
    assert (check.id, check.verdict) == ("NCCL.SAME", "unknown")


def test_L36_a_library_beside_the_target_or_replaced_on_disk_is_not_the_one_mounted() -> None:
    found = patched()
    for path in ("/nccl/libnccl.so.2", f"{PIP} (deleted)"):
        seen = wrong(found, ranks(found, PATCHED, path))
        assert {key[0] for key in seen} == {"NCCL.LIBRARY"} and len(seen) == 4
    # a link is mapped by the name of the file that it leads to
    assert wrong(found, ranks(found, PATCHED, f"{PIP}.30.7")) == {}


def test_field_6_another_version_than_the_images_is_named() -> None:
    found = stock()
    seen = ranks(found, FUSED)
    seen[0] = replace(seen[0], log=replace(seen[0].log, version="2.29.7"))
    (check,) = wrong(found, seen).values()
    assert (check.id, check.node, check.observed) == ("NCCL.VERSION", "spark1", "NCCL 2.29.7")


def test_field_8_a_rank_without_the_variables_is_named() -> None:
    found = stock()
    seen = ranks(found, FUSED)
    seen[1] = replace(seen[1], environment={"PATH": "/bin", **dict(found.environment)})
    environment = dict(found.environment)
    del environment["NCCL_ALGO"]
    seen[2] = replace(seen[2], environment={**environment, "NCCL_IB_MERGE_NICS": "0"})
    seen[3] = replace(seen[3], environment=None)
    named = wrong(found, seen)
    check = named["NCCL.VARIABLES", "spark3"]
    assert check.verdict == "failed"
    assert "without NCCL_ALGO=Ring" in check.observed
    assert "NCCL_IB_MERGE_NICS=0, not NCCL_IB_MERGE_NICS=1" in check.observed
    assert named["NCCL.VARIABLES", "spark4"].verdict == "unknown"
    assert ("NCCL.VARIABLES", "spark2") not in named


def test_field_9_devices_that_are_only_in_the_plan_of_channels_are_not_taken_for_used() -> None:
    found = stock()
    collapsed = [
        USING,
        *(f"NCCL INFO Channel 0{n}/0 : 0[0] -> 1[0] [send] via NET/IB/{n}" for n in range(4)),
        "NCCL INFO NET/IB: Subnet-aware routing: overriding dev 2 with dev 0",
        "NCCL INFO NET/IB: Subnet-aware routing: overriding dev 3 with dev 1",
    ]
    check = wrong(found, ranks(found, [*FUSED[1:3], *collapsed]))["NCCL.DEVICES", "spark1"]
    # A number that was replaced for one peer may serve another: only counters can tell.
    assert check.verdict == "unknown" and "fabric prove" in check.fix
    told = [line for line in PATCHED if "hca=roceP2" not in line]
    told = [line.replace("advertised=4", "advertised=2") for line in told]
    check = wrong(patched(), ranks(patched(), told))["NCCL.DEVICES", "spark1"]
    assert check.verdict == "failed"
    assert "nothing on roceP2p1s0f0, roceP2p1s0f1; listeners sent 2 GIDs" in check.observed


def test_a_switch_is_not_asked_about_trees() -> None:
    found = profile(switched(), site(topology="switch", devices=("rocep1s0f0", "roceP2p1s0f0")))
    lines = [
        "NCCL INFO NET/IB : Using [0]rocep1s0f0:1/RoCE [1]roceP2p1s0f0:1/RoCE [RO]",
        "NCCL INFO NCCL version 2.30.7+cuda13.0",
        "NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA",
        "NCCL INFO Channel 01/0 : 0[0] -> 1[0] [send] via NET/IB/1/GDRDMA",
        "NCCL INFO Connected all trees",
    ]
    assert wrong(found, ranks(found, lines)) == {}


def test_what_a_ring_log_tells() -> None:
    found = read_ring(FUSED)
    assert found.trees == ("[0] 2/-1/-1->0->-1 [1] -1/-1/-1->0->2",)
    assert found.connected == {"rings"}
    assert found.channels == {4, 5}
    assert found.overrides == {(4, 0), (4, 1), (5, 2), (5, 3)}
    told = read_ring(PATCHED)
    assert told.told == {"NCCL_SWITCHLESS_RING_ONLY": "1"}
    assert told.disabled == {"tree", "pat"}
    assert told.advertised == 4
    assert ("recv", "roceP2p1s0f1") in told.routes
    assert read_ring(["NCCL INFO PAT transport setup disabled by X"]).disabled == {"pat"}
    assert read_ring(["tree 1 -> 2", "a line of another program"]) == RingLog()


def test_a_fused_device_that_nothing_replaced_is_any_of_its_ports() -> None:
    names = ["a", "b"]
    log = read_ring(["NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/2"])
    assert log.used(names) == (frozenset(), frozenset(names))


def test_maps_of_processes() -> None:
    assert mapped_libraries(maps()) == ()
    assert mapped_libraries(maps(PIP, "/usr/lib/libc.so.6", PIP)) == (PIP,)


def test_L38_what_a_stale_conf_fills_in_is_named() -> None:
    text = "# tuned\nNCCL_IB_USE_INLINE = 1\nNCCL_ALGO=Tree # ours wins\n\nNCCL_BUFFSIZE=4194304\n"
    assert parse_conf(text) == {
        "NCCL_IB_USE_INLINE": "1",
        "NCCL_ALGO": "Tree",
        "NCCL_BUFFSIZE": "4194304",
    }
    check = conf_check("spark1", {"/etc/nccl.conf": text}, stock().environment)
    assert check.verdict == "failed" and "NCCL_ALGO" not in check.observed
    assert "/etc/nccl.conf sets NCCL_IB_USE_INLINE=1: with PREPOST" in check.observed
    mild = conf_check("spark1", {"~/.nccl.conf": "NCCL_BUFFSIZE=1\n"}, {})
    assert (mild.verdict, mild.observed) == ("warning", "~/.nccl.conf sets NCCL_BUFFSIZE=1")
    fine = conf_check("spark1", {"/etc/nccl.conf": "NCCL_ALGO=Ring"}, stock().environment)
    assert fine.verdict == "ok"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Call to ibv_reg_mr_iova2 failed with 12 Cannot allocate memory", "memory cannot"),
        ("Call to ibv_modify_qp failed with 101 Network is unreachable", "GID of another"),
        ("NET/IB: Invalid listener routing format tag=1 version=0", "two builds of NCCL"),
    ],
)
def test_numbered_errors_have_causes(text: str, name: str) -> None:
    one = first_cause(CAUSES, f"spark1:1:1 [0] NCCL WARN {text}")
    assert one is not None and one.name.startswith(name)
