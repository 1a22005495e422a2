"""TCP ports that the head listens on."""

from collections.abc import Iterator

from tetraspark.doctor.finding import Finding
from tetraspark.doctor.node_view import NodeView
from tetraspark.fleet.facts import Wanted
from tetraspark.site.load import LoadedSite
from tetraspark.site.serving import DIST_PORT


def api_port(loaded: LoadedSite) -> int:
    """Return the port of the API; 0 lets the launcher choose."""
    return loaded.site.api.port


def rendezvous_port(loaded: LoadedSite) -> int:
    """Return the port at which the ranks meet."""
    return loaded.site.engine.dist_port or DIST_PORT


def api_wanted(loaded: LoadedSite, rank: int) -> Wanted:
    """Ask for the listener of the API's port, on the head."""
    return Wanted(ports=(api_port(loaded),) if rank == 0 and api_port(loaded) else ())


def rendezvous_wanted(loaded: LoadedSite, rank: int) -> Wanted:
    """Ask for the listener of the rendezvous port, on the head."""
    return Wanted(ports=(rendezvous_port(loaded),) if rank == 0 else ())


def api(view: NodeView) -> Iterator[Finding]:
    """Judge the port of the API."""
    if view.rank == 0:
        yield _free(view, api_port(view.loaded), "api.port")


def rendezvous(view: NodeView) -> Iterator[Finding]:
    """Judge the port of the rendezvous."""
    if view.rank == 0:
        yield _free(view, rendezvous_port(view.loaded), "engine.dist_port")


def _free(view: NodeView, port: int, key: str) -> Finding:
    wanted = f"TCP port {port} free ({key})"
    if port == 0:
        return Finding("ok", "the launcher chooses a free one", "a free TCP port")
    owner = view.facts.listeners.get(port)
    if owner is None:
        return Finding("ok", "free", wanted)
    seen = f"taken by {owner or 'a process that this login may not name'}"
    look = view.shell(f"sudo ss -ltnp 'sport = :{port}'")
    where = view.loaded.origin(key).where
    return Finding("failed", seen, wanted, f"{look}; end it, or set another {key} ({where})")
