"""What the programs and files of a model's nodes say, in the words of the real ones."""

import json
from ipaddress import IPv4Interface
from typing import Any

from tests.fabric.model import Model, Port
from tetraspark.fleet.facts import Facts, Said

COUNTERS = ("port_xmit_data", "port_rcv_data", "port_xmit_packets", "port_rcv_packets")
ERRORS = (
    *("out_of_sequence", "packet_seq_err", "local_ack_timeout_err", "rnr_nak_retry_err"),
    *("roce_adp_retrans", "req_transport_retries_exceeded", "rx_icrc_encapsulated"),
    "out_of_buffer",
)
GID_TYPES = ("IB/RoCE v1", "RoCE v2", "IB/RoCE v1", "RoCE v2")


def facts(sparks: Model, node: str) -> Facts:
    """What a probe of the node finds."""
    return Facts(
        node=node,
        home="/home/alice",
        uid=1000,
        time=1000.0,
        files=_files(sparks, node),
        links=_links(sparks, node),
        sizes={},
        globs={},
        space={},
        listeners={},
        commands=_commands(sparks, node),
        ssh=f"192.168.1.1{node[-1]}",
    )


def _links(sparks: Model, node: str) -> dict[str, str]:
    found = {}
    for port in sparks.of(node):
        root = f"/sys/class/infiniband/{port.rdma}/device"
        device = f"/sys/devices/pci{port.pci[:4]}:00/{port.pci[:4]}:00:00.0/{port.pci}"
        found[root] = device
        found[f"{root}/net/{port.netdev}"] = f"{device}/net/{port.netdev}"
    return found


def _files(sparks: Model, node: str) -> dict[str, str]:
    forwarding = f"{sparks.forwarding.get(node, '0')}\n"
    found = {
        "/proc/sys/kernel/hostname": f"{node}\n",
        "/proc/sys/net/ipv4/ip_forward": forwarding,
    }
    for port in sparks.of(node):
        root = f"/sys/class/infiniband/{port.rdma}"
        if port.up:
            found[f"/sys/class/net/{port.netdev}/speed"] = f"{port.speed}\n"
        found[f"{root}/fw_ver"] = "28.45.4028\n"
        for end, width in (("current", port.width), ("max", "4")):
            found[f"{root}/device/{end}_link_speed"] = "32.0 GT/s PCIe\n"
            found[f"{root}/device/{end}_link_width"] = f"{width}\n"
        one = f"{root}/ports/1"
        found[f"{one}/state"] = "4: ACTIVE\n" if port.up else "1: DOWN\n"
        found[f"{one}/phys_state"] = "5: LinkUp\n" if port.up else "3: Disabled\n"
        found[f"{one}/rate"] = "200 Gb/sec (4X HDR)\n" if port.up else "40 Gb/sec (4X QDR)\n"
        found |= _gids(port, one)
        for name in COUNTERS:
            found[f"{one}/counters/{name}"] = f"{port.counters.get(name, 0)}\n"
        found[f"{one}/hw_counters/lifespan"] = "10\n"
        for name in ERRORS:
            found[f"{one}/hw_counters/{name}"] = f"{port.counters.get(name, 0)}\n"
    return found


def _gids(port: Port, one: str) -> dict[str, str]:
    high, low = port.link_local.removeprefix("fe80::"), "fe80:0000:0000:0000:"
    link_local = low + ":".join(f"{int(part, 16):04x}" for part in high.split(":"))
    values = {0: link_local, 1: link_local}
    if port.address and port.up:
        number = int(IPv4Interface(port.address).ip)
        mapped = f"0000:0000:0000:0000:0000:ffff:{number >> 16:04x}:{number & 0xFFFF:04x}"
        values |= {port.gid_index - 1: mapped, port.gid_index: mapped}
    found = {}
    for index in range(8):
        found[f"{one}/gids/{index}"] = values.get(index, ":".join(["0000"] * 8)) + "\n"
        if index in values:
            kind = GID_TYPES[1 if index in (1, port.gid_index) else 0]
            found[f"{one}/gid_attrs/types/{index}"] = f"{kind}\n"
            found[f"{one}/gid_attrs/ndevs/{index}"] = f"{port.netdev}\n"
    return found


def _commands(sparks: Model, node: str) -> dict[str, Said]:
    ports = sparks.of(node)
    answers: dict[str, Any] = {
        "addresses": _addresses(sparks, node),
        "neighbours": _heard(sparks, node) if node in sparks.neighbours else [],
        "routes": _routes(sparks, node),
        "rdma link": [_link(index, port) for index, port in enumerate(ports)],
        "devlink parameters": {"param": {f"pci/{p.pci}": _parameters(p) for p in ports}},
        "devlink statistics": {"dev": {f"pci/{p.pci}": _reloads(p) for p in ports}},
    }
    commands = {name: Said(0, json.dumps(value), "") for name, value in answers.items()}
    none = Said(127, "", "lldpctl: No such file or directory")
    heard = json.dumps(_lldp(sparks, node))
    commands["lldp"] = Said(0, heard, "") if node in sparks.lldp else none
    info = "".join(map(_devinfo, ports))
    commands["rdma devices"] = Said(0, info, "") if node in sparks.devinfo else none
    for port in ports:
        features = f"Features for {port.netdev}:\nhw-tc-offload: {port.offload}\n"
        lines = "".join(f"     {name}: {n}\n" for name, n in port.statistics.items())
        commands[f"offload {port.netdev}"] = Said(0, features, "")
        commands[f"statistics {port.netdev}"] = Said(0, f"NIC statistics:\n{lines}", "")
        commands[f"rules {port.netdev}"] = Said(0, json.dumps(port.rules), "")
    return commands


