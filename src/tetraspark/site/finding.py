"""One thing wrong with a document, still tied to its key and not yet to a line."""

from dataclasses import dataclass

from tetraspark.site.keypath import KeyPath


@dataclass(frozen=True)
class Finding:
    """`path` is the key at fault; `related` are other keys the reader has to see beside it."""

    path: KeyPath
    seen: str
    wanted: str
    fix: str = ""
    related: tuple[KeyPath, ...] = ()
