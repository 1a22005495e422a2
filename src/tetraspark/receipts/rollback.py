"""Serving again what a receipt recorded: whether all of it is there still, and the plan of it."""

import dataclasses
import shlex
from dataclasses import dataclass
from pathlib import Path

from tetraspark import __version__
from tetraspark.errors import Problem, RunError, UsageError
from tetraspark.fleet.command import NodeCommand, NodeRunner
from tetraspark.fleet.facts import Facts, Wanted
from tetraspark.fleet.probe import probe_all
from tetraspark.line.collective_settings import without_transport
from tetraspark.line.plan import Plan
from tetraspark.receipts.look import model_folder, model_wanted, nodes_of, read_model
from tetraspark.receipts.receipt import KeptModel, ServedNode, ServeReceipt
from tetraspark.receipts.settings import planned
from tetraspark.receipts.store import ReceiptStore
from tetraspark.site.load import LoadedSite, load_source
from tetraspark.site.source import decode_source

IMAGE = "image of the receipt"
REPOSITORY = "tetraspark-rollback"
OFF = "off"
TAG_SECONDS = 30.0


@dataclass(frozen=True)
class Tag:
    """A name that a rollback gives an image on one node, so that the whole start can use it."""

    node: str
    image: str
    name: str

    @property
    def argv(self) -> tuple[str, ...]:
        """The command on the node."""
        return ("docker", "tag", self.image, self.name)


def target(store: ReceiptStore, run: str | None, to: str | None) -> ServeReceipt:
    """Return the receipt to go back to: `to`, or the last good one before the run `run`.

    Raises UsageError where there is none.
    """
    id = store.find(to) if to is not None else store.good_before(run)
    if id is None:
        seen = "no receipt of an earlier line that became ready"
        fix = "tetraspark receipts list; name one: --to RECEIPT"
        raise UsageError(Problem(str(store.folder), seen, "something to go back to", fix))
    return store.read(id)


def left_out(receipt: ServeReceipt) -> bool:
    """Tell whether a start left out the transport that its site's text asks for.

    Raises UsageError for a text that this tetraspark does not take any more.
    """
    return receipt.plan.get("transport") == OFF != _written(receipt).site.transport


def _written(receipt: ServeReceipt) -> LoadedSite:
    return load_source(decode_source(Path(receipt.site), receipt.site_text.encode()))


def recorded_site(receipt: ServeReceipt, kept: Path) -> LoadedSite:
    """Return the site of a receipt as it was served, at the path and with the hash that it had.

    Raises UsageError, of the file `kept`, for a text that this tetraspark does not take any more.
    """
    try:
        loaded = _written(receipt)
    except UsageError as error:
        where = f"{kept}: site_text, once {{}}"
        told = (dataclasses.replace(one, where=where.format(one.where)) for one in error.problems)
        raise UsageError(*told) from error
    if left_out(receipt):
        loaded = without_transport(loaded)
    return dataclasses.replace(loaded, sha256=receipt.site_sha256)


def with_image(loaded: LoadedSite, receipt: ServeReceipt) -> LoadedSite:
    """Return the site with the name that `tags` gives the recorded image, as its image's tag."""
    site = loaded.site
    if site.image is None:
        return loaded
    image = site.image.model_copy(update={"tag": image_name(receipt)})
    return dataclasses.replace(loaded, site=site.model_copy(update={"image": image}))


def image_name(receipt: ServeReceipt) -> str:
    """Return the name of a receipt's image on every node; a tag of at most 128 characters."""
    return f"{REPOSITORY}:{receipt.line}-{receipt.id}"


def tags(receipt: ServeReceipt) -> list[Tag]:
    """Return the name for the recorded image of each node."""
    name = image_name(receipt)
    return [Tag(node.node, node.image.id, name) for node in receipt.nodes if node.image]


def require_there(receipt: ServeReceipt, loaded: LoadedSite, runner: NodeRunner) -> None:
    """Look at every node, which changes nothing, for the image and the model of a receipt.

    Raises RunError with all that is not there any more, or that the receipt does not tell.
    """
    known = {one.node: one for one in receipt.nodes}
    names = nodes_of(loaded)
    found = probe_all(runner, {node: _wanted(loaded, known.get(node), node) for node in names})
    problems: list[Problem] = []
    for node in names:
        facts = found[node]
        if isinstance(facts, RunError):
            problems += facts.problems
        elif (one := known.get(node)) is None or one.error is not None:
            seen = f"not in receipt {receipt.id}: it was not reached when that was taken"
            problems.append(Problem(node, seen, "its image and model", "another one: --to RECEIPT"))
        else:
            problems += [*_image(one, loaded, facts), *_model(one, loaded, facts)]
    if problems:
        raise RunError(*problems)


