"""What is done about a wedge: the evidence is kept, then the site's word is followed, once."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tetraspark.errors import UsageError
from tetraspark.line.stop import mark_stopped, stop_run
from tetraspark.receipts.store import ReceiptStore
from tetraspark.site.source import read_source
from tetraspark.site.watch import OnWedge
from tetraspark.watch.collect import collect
from tetraspark.watch.observation import Finding, Observation
from tetraspark.watch.process import command
from tetraspark.watch.record import STARTED_BY_WATCH, Act, Record, choose
from tetraspark.watch.watched import Watched


def act(watched: Watched, record: Record, found: Observation) -> OnWedge | None:
    """Keep the evidence of a wedge and stop the line if the site wants that; return what was done.

    None where this run's wedge was dealt with before. A restart is left to the caller, who has to
    let go of the line first. Raises OSError when evidence or record cannot be written, and then
    nothing was done; RunError when the line could not be stopped.
    """
    run = watched.observer.run
    acts = record.acts()
    if run is None or any(one["run"] == run.id for one in acts):
        return None
    evidence = collect(watched.loaded, run, watched.nodes, found, watched.observer.metrics())
    changed = _site_changed(watched, run.id)
    done, why = choose(watched.loaded.site.watch.on_wedge, acts, changed)
    told = Act(
        at=found.at,
        run=run.id,
        reason=found.reason,
        rank=found.rank,
        done=done,
        why=why,
        folder=str(evidence.folder),
        places=evidence.places,
        unread=evidence.unread,
    )
    record.add(told)
    if done == "stop":
        mark_stopped(run)
        stop_run(watched.runner, run, watched.loaded.site.deadlines.stop_seconds)
    return done


def _site_changed(watched: Watched, run: str) -> bool:
    """Tell whether the site file is another one than what a run was served from.

    That is what its receipt says, as after a rollback; else what this watch began with. A fleet
    that was rolled back runs the recorded image under a name of its own, which no file has.
    """
    try:
        receipt = ReceiptStore(watched.store.root).read(run)
        served = receipt.site_sha256
        if receipt.rollback_of is not None and receipt.kind == "fleet":
            return True
    except UsageError:
        served = watched.loaded.sha256
    try:
        return read_source(watched.loaded.path).sha256 != served
    except UsageError:
        return True


def acted_findings(acts: Sequence[dict[str, Any]], run: str | None) -> tuple[Finding, ...]:
    """Return what was done about this run, as findings. Pure."""
    return tuple(
        Finding(
            id="WEDGE.KEPT",
            where=f"run {one['run']}",
            observed=f"{one['reason']}; done: {one['done']} ({one['why']})",
            wanted="a line that makes progress",
            fix=f"look at {one['folder']}",
        )
        for one in acts
        if one["run"] == run
    )


def key_findings(acts: Sequence[dict[str, Any]], run: str | None) -> tuple[Finding, ...]:
    """Return what may still hold the key, because its file could not be read. Pure."""
    return tuple(
        Finding(
            id="WEDGE.KEY",
            where=one["unread"]["name"],
            observed=one["unread"]["why"],
            wanted="a key file that can be read, to take the key out of the evidence",
            fix=f"look for the key in {one['folder']} before you send any of it",
        )
        for one in acts
        if one["run"] == run and one.get("unread")
    )


def restart_words(how: OnWedge, before: Mapping[str, Any], despite: Sequence[str]) -> list[str]:
    """Return the words of the `serve` of a restart. Pure.

    `before` is the plan of the run that failed: what it left out is left out again. `despite` are
    the failed checks that it was told to go on despite.
    """
    without = how == "restart-without-transport" or before.get("transport") == "off"
    words = ["--replace", *(["--without-transport"] if without else [])]
    return words + (["--despite", ",".join(despite)] if despite else [])


def restart(site: Path, words: Sequence[str], env: Mapping[str, str]) -> int:
    """Serve the line anew in its own place; return the exit code of `serve`."""
    done = subprocess.run(
        command("serve", site, *words),
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        env={**env, STARTED_BY_WATCH: "1"},
        check=False,
    )
    return done.returncode
