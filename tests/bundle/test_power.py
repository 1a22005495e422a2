"""A sudden end has a class: power, memory guard, driver or kernel; each has marks of its own."""

from typing import Any

import pytest

from tetraspark.bundle.power import Journals, power_checks, stopped_short
from tetraspark.doctor.check import Check

HEAD = "2026-08-19T02:10:00+0000 spark2 systemd[1]: Started Session 4 of User alice.\n"
ORDERLY = (
    HEAD
    + "2026-08-19T02:11:00+0000 spark2 systemd[1]: Reached target reboot.target - System Reboot.\n"
    "2026-08-19T02:11:01+0000 spark2 systemd-journald[400]: Journal stopped\n"
)
GUARD = "Aug 19 02:11:07 spark2 dgx-anti-oom[911]: killing pid 20114 (sglang) rss=98 GiB\n"
NVRM = (
    "2026-08-19T02:11:07+0000 spark2 kernel: NVRM: nvCheckOkFailedNoLog: Check failed: Out of "
    "memory [NV_ERR_NO_MEMORY] (0x00000051) returned from _memdescAllocInternal\n"
)
CUT = HEAD + "2026-08-19T02:11:07+0000 spark2 sshd[77]: Accepted publick"


def checks(
    current: str | None = HEAD,
    previous: str | None = ORDERLY,
    crashes: tuple[str, ...] = (),
) -> dict[str, Check]:
    return {one.id: one for one in power_checks(Journals("spark2", current, previous, crashes, 60))}


def verdicts(**given: Any) -> dict[str, str]:
    return {id: one.verdict for id, one in checks(**given).items()}


def test_a_node_that_was_shut_down_is_well() -> None:
    assert set(verdicts().values()) == {"ok"}
    assert not stopped_short(ORDERLY)


def test_L71_a_journal_that_stops_in_the_middle_is_power_or_firmware() -> None:
    check = checks(previous=CUT)["POWER.PREVIOUS_END"]
    assert check.verdict == "failed"
    assert "Accepted publick" in check.observed
    assert check.fix.startswith("power or firmware")
    assert verdicts(previous=CUT)["MEMORY.GUARD"] == "ok"


@pytest.mark.parametrize(
    "line",
    [
        GUARD,
        "Aug 19 02:11:07 spark2 earlyoom[911]: sending SIGKILL to process 20114 (python3)\n",
        "Aug 19 02:11:07 spark2 kernel: Out of memory: Killed process 20114 (python3)\n",
    ],
)
def test_L71_a_journal_that_goes_on_names_the_program_that_killed(line: str) -> None:
    found = checks(current=line + HEAD)
    assert found["POWER.PREVIOUS_END"].verdict == "ok"
    assert found["MEMORY.GUARD"].verdict == "failed"
    assert line.strip() in found["MEMORY.GUARD"].observed


def test_L71_the_drivers_lines_before_the_end_are_about_memory() -> None:
    found = checks(previous=HEAD + NVRM)
    assert found["POWER.PREVIOUS_END"].verdict == "failed"
    assert "power" not in found["POWER.PREVIOUS_END"].fix
    assert found["MEMORY.DRIVER"].verdict == "failed"
    assert "buddyinfo" in found["MEMORY.DRIVER"].fix


def test_L71_a_crash_record_is_the_kernels_own_word() -> None:
    found = checks(previous=CUT, crashes=("/var/lib/systemd/pstore/dmesg-1",))
    assert "power or firmware" not in found["POWER.PREVIOUS_END"].fix
    assert found["POWER.PSTORE"].verdict == "failed"
    assert "/var/lib/systemd/pstore/dmesg-1" in found["POWER.PSTORE"].fix


def test_what_cannot_be_read_is_unknown_and_never_well() -> None:
    found = verdicts(current=None, previous=None)
    assert found["POWER.PREVIOUS_END"] == found["MEMORY.GUARD"] == "unknown"
    assert found["MEMORY.DRIVER"] == "unknown"


def test_a_first_boot_has_no_end_before_it() -> None:
    check = checks(previous="")["POWER.PREVIOUS_END"]
    assert (check.verdict, check.observed) == ("ok", "there was none; up for 0.0 h now")
