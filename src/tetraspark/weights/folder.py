"""A checkpoint's folder as a probe found it on a node. Pure: facts in, a value out."""

import glob
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, TypeVar

from tetraspark.fleet.facts import Facts, Wanted
from tetraspark.fleet.inside.look import MAX_BYTES
from tetraspark.weights.chat_template import (
    TOKENIZER_CONFIG,
    ChatTemplate,
    chat_template,
)
from tetraspark.weights.index import INDEX, Index, read_index

CONFIG = "config.json"
READ = (CONFIG, INDEX, TOKENIZER_CONFIG)
T = TypeVar("T")


@dataclass(frozen=True)
class Checkpoint:
    """What is in the folder: sizes in bytes by file name, and what the files say.

    `declared` are the sizes that shards say they have. `outside` are links, by name, to files that
    are not in the folder. `index` is None without one; a text is why it cannot be read. `config`
    is None where it is absent or no JSON object.
    """

    folder: str
    exists: bool
    sizes: Mapping[str, int]
    declared: Mapping[str, int]
    outside: Mapping[str, str]
    config: Mapping[str, Any] | None
    index: Index | str | None
    template: ChatTemplate

    @property
    def shards(self) -> tuple[str, ...]:
        """The shards there should be: those of the index, or else those that are there."""
        if isinstance(self.index, Index) and self.index.shards is not None:
            return self.index.shards
        return self.present

    @property
    def present(self) -> tuple[str, ...]:
        """The shards that are there."""
        return tuple(sorted(name for name in self.sizes if name.endswith(".safetensors")))

    @property
    def missing(self) -> tuple[str, ...]:
        """Shards of the index that are not there."""
        return tuple(name for name in self.shards if name not in self.sizes)

    @property
    def damaged(self) -> dict[str, str]:
        """What is wrong with a shard that is there, by name."""
        faults = {}
        for name in self.present:
            size, declared = self.sizes[name], self.declared.get(name)
            if size == 0:
                faults[name] = "empty"
            elif declared is None:
                faults[name] = f"{size} bytes without a header that can be read"
            elif size != declared:
                kind = "truncated" if size < declared else "too long"
                faults[name] = f"{kind}: {size} of {declared} bytes"
        return faults


def wanted(path: str) -> Wanted:
    """Return what a probe is to read of a checkpoint's folder; `~` is the node's."""
    folder = escaped(path)
    return Wanted(
        files=tuple(f"{folder}/{name}" for name in READ),
        links=(f"{folder}/*", folder),
        sizes=(f"{folder}/*",),
        space=(path,),
        shards=(f"{folder}/*.safetensors",),
    )


def folder_of(path: str, facts: Facts) -> str:
    """Return the folder as this node's login means it."""
    return str(PurePosixPath(facts.expand(path)))


def read_checkpoint(path: str, facts: Facts) -> Checkpoint:
    """Return what the facts of `wanted(path)` say of the folder."""
    folder = folder_of(path, facts)
    sizes = within(folder, facts.sizes)
    texts = within(folder, facts.files)
    config, tokenizer = _object(texts.get(CONFIG)), texts.get(TOKENIZER_CONFIG)
    cut = sizes.get(TOKENIZER_CONFIG, 0) > MAX_BYTES
    return Checkpoint(
        folder=folder,
        exists=path in facts.space and facts.space[path].path == folder,
        sizes=sizes,
        declared=within(folder, facts.declared),
        outside=_outside(folder, facts),
        config=config,
        index=_index(texts.get(INDEX), sizes.get(INDEX, 0)),
        template=chat_template(config or {}, frozenset(sizes), tokenizer, cut),
    )


def escaped(path: str) -> str:
    """Return a folder as a glob that matches it alone."""
    return glob.escape(path.rstrip("/") or "/")


def within(folder: str, found: Mapping[str, T]) -> dict[str, T]:
    """Return what is in the folder itself, by file name."""
    return {
        PurePosixPath(path).name: value
        for path, value in found.items()
        if str(PurePosixPath(path).parent) == folder
    }


def _outside(folder: str, facts: Facts) -> dict[str, str]:
    real = PurePosixPath(facts.links.get(folder, folder))
    links = within(folder, facts.links)
    return {
        name: target for name, target in sorted(links.items())
        if not PurePosixPath(target).is_relative_to(real)
    }  # fmt: skip


def _object(text: str | None) -> dict[str, Any] | None:
    try:
        parsed = json.loads(text) if text is not None else None
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None


def _index(text: str | None, size: int) -> Index | str | None:
    if text is None:
        return None
    try:
        return read_index(text, size > MAX_BYTES)
    except ValueError as error:
        return f"cannot be read: {error}"
