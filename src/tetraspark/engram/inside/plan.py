"""One shard to be: its files, what identifies it, and where its rows come from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tetraspark.engram.inside.files import read_object
from tetraspark.engram.inside.record import HEADER_BYTES
from tetraspark.engram.inside.source import Checkpoint, Rows

WEIGHT, SCALE = "F8_E4M3", "F8_E8M0"


@dataclass(frozen=True)
class Shard:
    """`identity` is all of the manifest that is known before a byte is read."""

    name: str
    folder: Path
    identity: dict[str, Any]
    weight: Rows
    scale: Rows

    @property
    def first(self) -> int:
        """The first row."""
        return int(self.identity["rows"][0])

    @property
    def count(self) -> int:
        """How many rows."""
        return int(self.identity["rows"][1]) - self.first

    @property
    def row_bytes(self) -> int:
        """Bytes of a record."""
        return int(self.identity["row_bytes"])

    @property
    def bytes(self) -> int:
        """Bytes of the whole file."""
        return int(self.identity["bytes"])

    def path(self, ending: str) -> Path:
        """Return one of its files: bin, json, bin.part or bin.part.json."""
        return self.folder / f"{self.name}.{ending}"

    def differences(self, found: object) -> str:
        """Say what a manifest is, as `read_json` found it; nothing where it is of this shard."""
        if isinstance(found, str):
            return found
        if not isinstance(found, dict) or not self.identity.keys() <= found.keys():
            return "not a manifest of ours"
        for key, value in self.identity.items():
            if found[key] != value:
                return f"of another shard: {key} is {_short(found[key])}, here {_short(value)}"
        return ""

    def whole(self) -> bool:
        """Tell whether the shard is there, by its manifest and its size."""
        manifest, file = read_object(self.path("json")), self.path("bin")
        fits = not self.differences(manifest) and "sha256" in manifest
        return fits and file.is_file() and file.stat().st_size == self.bytes

    def renamed(self) -> bool:
        """Tell whether a pack ended between the file's own name and its manifest."""
        journal = read_object(self.path("bin.part.json"))
        ended = journal.get("identity") == self.identity and journal.get("rows") == self.count
        return ended and self.path("bin").exists() and not self.path("bin.part").exists()


def shard_of(checkpoint: Checkpoint, folder: Path, asked: dict[str, Any]) -> Shard:
    """Find the tensors of a shard. Raises Refusal for a checkpoint that has not what is asked."""
    known = dict(asked)
    name, dim, scales = known.pop("name"), known.pop("dim"), known.pop("scales")
    stem, rows = f"layers.{known['layer']}.engram.embed", known["table_rows"]
    weight = checkpoint.rows(f"{stem}.weight", WEIGHT, rows, dim)
    scale = checkpoint.rows(f"{stem}.scale", SCALE, rows, scales)
    first, end = known["rows"]
    headers = {one.path: one.header for one in (weight, scale)}
    known["weight"] = {"tensor": weight.name, "dtype": weight.dtype, "bytes": dim}
    known["scale"] = {"tensor": scale.name, "dtype": scale.dtype, "bytes": scales}
    known["row_bytes"] = dim + scales
    known["header_bytes"] = HEADER_BYTES
    known["bytes"] = HEADER_BYTES + (end - first) * (dim + scales)
    known["sources"] = [header.as_source() for header in headers.values()]
    return Shard(name, folder, known, weight, scale)


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 160 else f"{text[:157]}..."
