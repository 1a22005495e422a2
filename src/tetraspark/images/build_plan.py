"""The plan of a build: what will be done on every node, as a pure value."""

from dataclasses import asdict, dataclass
from pathlib import Path

from tetraspark.fleet.login import Login
from tetraspark.fleet.ssh import TRANSFER_SECONDS
from tetraspark.fleet.ssh_words import rsync_words
from tetraspark.fleet.staging import context_path, prepare
from tetraspark.images import contents, tree
from tetraspark.images.build_step import BuildStep
from tetraspark.images.context import BuildContext
from tetraspark.images.dockerfile import ENGINE_TREE, HOME
from tetraspark.images.manifest import Recipe
from tetraspark.images.recipe import RECIPES
from tetraspark.site.machines import Image

TREE_SCRIPT = Path(tree.__file__)
CONTENTS_SCRIPT = Path(contents.__file__)


@dataclass(frozen=True)
class BuildPlan:
    """What a build does on each node, the head first; a plan holds no secrets.

    `context` is the folder that is written on this machine, and copied, while the build runs;
    `staging` is relative to the home folder of the login on each node; `labels` are what the
    image must carry; `trees` are the folders in the image that the recipe filled, the one with
    its receipt first, and empty for a user's own Dockerfile.
    """

    line: str
    recipe: str
    tag: str
    base: str
    platform: str
    context: Path
    tree_sha256: str
    files: int
    labels: tuple[tuple[str, str], ...]
    trees: tuple[str, ...]
    nodes: tuple[Login, ...]
    build: tuple[str, ...]

    @property
    def staging(self) -> str:
        """The folder of the context on a node."""
        return context_path(self.line)

    @property
    def steps(self) -> tuple[BuildStep, ...]:
        """Every command of the build, in order."""
        found = (
            BuildStep("reach", self.look, note=f"must print {self.platform}"),
            BuildStep("copy", prepare(self.line)),
            *(BuildStep("copy", self.copy(login), node=login.node) for login in self.nodes),
            BuildStep(
                "verify", self.hash_copy, stdin=TREE_SCRIPT, note=f"must print {self.tree_sha256}"
            ),
            BuildStep("base", self.find_base),
            BuildStep("base", self.pull_base, note="only where the base was not found"),
            BuildStep("base", self.find_base, note="only after a pull"),
            BuildStep("build", self.build),
            BuildStep("inspect", self.describe),
        )
        if not self.trees:
            return found
        return (*found, BuildStep("inspect", self.read, stdin=CONTENTS_SCRIPT))

    def copy(self, login: Login) -> tuple[str, ...]:
        """Copy the context; here without what only keeps the session to the node open."""
        ssh = ("ssh", "-T", *login.options)
        return tuple(rsync_words(login, self.context, self.staging, ssh, TRANSFER_SECONDS))

    @property
    def hash_copy(self) -> tuple[str, ...]:
        """Hash the copy on the node; the script (images/tree.py) comes in stdin."""
        return ("python3", "-", self.staging)

    @property
    def look(self) -> tuple[str, ...]:
        """Ask the daemon what it is."""
        return ("docker", "version", "--format", "{{.Server.Os}}/{{.Server.Arch}}")

    @property
    def find_base(self) -> tuple[str, ...]:
        """Look for the base, by digest."""
        return ("docker", "image", "inspect", self.base)

    @property
    def pull_base(self) -> tuple[str, ...]:
        """Fetch the base; only where it is not there yet."""
        return ("docker", "pull", self.base)

    @property
    def describe(self) -> tuple[str, ...]:
        """Describe what was built."""
        return ("docker", "image", "inspect", self.tag)

    @property
    def read(self) -> tuple[str, ...]:
        """Hash what the recipe put in; the script (images/contents.py) comes in stdin."""
        program = ("--entrypoint", "python3", self.tag, "-", *self.trees)
        return ("docker", "run", "--rm", "--interactive", "--network", "none", *program)

    def as_dict(self) -> dict[str, object]:
        """Return JSON-able values."""
        return {
            **asdict(self),
            "nodes": [{"node": login.node, "ssh": str(login)} for login in self.nodes],
            "context": str(self.context),
            "labels": dict(self.labels),
            "staging": self.staging,
            "steps": [step.as_dict() for step in self.steps],
        }


def build_plan(
    line: str,
    context: BuildContext,
    nodes: tuple[Login, ...],
    image: Image,
    folder: Path,
    use_cache: bool = True,
) -> BuildPlan:
    """Plan the build of an image's context on some nodes; `folder` is where it is written here."""
    staging = context_path(line)
    command = (
        # A step that fails must not leave its container either.
        *("docker", "build", "--force-rm", f"--network={context.network}"),
        *(() if use_cache else ("--no-cache",)),
        *("--file", f"{staging}/{context.dockerfile}"),
        *(word for pair in context.build_args for word in ("--build-arg", "=".join(pair))),
        *(word for pair in context.labels for word in ("--label", "=".join(pair))),
        *("--tag", context.tag, staging),
    )
    return BuildPlan(
        line=line,
        recipe=context.recipe,
        tag=context.tag,
        base=context.base,
        platform=context.platform,
        context=folder,
        tree_sha256=context.tree_sha256,
        files=len(context.files),
        labels=context.labels,
        trees=() if image.dockerfile is not None else _trees(image.recipe),
        nodes=nodes,
        build=command,
    )


def _trees(recipe: Recipe) -> tuple[str, ...]:
    return (HOME, *((ENGINE_TREE,) if RECIPES[recipe].branch else ()))
