"""The node's own address, and the way its packets take to the other nodes."""

from collections.abc import Iterator
from ipaddress import AddressValueError, IPv4Address

from tetraspark.doctor.finding import Finding
from tetraspark.doctor.node_view import NodeView
from tetraspark.fabric.function import Function
from tetraspark.fabric.inventory_json import parsed, tables, word
from tetraspark.fleet.facts import Said, Wanted
from tetraspark.site.load import LoadedSite
from tetraspark.site.machines import Node


def numeric(host: str | None) -> IPv4Address | None:
    """Return a host as an address, or None where it is a name."""
    try:
        return IPv4Address(host or "")
    except AddressValueError:
        return None


def peers(loaded: LoadedSite, rank: int) -> dict[str, IPv4Address]:
    """Return the other nodes' addresses by node; a host name is no address and is left out."""
    found = {node.name: numeric(node.host) for node in _others(loaded, rank)}
    return {node: address for node, address in found.items() if address is not None}


def _others(loaded: LoadedSite, rank: int) -> list[Node]:
    return [node for other, node in enumerate(loaded.site.nodes) if other != rank]


def routes_wanted(loaded: LoadedSite, rank: int) -> Wanted:
    """Ask for the route to each peer, in place of the default route, which may be absent."""
    return Wanted(
        commands={
            f"route to {address}": ("ip", "-j", "route", "get", str(address))
            for address in peers(loaded, rank).values()
        }
    )


def own_interface(view: NodeView) -> Function | None:
    """Return the interface that has the node's `host`.

    A name stands for the address that ssh came in on, if ssh went to that name.
    """
    same = view.place.ssh_host in (None, view.place.host)
    address = numeric(view.place.host) or numeric(view.facts.ssh if same else None)
    for one in view.fabric.functions:
        if any(address == interface.ip for interface in one.addresses):
            return one
    return None


def own(view: NodeView) -> Iterator[Finding]:
    """Judge whether the node has the address that the site gives it; no route is asked for it."""
    host, found = view.place.host or "", own_interface(view)
    wanted = f"host {host} on an interface of the node that is up"
    where = view.loaded.origin(f"nodes[{view.rank}].host").where
    fix = f"correct `host` ({where}); {view.shell('ip -br -4 addr')}"
    listed = ", ".join(
        f"{one.netdev} {interface.ip}"
        for one in view.fabric.functions
        for interface in one.addresses
    )
    if found is not None and found.up:
        yield Finding("ok", f"{host} on {found.netdev}", wanted)
    elif found is not None:
        yield Finding("failed", f"{host} on {found.netdev}, which is down", wanted, fix)
    elif not view.fabric.functions:
        yield Finding("unknown", "ip -j addr told nothing", wanted, view.shell("ip -j addr"))
    elif numeric(host) is None:
        seen = f"which of its addresses the name {host} means cannot be seen; it has {listed}"
        yield Finding("unknown", seen, wanted, "write the IPv4 address as `host`")
    else:
        yield Finding("failed", f"only {listed or 'none'}", wanted, fix)


def device_of(said: Said) -> str | None:
    """Return the interface that `ip -j route get` printed, or None."""
    names = (word(one.get("dev")) for one in tables(parsed(said.stdout)))
    return next((name for name in names if name), None)


def routes(view: NodeView) -> Iterator[Finding]:
    """Judge that each peer is reached over the fabric, or the interface of the node's `host`."""
    asked = peers(view.loaded, view.rank)
    functions = [view.fabric.function(device) for device in view.devices]
    good = {one.netdev for one in (*functions, own_interface(view)) if one is not None}
    wanted = f"a way to each peer over {', '.join(sorted(good)) or 'the interface of `host`'}"
    taken, wrong = [], []
    for node, address in asked.items():
        said = view.said(f"route to {address}")
        device = device_of(said)
        words = (said.stderr.strip().splitlines() or ["no answer"])[-1]
        taken.append(f"{node} over {device}" if device else f"{node}: {words}")
        wrong += [] if device in good else [str(address)]
    told = "; ".join(taken)
    if wrong:
        fix = f"{view.shell(f'ip route get {wrong[0]}')}; correct the address or the route"
        yield Finding("failed", told, wanted, fix)
    elif len(asked) < len(_others(view.loaded, view.rank)):
        seen = f"a peer has a name as `host`, and no route was asked for; {told or 'no other'}"
        yield Finding("unknown", seen, wanted, "write IPv4 addresses as `host`")
    else:
        yield Finding("ok", told or "no peer", wanted)
