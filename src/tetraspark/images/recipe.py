"""The image recipes: what each one puts on the base image."""

from collections.abc import Mapping
from dataclasses import dataclass

from tetraspark.images.manifest import Recipe


@dataclass(frozen=True)
class Contents:
    """What a recipe is made of.

    `branch`: the engine's tree is replaced by the pinned archive.
    `plugin`: tetraspark's plugin and collectives are installed. `environment`: the engine has a
    Python environment of its own, with nothing of the base's packages in it.
    """

    summary: str
    branch: bool = False
    plugin: bool = False
    environment: bool = False


RECIPES: Mapping[Recipe, Contents] = {
    "base": Contents("the pinned image of the dsv4.1 branch as it is"),
    "canary": Contents("its engine replaced by the branch at the pinned commit", branch=True),
    "canary-roce": Contents(
        "canary, with tetraspark's plugin and collectives", branch=True, plugin=True
    ),
    "release": Contents(
        "SGLang 0.5.23 in an environment of its own, with plugin and collectives",
        plugin=True,
        environment=True,
    ),
}
