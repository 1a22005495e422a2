"""The evidence of a wedge, kept before anything is done about it."""

import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tetraspark.bundle.archive import pack
from tetraspark.bundle.collect import gather
from tetraspark.bundle.redaction import Redactor, known_secrets
from tetraspark.bundle.source import Missing, Source
from tetraspark.fleet.command import NodeRunner
from tetraspark.line.run import Run
from tetraspark.site.load import LoadedSite
from tetraspark.watch.observation import Observation
from tetraspark.watch.stacks import HERE, gather_stacks, places


@dataclass(frozen=True)
class Evidence:
    """Where it was kept, and where each rank stood, by rank."""

    folder: Path
    places: dict[str, str]


def collect(
    loaded: LoadedSite,
    run: Run,
    nodes: NodeRunner,
    observation: Observation,
    metrics: str | None,
) -> Evidence:
    """Keep stacks, counters and a support bundle in a new folder of the run, stacks first.

    What cannot be had is listed in the bundle with the reason. Raises OSError when the folder
    cannot be written.
    """
    folder = _new_folder(run.folder)
    stacks, failed = gather_stacks(run, run.plan(), nodes)
    told = json.dumps(observation.as_dict(), indent=1) + "\n"
    texts = {
        "stacks.txt": "\n".join(map(str, stacks)),
        "metrics.txt": metrics or "",
        "observation.json": told,
    }
    missing = [Missing(f"watch/stacks of {node}", why) for node, why in failed.items()]
    if not metrics:
        missing.append(Missing("watch/metrics.txt", "the engine's /metrics gave no answer"))
    key = loaded.site.api.key_file
    secrets = known_secrets(loaded.resolve(key, "api.key_file") if key else None, os.environ)
    redactor = Redactor(secrets)
    for name, text in texts.items():
        (folder / name).write_text(redactor.clean(text), encoding="utf-8")
    found = gather(loaded, run, nodes, _names(loaded), lambda: told)
    sources = [*found.sources, *(Source(f"watch/{name}", text) for name, text in texts.items())]
    lacking = [*found.missing, *missing]
    data, _ = pack(loaded.site.name, sources, lacking, found.findings, redactor, observation.at)
    (folder / "support-bundle.tar.gz").write_bytes(data)
    return Evidence(folder, places(stacks))


def _names(loaded: LoadedSite) -> Sequence[str]:
    if loaded.site.kind == "local":
        return (HERE,)
    return [node.name for node in loaded.site.nodes]


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
