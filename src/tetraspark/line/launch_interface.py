"""The network device that has a node's configured address. Pure.

There is no default: not the device of the default route, which an isolated network lacks, and no
name that some machines happen to use.
"""

import json
from dataclasses import dataclass
from ipaddress import IPv4Address

from tetraspark.errors import Problem
from tetraspark.fleet.facts import Facts, Wanted
from tetraspark.site.load import LoadedSite

ADDRESSES = "addresses"
HOSTS = "/etc/hosts"
WANTED = Wanted(files=(HOSTS,), commands={ADDRESSES: ("ip", "-j", "-d", "addr", "show")})
DOWN = ("DOWN", "LOWERLAYERDOWN")


@dataclass(frozen=True)
class Interface:
    """An IPv4 address of a node and the network device that has it; `state` is the kernel's."""

    netdev: str
    address: IPv4Address
    state: str

    def __str__(self) -> str:
        return f"{self.address} on {self.netdev}"


def interface_of(
    loaded: LoadedSite, rank: int, facts: Facts
) -> tuple[Interface | None, list[Problem]]:
    """Return the device with the address of a node's `host`, or what is wrong."""
    host = loaded.site.nodes[rank].host
    assert host is not None, "every node of a fleet has one"
    where = f"{facts.node} ({loaded.origin(f'nodes[{rank}].host').where})"
    said = facts.commands.get(ADDRESSES)
    present = read_interfaces(said.stdout if said else "")
    if not present:
        reason = said.stderr.strip()[-200:] if said else "not asked"
        wanted = "the addresses of the node"
        return None, [Problem(where, f"`ip -j addr` gave none: {reason}", wanted, "ip -j addr")]
    meant, how = meaning(loaded, rank, facts)
    found = [one for one in present if one.address in meant]
    if len(found) == 1 and found[0].state not in DOWN:
        return found[0], []
    return None, [_wrong(where, f"host {host}{how}", found, present)]


def meaning(loaded: LoadedSite, rank: int, facts: Facts) -> tuple[set[IPv4Address], str]:
    """Return the addresses that a node's `host` stands for on that node, and how that is known.

    A name means what the node's own /etc/hosts says, but for loopback, which Debian writes there
    for a machine's own name. Where it says nothing, the name means the address that ssh reached,
    if ssh went to that name: no name server is asked, because it may answer otherwise to others.
    """
    node = loaded.site.nodes[rank]
    assert node.host is not None
    try:
        return {IPv4Address(node.host)}, ""
    except ValueError:
        pass
    listed = hosts_entries(facts.files.get(HOSTS, ""), node.host)
    if listed:
        return listed, f" ({', '.join(map(str, sorted(listed)))} in its {HOSTS})"
    if node.ssh_host in (None, node.host) and facts.ssh:
        return _ipv4(facts.ssh), f" ({facts.ssh}, which ssh reached)"
    return set(), f" (a name that is not in its {HOSTS})"


def hosts_entries(text: str, name: str) -> set[IPv4Address]:
    """Return the IPv4 addresses of a name in an /etc/hosts, but for loopback."""
    found: set[IPv4Address] = set()
    for line in text.splitlines():
        words = line.split("#", 1)[0].split()
        if name.rstrip(".").lower() in (word.lower() for word in words[1:]):
            found |= {one for one in _ipv4(words[0]) if not one.is_loopback}
    return found


def read_interfaces(text: str) -> tuple[Interface, ...]:
    """Read `ip -j addr`; what is not of its form reads as nothing."""
    try:
        return tuple(
            Interface(link["ifname"], IPv4Address(one["local"]), link.get("operstate", "UNKNOWN"))
            for link in json.loads(text)
            for one in link.get("addr_info", ())
            if one.get("family") == "inet"
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ()


def _ipv4(text: str) -> set[IPv4Address]:
    try:
        return {IPv4Address(text)}
    except ValueError:
        return set()


def _wrong(
    where: str, host: str, found: list[Interface], present: tuple[Interface, ...]
) -> Problem:
    others = ", ".join(str(one) for one in present if not one.address.is_loopback) or "none"
    if len(found) > 1:
        seen = f"{host} is on several devices: {', '.join(map(str, found))}"
        wanted = "one device, for the connections that start the ranks"
        return Problem(where, seen, wanted, "write the IPv4 address of the one to use as `host`")
    if found:
        seen = f"{host} is on {found[0].netdev}, which is {found[0].state}"
        fix = f"sudo ip link set {found[0].netdev} up; check its cable"
        return Problem(where, seen, "a device that is up", fix)
    seen = f"no device of the node has the address of {host}; it has {others}"
    return Problem(where, seen, "an address of that node", "write one of these as `host`")
