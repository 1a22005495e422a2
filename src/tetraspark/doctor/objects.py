"""What a node's Docker has by the names of the line: image, base, container."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from tetraspark.doctor.docker import texts
from tetraspark.doctor.node_view import NodeView
from tetraspark.errors import UsageError
from tetraspark.fabric.inventory_json import parsed, table, whole
from tetraspark.fleet.container import container_name
from tetraspark.fleet.facts import Wanted
from tetraspark.images.assemble import base_of
from tetraspark.images.built import Described, parse_inspect
from tetraspark.images.manifest import Manifest, load_manifest
from tetraspark.site.load import LoadedSite

COMMAND = "docker objects"


def wanted(loaded: LoadedSite, rank: int) -> Wanted:
    """Ask for all of them with one command: each is an object of its own kind."""
    site = loaded.site
    names = [*((site.image.tag,) if site.image else ()), *base(loaded)]
    names.append(container_name(site.name, rank))
    argv = ("docker", "inspect", "--format", "{{json .}}", *names)
    return Wanted(commands={COMMAND: argv})


def base(loaded: LoadedSite) -> tuple[str, ...]:
    """Return the base image's name, if the site or the manifest tells it."""
    image = loaded.site.image
    if image is None:
        return ()
    try:
        return (base_of(loaded, image, _shipped().of(image.recipe)),)
    except UsageError:
        return ()


def _objects(view: NodeView) -> Iterator[dict[str, Any]]:
    lines = view.said(COMMAND).stdout.splitlines()
    return (found for line in lines if (found := table(parsed(line))))


@cache
def _shipped() -> Manifest:
    """Return the manifest of this package, which takes a while to read."""
    return load_manifest()


def images(view: NodeView) -> dict[str, Any]:
    """Return the raw description of each image that is there, by each of its names."""
    return {
        name: one
        for one in _objects(view)
        if "RootFS" in one
        for key in ("RepoTags", "RepoDigests")
        for name in texts(one.get(key))
    }


def image(view: NodeView, name: str) -> tuple[Described, int] | None:
    """Return the image of a name and its size in bytes, or None."""
    tag, _, digest = name.partition("@")
    # RepoDigests has the repository with the digest, and never a tag.
    repository = tag.rsplit(":", 1)[0] if ":" in tag.rsplit("/", 1)[-1] else tag
    found = images(view).get(f"{repository}@{digest}" if digest else name)
    if found is None or not _sound(found):
        return None
    try:
        return parse_inspect(json.dumps([found])), whole(found.get("Size")) or 0
    except ValueError:
        return None


def _sound(image: Mapping[str, Any]) -> bool:
    """Tell whether what an image has several of is of the types it should be."""
    config, layers = table(image.get("Config")), table(image.get("RootFS")).get("Layers")
    labels = config.get("Labels") or {}
    lists = (config.get("Env") or [], layers or [])
    return isinstance(labels, dict) and all(isinstance(one, list) for one in lists)


def container(view: NodeView) -> Mapping[str, Any] | None:
    """Return the container of this node's rank, or None."""
    name = "/" + container_name(view.loaded.site.name, view.rank)
    return next((one for one in _objects(view) if one.get("Name") == name and "State" in one), None)
