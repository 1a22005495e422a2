"""Hairpin queues: what a NIC's driver is set to use for forwarding from one cage to the other."""

from dataclasses import dataclass

DEFAULT_QUEUE_SIZE = 1024
"""What mlx5_core comes up with."""


@dataclass(frozen=True)
class Hairpin:
    """Parameters of one PCI function, as devlink shows them; what it does not show is None.

    `queue_size` counts strides of 64 bytes. Both are `driverinit` values: the driver takes them
    over when it is reloaded, so `reloads` is how often that was since the boot, and
    `reload_failed` whether the last one failed. `steering` is the flow steering mode.
    """

    queues: int | None = None
    queue_size: int | None = None
    steering: str | None = None
    reloads: int | None = None
    reload_failed: bool = False

    @property
    def pending(self) -> bool | None:
        """Whether the sizes were never taken over since the boot; None where that is not shown.

        Without a reload the driver still runs with the defaults it came up with, whatever the
        parameters say.
        """
        if self.reload_failed:
            return True
        return None if self.reloads is None else self.reloads == 0

    @property
    def effective_size(self) -> int | None:
        """The queue size that the driver really uses; None where that cannot be told."""
        if self.queue_size == DEFAULT_QUEUE_SIZE or self.pending is False:
            return self.queue_size
        return DEFAULT_QUEUE_SIZE if self.pending and not self.reload_failed else None
