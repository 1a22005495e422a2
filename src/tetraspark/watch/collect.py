"""The evidence of a wedge, kept before anything is done about it."""

import json
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from tetraspark.bundle.archive import pack
from tetraspark.bundle.collect import gather, nodes_of
from tetraspark.bundle.redaction import redactor_of
from tetraspark.bundle.source import Missing, Source
from tetraspark.fleet.command import NodeRunner
from tetraspark.line.run import Run
from tetraspark.site.load import LoadedSite
from tetraspark.watch.observation import Observation
from tetraspark.watch.stacks import gather_stacks, places


@dataclass(frozen=True)
class Evidence:
    """Where it was kept, and where each rank stood, by rank.

    `unread` is a key file that could not be read: the key may be in what was kept.
    """

    folder: Path
    places: dict[str, str]
    unread: Missing | None


def collect(
    loaded: LoadedSite,
    run: Run,
    nodes: NodeRunner,
    observation: Observation,
    metrics: str | None,
) -> Evidence:
    """Keep stacks, counters and a support bundle in a new folder of the run, stacks first.

    What cannot be had is listed in the bundle with the reason. Raises OSError when there is no
    room for it; then nothing of it is left, and on a full disk nobody was asked for anything.
    """
    folder = _new_folder(run.folder)
    try:
        told = json.dumps(observation.as_dict(), indent=1) + "\n"
        (folder / "observation.json").write_text(told, encoding="utf-8")
        stacks, failed = gather_stacks(run, run.plan(), nodes)
        texts = {"stacks.txt": "\n".join(map(str, stacks)), "metrics.txt": metrics or ""}
        sources = [Source("watch/observation.json", told)]
        sources += [Source(f"watch/{name}", text) for name, text in texts.items()]
        missing = [Missing(f"watch/stacks of {node}", why) for node, why in failed.items()]
        if not metrics:
            missing.append(Missing("watch/metrics.txt", "the engine's /metrics gave no answer"))
        redactor = redactor_of(loaded, os.environ)
        for name, text in texts.items():
            (folder / name).write_text(redactor.clean(text), encoding="utf-8")
        found = gather(loaded, run, nodes, nodes_of(loaded), lambda: told)
        data, _ = pack(
            loaded.site.name,
            [*found.sources, *sources],
            [*found.missing, *missing],
            found.findings,
            redactor,
            observation.at,
        )
        (folder / "support-bundle.tar.gz").write_bytes(data)
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return Evidence(folder, places(stacks), redactor.unread)


def _new_folder(run_dir: Path) -> Path:
    folder = run_dir / time.strftime("wedge-%Y%m%d-%H%M%S", time.gmtime())
    number = 1
    while True:
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            number += 1
            folder = folder.with_name(f"{folder.name.rsplit('.', 1)[0]}.{number}")
        else:
            return folder
