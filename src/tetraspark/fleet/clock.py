"""How far this machine's clock is ahead of a node's. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Clock:
    """Bounds on (this machine's time - the node's time), seconds.

    From exchanges in which the node told its time between a question and its answer, as in NTP
    (RFC 5905, section 8). What the node does first takes longest, to start a program; the answer
    comes at once. So the upper bound is the better estimate, and the least one counts.
    """

    low: float
    high: float

    @property
    def ahead(self) -> float:
        """What to add to a time of the node."""
        return self.high

    def and_then(self, later: "Clock") -> "Clock":
        """Return what two exchanges tell together; one of the clocks was set where they differ."""
        low, high = max(self.low, later.low), min(self.high, later.high)
        return Clock(low, high) if low <= high else later


def exchange(sent: float, begun: float, ended: float, received: float) -> Clock:
    """Return what one exchange tells: sent and received here, begun and ended on the node."""
    return Clock(sent - begun, received - ended)
