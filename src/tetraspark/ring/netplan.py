"""The netplan file of a node: addresses and MTU of the ring's devices, and nothing else."""

from tetraspark.ring.member import Member

FILE = "/etc/netplan/60-tetraspark-ring.yaml"
"""Later than the installer's own files, so that its MTU counts; mode 600, as netplan wants."""


def netplan(member: Member, mtu: int) -> str:
    """Return the file's text. Routes to relayed addresses are no part of it: they come and go
    with the relays.
    """
    lines = [
        "# Addresses of the switchless ring, from a plan of `tetraspark ring plan`.",
        "network:",
        "  version: 2",
        "  ethernets:",
    ]
    for one in member.functions:
        lines += [
            f"    {one.netdev}:",
            f"      addresses: [{one.interface}]",
            "      dhcp4: false",
            "      dhcp6: false",
            f"      mtu: {mtu}",
            "      optional: true",
        ]
    return "\n".join(lines) + "\n"