def require_same_plan(receipt: ServeReceipt, plan: Plan) -> None:
    """Raise RunError where the plan is another one, values aside that each start looks up."""
    before, after = planned(receipt.plan), planned(plan.as_dict())
    problems = [
        Problem(
            where=f"setting {name}",
            seen=f"{after.get(name, 'absent')}, as tetraspark {__version__} plans it now",
            wanted=f"{before.get(name, 'absent')}, as in receipt {receipt.id} "
            f"(tetraspark {receipt.tetraspark}, {receipt.revision[:12]})",
            fix="run that tetraspark, or serve the site as it is: tetraspark serve",
        )
        for name in dict.fromkeys((*before, *after))
        if before.get(name) != after.get(name)
    ]
    if problems:
        raise RunError(*problems)


def give_names(wanted: list[Tag], runner: NodeRunner) -> None:
    """Name the recorded image on each node. Raises RunError with the node where that fails."""
    for one in wanted:
        done = runner.run(one.node, NodeCommand(one.argv, timeout=TAG_SECONDS))
        if done.rc:
            fix = f"on {one.node}: {' '.join(one.argv)}"
            raise RunError(Problem(one.node, done.stderr.strip()[-300:], "the image named", fix))


def _wanted(loaded: LoadedSite, node: ServedNode | None, name: str) -> Wanted:
    look = model_wanted(model_folder(loaded, name))
    if node is None or node.image is None:
        return look
    return look | Wanted(commands={IMAGE: ("docker", "image", "inspect", node.image.id)})


def _image(node: ServedNode, loaded: LoadedSite, facts: Facts) -> list[Problem]:
    if loaded.site.image is None:
        return []
    if node.image is None:
        seen, fix = "the receipt tells no image of it", "another one: --to RECEIPT"
        return [Problem(node.node, seen, "an image by its ID", fix)]
    if facts.commands[IMAGE].rc == 0:
        return []
    said = facts.commands[IMAGE].stderr.strip().splitlines()
    seen = (
        f"image {node.image.id[7:19]} is not there: {said[-1] if said else 'Docker said nothing'}"
    )
    pulled = node.image.digests[0] if node.image.digests else ""
    fix = f"docker pull {pulled}" if pulled else "tetraspark build makes another one of its source"
    return [Problem(node.node, seen, f"the image that ran as {node.image.tag}", fix)]


def _model(node: ServedNode, loaded: LoadedSite, facts: Facts) -> list[Problem]:
    now, was = read_model(model_folder(loaded, node.node), facts), node.model
    if _same(now, was):
        return []
    folder = was.folder if was else now.folder if now else "the model's folder"
    seen = f"another checkpoint: {_told(now)}"
    fix = "put that checkpoint back; tetraspark weights status tells what is there"
    return [Problem(f"{node.node}:{folder}", seen, f"as in the receipt: {_told(was)}", fix)]


def _same(now: KeptModel | None, was: KeptModel | None) -> bool:
    return (now.sha256 if now else None) == (was.sha256 if was else None)


def _told(model: KeptModel | None) -> str:
    if model is None:
        return "nothing"
    return f"{model.files} files, {model.bytes} bytes, {model.sha256[:12]}"


def keep_it(receipt: ServeReceipt, loaded: LoadedSite) -> list[str]:
    """Return what makes it permanent: the site file, its tag on each node, a left out transport.

    `loaded` is the recorded site.
    """
    show = f"tetraspark receipts show {receipt.id} --line {receipt.line} --site-text"
    commands = [f"{show} > {shlex.quote(receipt.site)}"]
    if loaded.site.image is not None:
        tag = loaded.site.image.tag
        commands += [f"on {one.node}: docker tag {one.image} {tag}" for one in tags(receipt)]
    if left_out(receipt):
        commands.append(f'[collectives] transport = "{OFF}" in {receipt.site}')
    return commands
