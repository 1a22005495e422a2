"""What `devlink -j` says of PCI functions: hairpin queues, steering, and reloads."""

from typing import Any

from tetraspark.fabric.hairpin import Hairpin
from tetraspark.fabric.inventory_json import table, tables, whole, word

BUS = "pci/"


def hairpins(parameters: Any, statistics: Any) -> dict[str, Hairpin]:
    """Return the settings of each PCI function, by its address.

    `parameters` is of `devlink -j dev param show`, `statistics` of `devlink -j -s dev show`.
    """
    counted = table(table(statistics).get("dev"))
    return {
        device.removeprefix(BUS): _hairpin(_values(one), table(counted.get(device)))
        for device, one in table(table(parameters).get("param")).items()
        if device.startswith(BUS)
    }


def _values(listed: Any) -> dict[str, Any]:
    """Return the value of each parameter: of the mode it has, and it has one here."""
    found: dict[str, Any] = {}
    for one in tables(listed):
        for value in tables(one.get("values")):
            found.setdefault(word(one.get("name")), value.get("value"))
    return found


def _hairpin(values: dict[str, Any], said: dict[str, Any]) -> Hairpin:
    reloads = table(table(said.get("stats")).get("reload")).get("driver_reinit")
    return Hairpin(
        queues=whole(values.get("hairpin_num_queues")),
        queue_size=whole(values.get("hairpin_queue_size")),
        steering=word(values.get("flow_steering_mode")) or None,
        reloads=whole(table(reloads).get("unspecified")),
        reload_failed=said.get("reload_failed") is True,
    )
