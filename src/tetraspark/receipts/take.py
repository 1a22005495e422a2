"""Taking the receipt of a line that has just become ready."""

from tetraspark import __version__
from tetraspark.images.package import read_package
from tetraspark.line.run import Run
from tetraspark.line.serve import Served
from tetraspark.measure.about import now
from tetraspark.receipts.receipt import Proof, ServedNode, ServeReceipt
from tetraspark.site.load import LoadedSite
from tetraspark.site.secret import hide

SHORTEST_KEY = 8
"""Characters: a shorter key is in too many words to be taken out of a text."""


def take_receipt(
    loaded: LoadedSite,
    run: Run,
    served: Served,
    nodes: tuple[ServedNode, ...],
    key: str | None,
    rollback_of: str | None = None,
) -> ServeReceipt:
    """Return the receipt of a run that is ready, on nodes as `served_nodes` tells them.

    Raises RunError when the run's plan is gone, UsageError where git is needed and does not answer.
    """
    tolerated = {str(one["id"]) for one in run.read().get("tolerated", ())}
    return ServeReceipt(
        id=run.id,
        line=loaded.site.name,
        kind=loaded.site.kind,
        at=now(),
        rollback_of=rollback_of,
        tetraspark=__version__,
        revision=read_package().label,
        site=str(loaded.path.resolve()),
        site_sha256=loaded.sha256,
        site_text=without_key(loaded.text, key),
        plan=run.plan(),
        effective=tuple(run.effective() or ()),
        tolerated=tuple(sorted(tolerated)),
        nodes=nodes,
        proof=Proof(
            prompt=loaded.site.model.canary.prompt,
            answer=served.answer.text,
            finish=served.answer.finish,
            seconds={str(phase): seconds for phase, seconds in served.seconds.items()},
        ),
    )


def without_key(text: str, key: str | None) -> str:
    """Return the text of a site without credentials: a comment may hold what no value may."""
    if key is not None and len(key) >= SHORTEST_KEY:
        text = text.replace(key, "[hidden]")
    return hide(text)
