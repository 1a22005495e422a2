"""The files that bring a confirmed ring back after a boot. Pure."""

from typing import Any

from tetraspark.ring.inside.store import STATE
from tetraspark.ring.netplan import FILE
from tetraspark.ring.node_program import script
from tetraspark.ring.plan import NodePlan

UNIT = "/etc/systemd/system/tetraspark-ring.service"
WANT = "/etc/systemd/system/multi-user.target.d/tetraspark-ring.conf"
PROGRAM = str(STATE / "restore.py")

# Markers live on in the unit's group; stopping it must not end them under live connections.
UNIT_TEXT = f"""\
[Unit]
Description=tetraspark ring: routes, neighbours, relay rules and markers of the confirmed plan
Wants=network-online.target
After=network-online.target

[Service]
Type=oneshot
RemainAfterExit=yes
KillMode=process
TimeoutStartSec=300
ExecStart=/usr/bin/python3 -I {PROGRAM}
"""
WANT_TEXT = "[Unit]\nWants=tetraspark-ring.service\n"


def persistent_files(node: NodePlan) -> tuple[dict[str, Any], ...]:
    """Return the files of a node: netplan's, the restoring program, its unit, what starts that."""
    texts = (
        (FILE, node.netplan, 0o600),
        (PROGRAM, script({"verb": "restore"}).decode(), 0o600),
        (UNIT, UNIT_TEXT, 0o644),
        (WANT, WANT_TEXT, 0o644),
    )
    return tuple(
        {"kind": "file", "path": path, "text": text, "mode": mode} for path, text, mode in texts
    )
