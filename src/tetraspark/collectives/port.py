"""One RDMA port as sysfs shows it, parsed from text: the same for this machine and another."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tetraspark.collectives.gid import Gid, parse_gid

SYSFS = Path("/sys/class/infiniband")
ACTIVE = "ACTIVE"
PCI_ADDRESS = re.compile(r"([0-9a-f]{4,}):[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


@dataclass(frozen=True)
class Port:
    """A port at one moment. `domain` is the PCI domain, None for a device that is not on PCI.

    `state` is the word of sysfs, such as ACTIVE or DOWN; `link_layer` Ethernet or InfiniBand.
    """

    device: str
    number: int
    state: str
    link_layer: str
    domain: str | None
    gids: tuple[Gid, ...]


def parse_port(device: str, number: int, bus: str, files: Mapping[str, str]) -> Port:
    """Build a port from the texts of its files, by path below `ports/N`.

    `bus` is the last part of the device's link target, a PCI address or something else. Raises
    ValueError for a file that is missing or is not what it should be.
    """
    for name in ("state", "link_layer"):
        if name not in files:
            raise ValueError(f"{device} port {number} has no file {name!r}")
    number_text, _, state = files["state"].strip().partition(": ")
    if not number_text.isdigit() or not state:
        raise ValueError(f"{device} port {number}: not a port state: {files['state']!r}")
    match = PCI_ADDRESS.fullmatch(bus)
    indices = sorted(int(name[5:]) for name in files if name.startswith("gids/"))
    return Port(
        device=device,
        number=number,
        state=state,
        link_layer=files["link_layer"].strip(),
        domain=match[1] if match else None,
        gids=tuple(
            Gid(
                index=index,
                value=parse_gid(files[f"gids/{index}"]),
                kind=files.get(f"gid_attrs/types/{index}", "").strip(),
                netdev=files.get(f"gid_attrs/ndevs/{index}", "").strip(),
            )
            for index in indices
        ),
    )


def read_ports(device: str, root: Path = SYSFS) -> list[Port]:
    """Read every port of a device. Raises FileNotFoundError when there is no such device."""
    folder = root / device
    ports = sorted((folder / "ports").iterdir(), key=lambda path: int(path.name))
    link = folder / "device"
    bus = link.resolve().name if link.exists() else ""
    return [parse_port(device, int(path.name), bus, _texts(path)) for path in ports]


def device_names(root: Path = SYSFS) -> list[str]:
    """Return the RDMA devices of this machine, sorted."""
    return sorted(path.name for path in root.iterdir()) if root.exists() else []


def own_fault(device: str, number: int, gid: Gid, root: Path = SYSFS) -> str:
    """Say what is wrong with a port that was right when its GID was looked up; "" if nothing is.

    Two small files: the whole table takes too long for a verdict.
    """
    folder = root / device / "ports" / str(number)
    try:
        state = (folder / "state").read_text().strip().partition(": ")[2]
        value = parse_gid((folder / "gids" / str(gid.index)).read_text())
    except (OSError, ValueError) as error:
        return f"its own port cannot be read: {error}"
    if state != ACTIVE:
        return f"its own port is {state}"
    return "" if value == gid.value else f"its own address {gid.address} is gone"


def _texts(folder: Path) -> dict[str, str]:
    """Read the files that a port is made of, of the table only the entries that are filled.

    A table has up to 1024 entries, and the kernel refuses attributes of empty ones.
    """
    found = {name: (folder / name).read_text() for name in ("state", "link_layer")}
    for path in (folder / "gids").iterdir():
        text = path.read_text()
        if text.strip("0:\n"):
            found[f"gids/{path.name}"] = text
            for kind in ("types", "ndevs"):
                # An entry may go in between: then it has no type, and no lane uses it.
                with suppress(OSError):
                    name = f"gid_attrs/{kind}/{path.name}"
                    found[name] = (folder / name).read_text()
    return found
