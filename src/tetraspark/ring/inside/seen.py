"""What there is on the node now, each thing asked for once: runs inside the node."""

from __future__ import annotations

from typing import Any

from tetraspark.ring.inside.devlink import parameters, reloads, value_of
from tetraspark.ring.inside.say import Refusal, listed, must, problem


class Seen:
    """The node's links, routes, neighbours, tc objects and offloads at one moment.

    Raises Refusal where the node cannot be asked: what was not seen is never taken for absent.
    """

    def __init__(self) -> None:
        self._kept: dict[str, Any] = {}

    def _once(self, *argv: str) -> list[dict[str, Any]]:
        key = " ".join(argv)
        if key not in self._kept:
            self._kept[key] = listed(list(argv))
        found: list[dict[str, Any]] = self._kept[key]
        return found

    def link(self, dev: str) -> dict[str, Any] | None:
        """Return a device as `ip -j addr` shows it, or None."""
        return next((one for one in self._once("ip", "-j", "addr") if one["ifname"] == dev), None)

    def addresses(self, dev: str) -> list[str]:
        """Return the IPv4 addresses of a device, with their prefix lengths."""
        found = self.link(dev) or {"addr_info": []}
        infos = (one for one in found["addr_info"] if one["family"] == "inet")
        return [f"{one['local']}/{one['prefixlen']}" for one in infos]

    def routes(self) -> list[dict[str, Any]]:
        """Return the IPv4 routes of the main table."""
        return self._once("ip", "-4", "-j", "route", "show", "table", "main")

    def neighbours(self, dev: str) -> list[dict[str, Any]]:
        """Return the IPv4 neighbours on a device."""
        return [one for one in self._once("ip", "-4", "-j", "neigh") if one["dev"] == dev]

    def qdiscs(self, dev: str) -> list[dict[str, Any]]:
        """Return the queueing disciplines of a device that take filters at ingress."""
        found = self._once("tc", "-j", "qdisc", "show")
        kinds = ("clsact", "ingress")
        return [one for one in found if one.get("dev") == dev and one["kind"] in kinds]

    def filters(self, dev: str) -> list[dict[str, Any]]:
        """Return the ingress filters of a device, with counters; none without a place for them."""
        if not self.qdiscs(dev):
            return []
        found = self._once("tc", "-j", "-s", "filter", "show", "dev", dev, "ingress")
        return [one for one in found if one.get("options")]

    def offload(self, dev: str) -> str:
        """Return `hw-tc-offload` of a device as ethtool words it: on, off, `off [fixed]`."""
        key = f"ethtool {dev}"
        if key not in self._kept:
            self._kept[key] = must(["ethtool", "-k", dev])
        for line in str(self._kept[key]).splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "hw-tc-offload":
                return value.strip()
        wanted, fix = "a line `hw-tc-offload`", f"ethtool -k {dev}"
        raise Refusal(problem(dev, "ethtool -k shows no hw-tc-offload", wanted, fix))

    def parameter(self, pci: str, name: str, cmode: str) -> Any:
        """Return the value of a devlink parameter, or None when the device has none of it."""
        if "parameters" not in self._kept:
            self._kept["parameters"] = parameters()
        return value_of(self._kept["parameters"], pci, name, cmode)

    def reloads(self, pci: str) -> tuple[int, bool]:
        """Return how often a function was re-initialised in this boot, and if the last failed."""
        if "reloads" not in self._kept:
            self._kept["reloads"] = reloads()
        found: tuple[int, bool] = self._kept["reloads"].get(pci, (0, False))
        return found
