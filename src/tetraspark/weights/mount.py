"""How the checkpoint gets into a rank's container, in each mode. Pure."""

import csv
import io
from dataclasses import dataclass

from tetraspark.fleet.container import LINE
from tetraspark.fleet.facts import expanded
from tetraspark.site.schema import Site

MODEL_MOUNT = "/model"
EXPORTS = "/srv/nfs"
"""Where a server has the folders that are exported by a bare name."""


@dataclass(frozen=True)
class NfsVolume:
    """A docker volume of a worker: its name, and the server and path it is mounted from."""

    name: str
    line: str
    server: str
    path: str

    @property
    def options(self) -> dict[str, str]:
        """The options of Docker's local driver, which hands them to mount(8)."""
        return {"type": "nfs", "o": f"addr={self.server},nfsvers=4,ro", "device": f":{self.path}"}

    @property
    def create(self) -> tuple[str, ...]:
        """The command that makes it."""
        options = (f"{name}={value}" for name, value in self.options.items())
        return (
            *("docker", "volume", "create", "--driver", "local", "--label", f"{LINE}={self.line}"),
            *(word for option in options for word in ("--opt", option)),
            self.name,
        )


def model_mount(site: Site, rank: int, home: str) -> tuple[str, ...]:
    """Return the words of `docker run` that mount the checkpoint at `MODEL_MOUNT`, read-only.

    `home` is the home folder of the login on the rank's node. `--mount`, not `--volume`: Docker
    refuses a folder that is not there, where `--volume` would make an empty one as root.
    """
    volume = nfs_volume(site, rank)
    if volume is None:
        return bind(expanded(site.model.path, home), MODEL_MOUNT)
    return _mount("type=volume", f"source={volume.name}", f"target={MODEL_MOUNT}", "volume-nocopy")


def bind(source: str, target: str, writable: bool = False) -> tuple[str, ...]:
    """Return docker's words that mount a folder or file of the node; it must be there."""
    return _mount("type=bind", f"source={source}", f"target={target}", writable=writable)


def nfs_volume(site: Site, rank: int) -> NfsVolume | None:
    """Return the volume of a rank; None where its node has the folder itself.

    With mode `nfs` that is the head, unless it has an `nfs_server` of its own.
    """
    weights, node = site.weights, site.nodes[rank]
    if weights is None or weights.mode != "nfs" or (rank == 0 and node.nfs_server is None):
        return None
    server = node.nfs_server or weights.nfs_server
    assert server is not None, "the site refuses a worker without a server"
    return NfsVolume(volume_name(site), site.name, server, export_path(site))


def volume_name(site: Site) -> str:
    """Return the name of the volume on workers."""
    named = site.weights.nfs_volume if site.weights else None
    return named or f"tetraspark-{site.name}-weights"


def export_path(site: Site) -> str:
    """Return the path that the server exports.

    `nfs_export` as it is where it begins with `/`; a bare name, by default the line's, is below
    `EXPORTS`: a home folder, other for each login, is no part of it.
    """
    named = site.weights.nfs_export if site.weights else None
    return named if named and named.startswith("/") else f"{EXPORTS}/{named or site.name}"


def _mount(*fields: str, writable: bool = False) -> tuple[str, ...]:
    """Return fields as Docker reads them: a line of CSV."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(fields if writable else (*fields, "readonly"))
    return "--mount", line.getvalue()
