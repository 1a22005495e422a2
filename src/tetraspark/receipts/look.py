"""What a receipt tells of a node: what to read there, and what to make of it. Pure."""

import hashlib
import json
from collections.abc import Mapping

from tetraspark.errors import RunError
from tetraspark.fleet.facts import Facts, Wanted
from tetraspark.fleet.this_machine import HERE
from tetraspark.images.built import parse_inspect
from tetraspark.measure.qualification.versions import WANTED as VERSIONS
from tetraspark.measure.qualification.versions import Versions, read_versions
from tetraspark.receipts.receipt import KeptImage, KeptModel, ServedNode
from tetraspark.site.load import LoadedSite
from tetraspark.weights.folder import READ, escaped, folder_of, within
from tetraspark.weights.place import place_of

TAGGED = "image of the tag"


def nodes_of(loaded: LoadedSite) -> tuple[str, ...]:
    """Return the names of a line's machines in rank order."""
    site = loaded.site
    return (HERE,) if site.kind == "local" else tuple(node.name for node in site.nodes)


def model_folder(loaded: LoadedSite, node: str) -> str | None:
    """Return the checkpoint's folder as the site names it; None where a node only mounts it."""
    if loaded.site.kind == "local":
        return str(loaded.resolve(loaded.site.model.path, "model.path"))
    place = place_of(loaded)
    return place.path if node in place.holders else None


def model_wanted(folder: str | None) -> Wanted:
    """Return what tells one checkpoint from another, without reading its shards."""
    if folder is None:
        return Wanted()
    base = escaped(folder)
    return Wanted(files=tuple(f"{base}/{name}" for name in READ), sizes=(f"{base}/*",))


def read_model(folder: str | None, facts: Facts) -> KeptModel | None:
    """Return the checkpoint that a probe of `model_wanted` found; None where there is nothing."""
    if folder is None:
        return None
    where = folder_of(folder, facts)
    sizes, texts = within(where, facts.sizes), within(where, facts.files)
    if not sizes:
        return None
    known = json.dumps([sorted(sizes.items()), sorted(texts.items())])
    digest = hashlib.sha256(known.encode()).hexdigest()
    return KeptModel(folder=where, files=len(sizes), bytes=sum(sizes.values()), sha256=digest)


def receipt_wanted(loaded: LoadedSite) -> dict[str, Wanted]:
    """Return what a probe reads on each node for a receipt."""
    look, image = VERSIONS, loaded.site.image
    if image is not None:
        look |= Wanted(commands={TAGGED: ("docker", "image", "inspect", image.tag)})
    return {node: look | model_wanted(model_folder(loaded, node)) for node in nodes_of(loaded)}


def served_nodes(
    loaded: LoadedSite,
    found: Mapping[str, Facts | RunError],
    images: Mapping[str, str],
    idle: Mapping[str, int],
) -> tuple[ServedNode, ...]:
    """Return every node of a ready line; one that was not reached has its error.

    `found` is what probes of `receipt_wanted` found, `images` are the IDs of the images that run,
    `idle` the bytes that nodes had available before the start, where these are known.
    """
    return tuple(
        _served(loaded, node, found[node], images.get(node, ""), idle.get(node))
        for node in nodes_of(loaded)
    )


def _served(
    loaded: LoadedSite, node: str, found: Facts | RunError, running: str, idle: int | None
) -> ServedNode:
    if isinstance(found, RunError):
        told = Versions(node, error=found.problems[0].seen).as_dict()
        return ServedNode.model_validate({**told, "idle_bytes": idle, "image": None, "model": None})
    tag = loaded.site.image.tag if loaded.site.image else None
    more = {
        "idle_bytes": idle,
        "image": None if tag is None else _image(tag, running, found),
        "model": read_model(model_folder(loaded, node), found),
    }
    return ServedNode.model_validate({**read_versions(found).as_dict(), **more})


def _image(tag: str, running: str, facts: Facts) -> KeptImage | None:
    """Return the image that runs, with the tag's digests where the tag means it."""
    if not running:
        return None
    try:
        tagged = parse_inspect(facts.commands[TAGGED].stdout)
    except ValueError:
        return KeptImage(tag=tag, id=running, digests=())
    return KeptImage(tag=tag, id=running, digests=tagged.digests if tagged.id == running else ())
