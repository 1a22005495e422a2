"""An image as a node's Docker describes it. Pure: the text of `docker image inspect`."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tetraspark.fleet.plain import plain

# What a container gets from its image. Not here: what only tells how the image was made
# (Hostname, and Image, the ID of the layer before, which holds time stamps).
CONFIG_KEYS = (
    "User",
    "ExposedPorts",
    "Env",
    "Entrypoint",
    "Cmd",
    "Healthcheck",
    "Volumes",
    "WorkingDir",
    "Labels",
    "StopSignal",
    "StopTimeout",
    "Shell",
    "OnBuild",
)


@dataclass(frozen=True)
class Described:
    """An image in a node's store: its ID there, platform ("linux/arm64"), layers, configuration.

    `layers` are the uncompressed layers' digests from the bottom up, whatever the storage driver;
    `digests` the references by digest under which it was pulled.
    """

    id: str
    platform: str
    layers: tuple[str, ...]
    digests: tuple[str, ...]
    config: Mapping[str, Any]

    @property
    def labels(self) -> Mapping[str, str]:
        """The image's labels."""
        return self.config.get("Labels") or {}


@dataclass(frozen=True)
class BuiltImage:
    """What a node built: the image, what it was built on, what its recipe put in.

    `receipt` is what the recipe's last step wrote down, `contents` hashes of what is there, by
    folder and package (images.contents); both None for a user's own Dockerfile.
    """

    image: Described
    base: Described
    receipt: Mapping[str, Any] | None = None
    contents: Mapping[str, str] | None = None

    @property
    def stands_on_base(self) -> bool:
        """Whether its lowest layers are the base's."""
        return self.image.layers[: len(self.base.layers)] == self.base.layers

    def as_dict(self) -> dict[str, object]:
        """Return what a report shows, for `--json`."""
        return {
            "id": self.image.id,
            "platform": self.image.platform,
            "base_layers": list(self.base.layers),
            "layers_above": len(self.image.layers) - len(self.base.layers),
            "labels": dict(self.image.labels),
            "receipt": self.receipt,
            "contents": self.contents,
        }


def parse_inspect(text: str) -> Described:
    """Read the output of `docker image inspect IMAGE`. Raises ValueError for anything else."""
    try:
        (one,) = json.loads(text)
        config = one["Config"] or {}
        return Described(
            id=plain(one["Id"]),
            platform=plain(f"{one['Os']}/{one['Architecture']}"),
            layers=tuple(one["RootFS"].get("Layers") or ()),
            digests=tuple(one.get("RepoDigests") or ()),
            config={key: config[key] for key in CONFIG_KEYS if config.get(key)},
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"not what docker image inspect prints: {text[:200]!r}") from error


def parse_contents(text: str) -> tuple[Mapping[str, Any], Mapping[str, str]]:
    """Read what `images.contents` prints in an image: receipt and contents.

    Raises ValueError for anything else.
    """
    try:
        found = json.loads(text)
        receipt, contents = found["receipt"], found["contents"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"no receipt and contents: {text[:200]!r}") from error
    if not isinstance(receipt, dict) or not isinstance(contents, dict) or not contents:
        raise ValueError(f"no receipt and contents: {text[:200]!r}")
    return receipt, contents