def _addresses(sparks: Model, node: str) -> list[dict[str, Any]]:
    lan = {"family": "inet", "local": f"192.168.1.1{node[-1]}", "prefixlen": 24}
    loopback = _device("lo", "00:00:00:00:00:00", 65536, True, "loopback", [])
    management = _device("enP7s7", f"4c:bb:47:00:{node[-1]:>02}:07", 1500, True, "ether", [lan])
    docker = _device("docker0", "02:42:ac:00:00:01", 1500, True, "ether", [])
    docker["linkinfo"] = {"info_kind": "bridge"}
    found = [loopback, management, docker]
    for port in sparks.of(node):
        infos = [{"family": "inet6", "local": port.link_local, "prefixlen": 64}]
        if port.address:
            at = IPv4Interface(port.address)
            length = at.network.prefixlen
            infos = [{"family": "inet", "local": str(at.ip), "prefixlen": length}, *infos]
        found.append(_device(port.netdev, port.mac, port.mtu, port.up, "ether", infos))
    return found


def _heard(sparks: Model, node: str) -> list[dict[str, Any]]:
    found = []
    for port in sparks.of(node):
        for other in sparks.beyond(port):
            ends = [other.link_local]
            if other.address and port.address:
                mine, its = IPv4Interface(port.address), IPv4Interface(other.address)
                ends += [str(its.ip)] if mine.network == its.network else []
            found += [
                {"dst": dst, "dev": port.netdev, "lladdr": other.mac, "state": ["STALE"]}
                for dst in ends
            ]
    found.append({"dst": "192.168.1.1", "dev": "enP7s7", "state": ["FAILED"]})
    return found


def _routes(sparks: Model, node: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"dst": "default", "gateway": "192.168.1.1", "dev": "enP7s7", "flags": []}
    ]
    for name, subnet, gateway, device in sparks.gateways:
        if name == node:
            found.append({"dst": subnet, "gateway": gateway, "dev": device, "flags": []})
    for port in sparks.of(node):
        if port.address:
            at = IPv4Interface(port.address)
            route = {"dst": str(at.network), "dev": port.netdev, "protocol": "kernel"}
            found.append(route | {"scope": "link", "prefsrc": str(at.ip), "flags": []})
    return found


def _link(index: int, port: Port) -> dict[str, Any]:
    state = {"state": "ACTIVE", "physical_state": "LINK_UP"} if port.up else {"state": "DOWN"}
    names = {"ifindex": index, "ifname": port.rdma, "port": 1}
    return names | state | {"netdev": port.netdev, "netdev_index": index + 3}


def _lldp(sparks: Model, node: str) -> dict[str, Any]:
    """One neighbour of a device is an object, several are a list: so lldpd writes them."""
    interfaces = []
    for port in sparks.of(node):
        heard = [_neighbour(other.node, other.mac, other.netdev)
                 for other in sparks.beyond(port) if other.node in sparks.lldp]  # fmt: skip
        if sparks.switch and port.up and sparks.beyond(port):
            name = f"qsfp56-1-{node[-1]}"
            heard = [_neighbour("switch", "d4:01:c3:00:00:01", name)]
        if heard:
            one = heard[0] if len(heard) == 1 else heard
            interfaces.append({port.netdev: one})
    return {"lldp": {"interface": interfaces[0] if len(interfaces) == 1 else interfaces}}


def _device(
    name: str, mac: str, mtu: int, up: bool, kind: str, infos: list[dict[str, Any]]
) -> dict[str, Any]:
    flags = ["BROADCAST", "MULTICAST", "UP", *(["LOWER_UP"] if up else ["NO-CARRIER"])]
    return {
        "ifname": name,
        "flags": flags,
        "mtu": mtu,
        "operstate": "UP" if up else "DOWN",
        "link_type": kind,
        "address": mac,
        "addr_info": infos,
    }


def _neighbour(system: str, mac: str, port: str) -> dict[str, Any]:
    # lldpd takes one card for the chassis, whichever port it speaks on.
    chassis = {"id": {"type": "mac", "value": f"{mac[:9]}00:00:00"}, "descr": "DGX OS"}
    ident = {"type": "mac", "value": mac} if port.startswith("en") else {"type": "ifname"}
    return {
        "via": "LLDP",
        "rid": "1",
        "age": "0 day, 00:03:11",
        "chassis": {system: chassis},
        "port": {"id": ident | {"value": ident.get("value", port)}, "descr": port},
    }


def _parameters(port: Port) -> list[dict[str, Any]]:
    values = {
        "flow_steering_mode": ("runtime", "hmfs"),
        "hairpin_num_queues": ("driverinit", 4),
        "hairpin_queue_size": ("driverinit", port.queue_size),
    }
    return [
        {"name": name, "type": "driver-specific", "values": [{"cmode": mode, "value": value}]}
        for name, (mode, value) in values.items()
    ]


def _reloads(port: Port) -> dict[str, Any]:
    count = {"unspecified": port.reloads}
    return {"stats": {"reload": {"driver_reinit": count}, "remote_reload": {"driver_reinit": {}}}}


def _devinfo(port: Port) -> str:
    number = {256: 1, 512: 2, 1024: 3, 2048: 4, 4096: 5}[port.rdma_mtu]
    state = "PORT_ACTIVE (4)" if port.up else "PORT_DOWN (1)"
    return (
        f"hca_id:\t{port.rdma}\n\ttransport:\t\t\tInfiniBand (0)\n\tphys_port_cnt:\t\t\t1\n"
        f"\t\tport:\t1\n\t\t\tstate:\t\t\t{state}\n\t\t\tmax_mtu:\t\t4096 (5)\n"
        f"\t\t\tactive_mtu:\t\t{port.rdma_mtu} ({number})\n\t\t\tlink_layer:\t\tEthernet\n\n"
    )
