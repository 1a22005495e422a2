"""The image recipes: what each one puts on the base image."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tetraspark.images.manifest import Recipe


@dataclass(frozen=True)
class Contents:
    """What a recipe is made of.

    `engine` is the SGLang in the image. `branch`: its tree is replaced by the pinned archive.
    `plugin`: tetraspark's plugin and collectives are installed. `environment`: the engine has a
    Python environment of its own, with nothing of the base's packages in it.
    """

    summary: str
    engine: Literal["dsv4.1", "0.5.23"]
    branch: bool = False
    plugin: bool = False
    environment: bool = False


RECIPES: Mapping[Recipe, Contents] = {
    "base": Contents("the pinned image of the dsv4.1 branch as it is", "dsv4.1"),
    "canary": Contents("its engine replaced by the branch at the pinned commit", "dsv4.1", True),
    "canary-roce": Contents(
        "canary, with tetraspark's plugin and collectives", "dsv4.1", branch=True, plugin=True
    ),
    "release": Contents(
        "SGLang 0.5.23 in an environment of its own, with plugin and collectives",
        "0.5.23",
        plugin=True,
        environment=True,
    ),
}
