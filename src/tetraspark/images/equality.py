"""Whether the nodes built the same image. Pure.

Image IDs cannot say it: each daemon writes its own times into the layers it makes. What is
compared instead is what decides how the image behaves:

- the base's layers, by digest, and that the image stands on them;
- the labels against what was asked for: among them the hash of the build context and that of the
  build arguments, so all that went into the build;
- the receipt that the last step writes: the version of every package, the sha256 of every file
  that went in, that of the compiled proxy;
- a hash of what is really there in the folders and packages that the recipe filled, taken in a
  container of the built image; so what came out of the build;
- the configuration that a container gets, and the platform.

The number of layers is not compared: a step that changes no file makes a layer in one of Docker's
builders and none in the other.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tetraspark.errors import Problem
from tetraspark.fleet.plain import plain
from tetraspark.images.built import BuiltImage

SHOWN = 5


def differences(images: Mapping[str, BuiltImage], labels: Mapping[str, str]) -> list[Problem]:
    """Return one problem for each node and aspect that is not as it is elsewhere, or as asked.

    `images` is by node, the head first; `labels` are what the images must carry.
    """
    found = [one for node, image in images.items() for one in _against_plan(node, image, labels)]
    if not found:
        facts = {node: _facts(image) for node, image in images.items()}
        for aspect in next(iter(facts.values()), {}):
            found += _between(aspect, {node: fact[aspect] for node, fact in facts.items()})
    return found


def _against_plan(node: str, image: BuiltImage, labels: Mapping[str, str]) -> Iterator[Problem]:
    for name, value in labels.items():
        seen = image.image.labels.get(name)
        if seen != value:
            yield _problem(node, f"label {name} is {seen!r}", f"{value!r}, as planned")
    if not image.stands_on_base:
        wanted = f"the {len(image.base.layers)} layers of its base below its own"
        yield _problem(node, "the image does not stand on its base's layers", wanted)


def _facts(image: BuiltImage) -> dict[str, Any]:
    """Return what must be equal, by the name a person gives it."""
    return {
        "platform": image.image.platform,
        "base layers": list(image.base.layers),
        "configuration": dict(image.image.config),
        "receipt": None if image.receipt is None else dict(image.receipt),
        "contents": None if image.contents is None else dict(image.contents),
    }


def _between(aspect: str, values: Mapping[str, Any]) -> Iterator[Problem]:
    """Name the nodes that are not like most; of two equal halves, those unlike the head."""
    texts = {node: json.dumps(value, sort_keys=True) for node, value in values.items()}
    counts = list(texts.values())
    # `max` keeps the first of equals, and the head comes first.
    usual = max(texts, key=lambda node: counts.count(texts[node]))
    like = ", ".join(node for node in texts if texts[node] == texts[usual])
    for node in texts:
        if texts[node] != texts[usual]:
            paths = list(_paths(values[node], values[usual], aspect))
            more = f", and {len(paths) - SHOWN} more" if len(paths) > SHOWN else ""
            yield _problem(node, "; ".join(paths[:SHOWN]) + more, f"as on {like}")


def _paths(here: Any, there: Any, path: str) -> Iterator[str]:
    """Name each place where two values differ, with both values."""
    if isinstance(here, dict) and isinstance(there, dict):
        for key in sorted({*here, *there}):
            yield from _paths(here.get(key), there.get(key), f"{path} {key}")
    elif here != there:
        yield f"{path}: {_short(here)}, elsewhere {_short(there)}"


def _short(value: Any) -> str:
    text = "absent" if value is None else json.dumps(value)
    return text if len(text) <= 80 else f"{text[:77]}…"


def _problem(node: str, seen: str, wanted: str) -> Problem:
    return Problem(
        f"{node} image", plain(seen), wanted, f"tetraspark build --node {node} --no-cache"
    )
