"""What ended a node or a rank, as the journals tell it: power, memory guard, driver, kernel. Pure.

A machine that loses its power writes nothing about it: its journal just stops. A program that
kills ranks for memory writes so, and the journal goes on.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tetraspark.doctor.check import Check

LAST_LINES = 40
ORDERLY = re.compile(
    r"Journal stopped|Reached target .*(?:[Ss]hutdown|[Pp]ower-?[Oo]ff|[Rr]eboot|[Hh]alt)"
    r"|systemd-shutdown|Shutting down\.|reboot: (?:Power down|Restarting|System halted)"
    r"|System is (?:rebooting|powering down)"
)
GUARD = re.compile(
    r"(?:dgx-anti-oom|earlyoom|systemd-oomd|nohang)(?:\[\d+\])?: .*(?i:kill|sigterm)"
    r"|Out of memory: Killed process|oom-kill:|Memory cgroup out of memory"
)
DRIVER = re.compile(r"NVRM:.*(?:NV_ERR_NO_MEMORY|Out of memory)")


@dataclass(frozen=True)
class Journals:
    """What one node's journals say; None where they could not be read.

    `previous` is the end of the boot before this one, "" when it is known that there was none.
    `crashes` are the files in pstore, `uptime` in seconds.
    """

    node: str
    current: str | None
    previous: str | None
    crashes: Sequence[str]
    uptime: float | None


def power_checks(found: Journals) -> list[Check]:
    """Return a check for each class of sudden end: what was seen of it, or that it was not."""
    return [_ending(found), _crash(found), _guard(found), _driver(found)]


def stopped_short(previous: str) -> bool:
    """Tell whether a boot's journal ends without a word about shutting down.

    The last line may lack its end: that is how a journal looks whose disk lost its power.
    """
    last = previous.rstrip("\n").splitlines()[-LAST_LINES:]
    return bool(last) and not any(ORDERLY.search(line) for line in last)


def _ending(found: Journals) -> Check:
    wanted = "a previous boot that ended with a shutdown"
    up = "" if found.uptime is None else f"; up for {_hours(found.uptime)} now"
    id = "POWER.PREVIOUS_END"
    if found.previous is None:
        fix = "sudo usermod -aG adm,systemd-journal $USER; sudo mkdir -p /var/log/journal"
        seen = f"the journal of the previous boot cannot be read{up}"
        return Check(id, found.node, "unknown", seen, wanted, f"on {found.node}: {fix}")
    if not stopped_short(found.previous):
        seen = "it ended with a shutdown" if found.previous.strip() else "there was none"
        return Check(id, found.node, "ok", f"{seen}{up}", wanted)
    last = found.previous.rstrip("\n").splitlines()[-1].strip()[-200:]
    seen = f"the journal stops in the middle{up}; its last line: {last}"
    if found.crashes or DRIVER.search(_tail(found.previous)):
        fix = f"see the other checks of {found.node}: the kernel or the driver told why"
    else:
        fix = (
            "power or firmware: nothing was written. Check the power supply and its cable, "
            "`sudo fwupdmgr get-updates`, and the temperatures under load"
        )
    return Check(id, found.node, "failed", seen, wanted, fix)


def _crash(found: Journals) -> Check:
    wanted = "no crash record of the kernel in pstore"
    if not found.crashes:
        return Check("POWER.PSTORE", found.node, "ok", "none seen", wanted)
    seen = f"{len(found.crashes)} crash records: {', '.join(found.crashes)[:300]}"
    fix = f"on {found.node}: sudo tail -n 60 {found.crashes[0]}"
    return Check("POWER.PSTORE", found.node, "failed", seen, wanted, fix)


def _guard(found: Journals) -> Check:
    fix = (
        "lower engine.kv_tokens or engine.mem_fraction, so that the guard has no reason: it "
        f"killed a program, the machine went on; on {found.node}: journalctl -g 'oom|[Kk]ill'"
    )
    return _named("MEMORY.GUARD", found, GUARD, "nothing killed for memory", fix)


def _driver(found: Journals) -> Check:
    fix = (
        f"on {found.node}: cat /proc/buddyinfo; the GPU's driver found no large blocks: compact "
        "(echo 1 | sudo tee /proc/sys/vm/compact_memory) or reboot before the next start"
    )
    return _named("MEMORY.DRIVER", found, DRIVER, "no NVRM line about memory", fix)


def _named(id: str, found: Journals, text: re.Pattern[str], wanted: str, fix: str) -> Check:
    if found.current is None and found.previous is None:
        why = f"on {found.node}: sudo usermod -aG adm,systemd-journal $USER"
        return Check(id, found.node, "unknown", "no journal can be read", wanted, why)
    both = f"{found.previous or ''}\n{found.current or ''}"
    lines = [line.strip() for line in both.splitlines() if text.search(line)]
    if not lines:
        return Check(id, found.node, "ok", "none seen", wanted)
    seen = f"{len(lines)} lines, the last: {lines[-1][-300:]}"
    return Check(id, found.node, "failed", seen, wanted, fix)


def _tail(text: str) -> str:
    return "\n".join(text.splitlines()[-LAST_LINES:])


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h"
