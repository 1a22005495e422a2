"""How the files of the nodes differ from a reference. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tetraspark.errors import Problem
from tetraspark.weights.tally import FileSum, Tally


@dataclass(frozen=True)
class Reference:
    """The hash each file should have, and whose word that is."""

    source: str
    sums: Mapping[str, str]


def differences(reference: Reference, tally: Tally, fix: str) -> list[Problem]:
    """Return every file of the reference that a node lacks, or has with another hash.

    A file that could not be read is told by `unreadable`.
    """
    if not tally.exists or not tally.files:
        fault = "an empty folder" if tally.exists else "no such folder"
        where = f"{tally.node} {tally.folder}"
        return [Problem(where, fault, f"the files of {reference.source}", fix)]
    found = []
    for name, digest in sorted(reference.sums.items()):
        seen = _seen(tally.files.get(name), digest)
        if seen is not None:
            where = f"{tally.node} {tally.folder}/{name}"
            found.append(Problem(where, seen, f"sha256 {digest} of {reference.source}", fix))
    return found


def unreadable(tally: Tally) -> Iterator[Problem]:
    """Find files that could not be hashed."""
    for name, one in sorted(tally.files.items()):
        if one.error is not None:
            where = f"{tally.node} {tally.folder}/{name}"
            fix = f"on {tally.node}: ls -l {tally.folder}/{name}"
            yield Problem(where, one.error, "a file that can be read", fix)


def extra(reference: Reference, tallies: Iterable[Tally]) -> dict[str, list[str]]:
    """Return files that the reference does not name, by node: no fault, and left alone."""
    found = {tally.node: sorted(tally.files.keys() - reference.sums.keys()) for tally in tallies}
    return {node: names for node, names in found.items() if names}


def _seen(one: FileSum | None, digest: str) -> str | None:
    if one is None:
        return "missing"
    if one.error is not None or one.sha256 == digest:
        return None
    return f"sha256 {one.sha256}, {one.size} bytes"
