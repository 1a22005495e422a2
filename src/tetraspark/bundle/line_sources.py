"""What a bundle takes from this machine: the site, and the newest run of the line."""

import json
from pathlib import Path

from tetraspark.bundle.source import HEAD_BYTES, TAIL_BYTES, Missing, Source, ends
from tetraspark.errors import UsageError
from tetraspark.line.engine_log import read_receipt
from tetraspark.line.run import Run
from tetraspark.site.load import LoadedSite
from tetraspark.site.source import read_bytes

RECEIPTS = "line/receipts.jsonl"
KEPT = ("*.json", "*.log", "*.exit", "*.damaged-*")


def site_source(loaded: LoadedSite) -> Source:
    """Return the site file as it is, a byte that is no text shown as such; as it was loaded, where
    the file is gone.
    """
    try:
        return Source("site.toml", read_bytes(loaded.path).decode(errors="replace"))
    except UsageError:
        return Source("site.toml", loaded.text)


def run_sources(run: Run | None) -> tuple[list[Source], list[Missing]]:
    """Return the files of a run, logs by their two ends."""
    if run is None:
        return [], [Missing("line", "this line was never served from this machine")]
    sources, missing = [Source("line/run.txt", f"{run.id}\n")], []
    for path in sorted(path for pattern in KEPT for path in run.folder.glob(pattern)):
        try:
            sources.append(Source(f"line/{path.name}", _read(path)))
        except OSError as error:
            missing.append(Missing(f"line/{path.name}", error.strerror or str(error)))
    return sources, missing


def receipts(sources: list[Source]) -> Source:
    """Return the receipts that the logs among some sources hold, with the name of each log."""
    rows = [
        json.dumps({"log": source.name, **receipt})
        for source in sources
        if source.name.endswith((".log", "log.txt"))
        for line in source.text.splitlines()
        if (receipt := read_receipt(line[max(line.find('{"tetraspark"'), 0) :])) is not None
    ]
    return Source(RECEIPTS, "".join(f"{row}\n" for row in rows))


def _read(path: Path) -> str:
    """Read the two ends of a file; it may be a log that grows."""
    with path.open("rb") as file:
        size = path.stat().st_size
        if size <= HEAD_BYTES + TAIL_BYTES:
            return ends(file.read())
        head = file.read(HEAD_BYTES)
        file.seek(size - TAIL_BYTES)
        return ends(head + file.read(TAIL_BYTES), size)
