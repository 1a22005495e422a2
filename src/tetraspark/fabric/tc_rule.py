"""A rule of tc on a device: what it matches, where it sends frames, and whether the NIC does it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TcRule:
    """One filter at a device's ingress.

    `protocol` is as tc writes it, such as `ip` or `0x88b5`; `offloaded` is True for `in_hw`,
    False for `not_in_hw`, None where tc says neither. `redirect` is the device that frames go
    out of. `packets` and `hardware_packets` count since the rule was made; None where not shown.
    """

    netdev: str
    preference: int | None
    handle: int | None
    protocol: str
    kind: str
    offloaded: bool | None
    skip_software: bool = False
    source_mac: str | None = None
    destination_mac: str | None = None
    redirect: str | None = None
    packets: int | None = None
    hardware_packets: int | None = None
    hardware_bytes: int | None = None
