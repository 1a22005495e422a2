"""The image of a line on its nodes: there, for this machine, and the same everywhere."""

import re
from collections.abc import Iterator, Mapping

from tetraspark.doctor import objects
from tetraspark.doctor.docker import info, not_asked
from tetraspark.doctor.finding import Finding
from tetraspark.doctor.node_view import NodeView
from tetraspark.fleet.facts import Wanted
from tetraspark.images.built import BuiltImage, Described
from tetraspark.images.equality import differences

MACHINE = Wanted(commands={"machine": ("uname", "-m")})
ARCHITECTURES = {"aarch64": "arm64", "x86_64": "amd64"}
"""`uname -m` -> Docker's name of the architecture."""
BAKED = re.compile(r"(\w+_SOCKET_IFNAME|LD_PRELOAD|NCCL_IB_GID_INDEX|NCCL_IB_HCA)=(.*)")
NOTHING = Described("", "", (), (), {})


def _tag(view: NodeView) -> str:
    image = view.loaded.site.image
    return image.tag if image else ""


def _build(view: NodeView) -> str:
    return f"tetraspark build --site {view.loaded.path} --node {view.node}"


def described(view: NodeView) -> Described | None:
    """Return the line's image on a node, or None."""
    found = objects.image(view, _tag(view))
    return found[0] if found else None


def present(view: NodeView) -> Iterator[Finding]:
    """Judge whether the image is there."""
    wanted, found = f"image {_tag(view)}", described(view)
    if found is not None:
        yield Finding("ok", f"{found.id[7:19]}, {found.platform}", wanted)
    elif info(view) is None:
        yield not_asked(view, wanted)
    else:
        yield Finding("failed", f"no image {_tag(view)}", wanted, _build(view))


def _absent(view: NodeView, wanted: str) -> Finding:
    return Finding("unknown", f"no image {_tag(view)} to look at", wanted, _build(view))


def architecture(view: NodeView) -> Iterator[Finding]:
    """Judge whether the image is of the node's own architecture."""
    machine = view.said("machine").stdout.strip()
    own, found = ARCHITECTURES.get(machine, machine), described(view)
    wanted = f"an image for linux/{own or 'the node'}"
    if found is None:
        yield _absent(view, wanted)
    elif not own:
        yield Finding("unknown", "uname -m said nothing", wanted, view.shell("uname -m"))
    elif found.platform != f"linux/{own}":
        yield Finding("failed", f"image for {found.platform} on {machine}", wanted, _build(view))
    else:
        yield Finding("ok", f"{found.platform} on {machine}", wanted)


def environment(view: NodeView) -> Iterator[Finding]:
    """Judge variables in the image that name devices of the machine it was made on."""
    wanted = "no interface, device or preload in the image's own environment"
    found = described(view)
    if found is None:
        yield _absent(view, wanted)
        return
    lines = found.config.get("Env") or ()
    baked = [line for line in map(str, lines) if BAKED.fullmatch(line)]
    if baked:
        fix = 'take them out of the image (ENV NAME=""), or choose another `image.base`'
        seen = f"set in the image: {', '.join(baked)}; a line's own settings override what it sets"
        yield Finding("warning", seen, wanted, fix)
    else:
        yield Finding("ok", "none", wanted)


def labels(view: NodeView) -> Iterator[Finding]:
    """Judge whether the image was built from what the site asks for."""
    image, found = view.loaded.site.image, described(view)
    assert image is not None
    asked: dict[str, str] = {"tetraspark.recipe": image.recipe}
    for name in objects.base(view.loaded):
        asked["tetraspark.base"] = name
    wanted = ", ".join(f"{name} {value}" for name, value in asked.items())
    if found is None:
        yield _absent(view, wanted)
        return
    other = {
        name: found.labels.get(name) for name in asked if found.labels.get(name) != asked[name]
    }
    if other:
        seen = ", ".join(f"{name} {value or 'absent'}" for name, value in other.items())
        yield Finding("failed", seen, wanted, _build(view))
    else:
        revision = found.labels.get("tetraspark.revision", "of no revision")
        yield Finding("ok", f"as asked; tetraspark {revision}", wanted)


def equal(views: Mapping[str, NodeView]) -> Iterator[Finding]:
    """Compare the images of the nodes by base layers, labels and configuration, never by ID.

    What is in the layers above the base is compared by `tetraspark build`, which starts a
    container for it.
    """
    wanted = "the same image on every node: base layers, labels, configuration"
    found = {node: described(view) for node, view in views.items()}
    there = {node: image for node, image in found.items() if image is not None}
    absent = [node for node in found if node not in there]
    base = _base(views)
    built = {node: BuiltImage(image, base) for node, image in there.items()}
    problems = differences(built, {})
    for problem in problems:
        node = problem.where.split()[0]
        yield Finding("failed", problem.seen, problem.wanted, problem.fix, node)
    if absent:
        fix = f"tetraspark build --node {absent[0]}"
        yield Finding("unknown", f"not there on {', '.join(absent)}", wanted, fix)
    elif there and not problems:
        layers = f"{len(base.layers)} layers of the base" if base.layers else "no base to compare"
        yield Finding("ok", f"equal on {len(there)} nodes ({layers})", wanted)


def _base(views: Mapping[str, NodeView]) -> Described:
    """Return the base as any node has it: a digest names the same layers everywhere."""
    for view in views.values():
        for name in objects.base(view.loaded):
            found = objects.image(view, name)
            if found is not None:
                return found[0]
    return NOTHING
