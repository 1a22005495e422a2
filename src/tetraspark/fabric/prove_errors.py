"""Counters that should stand still, what it means when one grows, and what to do then."""

from collections.abc import Mapping
from dataclasses import dataclass

from tetraspark.fabric.function import Function
from tetraspark.fabric.prove_counters import grown


@dataclass(frozen=True)
class Cause:
    """What a growing counter says, and what to look at next."""

    name: str
    fix: str


LOSS = Cause(
    "frames are lost on the way",
    "compare MTU, speed and pause at both ends: tetraspark fabric show; ethtool -a DEVICE",
)
OVERFLOW = Cause(
    "frames come faster than they are taken, at a relay by its hairpin queue",
    "devlink dev param show: hairpin_queue_size; send smaller collectives",
)
CORRUPT = Cause(
    "frames arrive changed", "look at what a relay rewrites: tc -s filter show dev DEVICE ingress"
)
CABLE = Cause("bits are wrong on the cable", "seat or change the cable; ethtool -m DEVICE")
SLOW = Cause("the receiver was not ready", "look at the rank that receives: tetraspark status")

ERRORS: Mapping[str, Cause] = {
    **dict.fromkeys(
        (
            *("out_of_sequence", "packet_seq_err", "local_ack_timeout_err", "roce_adp_retrans"),
            *("req_transport_retries_exceeded", "implied_nak_seq_err", "port_xmit_discards"),
            *("out_of_seq_request", "rcvd_seq_err", "retry_exceeded_err", "send_err"),
        ),
        LOSS,
    ),
    **dict.fromkeys(("rnr_nak_retry_err", "rcvd_rnr_err", "retry_rnr_exceeded_err"), SLOW),
    **dict.fromkeys(("out_of_buffer", "rx_out_of_buffer", "rx_discards_phy"), OVERFLOW),
    "rx_icrc_encapsulated": CORRUPT,
    **dict.fromkeys(
        (
            *("symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors"),
            *("local_link_integrity_errors", "rx_crc_errors_phy", "rx_symbol_err_phy"),
        ),
        CABLE,
    ),
}
"""By name: of sysfs (`counters`, `hw_counters`), of soft-RoCE, and of `ethtool -S`."""


def errors(before: Function, after: Function, shared: bool) -> dict[str, int]:
    """Return the counters of ERRORS that grew, with how much.

    `shared` leaves out those of the physical port: both functions of a cage show the same ones,
    and they must not count twice.
    """
    found = {}
    for old, new in (
        (before.counters, after.counters),
        (before.statistics, after.statistics),
    ):
        for name in ERRORS.keys() & old.keys() & new.keys():
            delta, _ = grown(old[name], new[name])
            if delta and not (shared and name.endswith("_phy")):
                found[name] = delta
    return dict(sorted(found.items()))
