"""The manifest beside a packed shard: what is in it, from where, and how to prove it."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tetraspark.engram.layout import Split, shard_range

FORMAT = 1
HEADER_BYTES = 4096
"""The first page of a shard: row 0 begins at a block of the disk."""

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class Tensor(_Part):
    """One tensor of the checkpoint: `bytes` of each of its rows."""

    tensor: str
    dtype: str
    bytes: Count


class SourceFile(_Part):
    """A file that rows came from; the hash is that of its header, which lists its tensors."""

    file: str
    size: Count
    header_sha256: Sha256


class Manifest(_Part):
    """What a shard holds. `layers` are all Engram layers of the checkpoint, `rows` first and end.

    `sha256` is of the whole file, `samples` are rows of the table with the hash of their record.
    """

    format: int
    layer: Count
    layers: tuple[Count, ...]
    rank: Count
    tp: Annotated[int, Field(ge=1)]
    split: Split
    rows: tuple[Count, Count]
    table_rows: Count
    columns: tuple[Count, ...]
    weight: Tensor
    scale: Tensor
    row_bytes: Annotated[int, Field(ge=1)]
    header_bytes: Count
    bytes: Count
    sources: tuple[SourceFile, ...]
    sha256: Sha256
    samples: tuple[tuple[Count, Sha256], ...]

    def range_of(self, rank: int, tp: int) -> tuple[int, int]:
        """Return the rows that a rank has of this table."""
        return shard_range(self.table_rows, self.columns, self.split, rank, tp)

    def owner(self) -> str:
        """Name the rank whose rows these are, whatever rank the manifest names."""
        for rank in range(self.tp):
            if self.range_of(rank, self.tp) == self.rows:
                return f"rank {rank}"
        return "no rank"


def read_manifest(text: str) -> Manifest:
    """Return the manifest in a text. Raises ValueError saying what is wrong with it."""
    try:
        found = Manifest.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        more = f", and {error.error_count() - 1} more" if error.error_count() > 1 else ""
        raise ValueError(f"{place}: {first['msg']}{more}") from error
    if found.format != FORMAT:
        raise ValueError(f"format {found.format}, not {FORMAT}")
    if found.bytes != found.header_bytes + (found.rows[1] - found.rows[0]) * found.row_bytes:
        raise ValueError("bytes is not a header and the rows")
    if found.columns and found.columns[-1] != found.table_rows:
        raise ValueError("the columns do not end at table_rows")
    return found
