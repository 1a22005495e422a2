"""The build on one node: reach it, copy the context, prove the copy, build, describe."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO, Any

from tetraspark.errors import Problem, RunError
from tetraspark.fleet.command import NodeCommand, NodeRunner, OnLine, Result
from tetraspark.fleet.docker_failure import docker_problem
from tetraspark.fleet.login import Login
from tetraspark.fleet.plain import plain
from tetraspark.fleet.staging import stage
from tetraspark.images.build_log import BuildLog, Step
from tetraspark.images.build_plan import CONTENTS_SCRIPT, TREE_SCRIPT, BuildPlan
from tetraspark.images.build_step import Phase
from tetraspark.images.built import BuiltImage, Described, parse_contents, parse_inspect

ASK_SECONDS = 120.0
HASH_SECONDS = 1800.0
PULL_SECONDS = 4 * 3600.0
BUILD_SECONDS = 4 * 3600.0


@dataclass(frozen=True)
class Progress:
    """Where a node is: the phase, the step of the Dockerfile in `build`, the latest words."""

    node: str
    phase: Phase
    step: Step | None = None
    text: str = ""


Observe = Callable[[Progress], None]


class NodeBuild:
    """Builds on one node. `log` gets each phase, and all that ssh, rsync and docker say of it."""

    def __init__(
        self, plan: BuildPlan, login: Login, runner: NodeRunner, observe: Observe, log: IO[str]
    ) -> None:
        self.plan = plan
        self.login = login
        self.phase: Phase = "wait"
        self.reader = BuildLog()
        self._runner = runner
        self._observe = observe
        self._log = log

    def run(self) -> BuiltImage:
        """Build the context, which is written. Raises RunError naming the phase and what failed."""
        try:
            return self._phases()
        except RunError as error:
            for text in (*getattr(error, "__notes__", ()), *map(str, error.problems)):
                self._keep(text)
            raise

    def _phases(self) -> BuiltImage:
        self._enter("reach", self.plan.look)
        platform = plain(self._docker(self.plan.look).stdout).strip()
        self._check_platform(platform, "Docker of the node")
        self._enter("copy", ("rsync", f"{self.plan.files} files"))
        staging = stage(self._runner, self.login.node, self.plan.context, self.plan.line)
        self._enter("verify", self.plan.hash_copy)
        self._verify(staging)
        base = self._base()
        self._enter("build", self.plan.build)
        self._build()
        self._enter("inspect", self.plan.describe)
        image = self._described(self._docker(self.plan.describe))
        return BuiltImage(image, base, *self._contents())

    def _enter(self, phase: Phase, words: tuple[str, ...]) -> None:
        self.phase = phase
        self._keep(f"== {phase}: {' '.join(words)}")
        self._tell(None, " ".join(words))

    def _tell(self, step: Step | None, text: str) -> None:
        self._observe(Progress(self.login.node, self.phase, step, text))

    def _run(
        self, argv: tuple[str, ...], timeout: float = ASK_SECONDS, on_line: OnLine | None = None
    ) -> Result:
        return self._runner.run(self.login.node, NodeCommand(argv, timeout=timeout), on_line)

    def _docker(self, argv: tuple[str, ...]) -> Result:
        result = self._run(argv)
        self._keep(result.stderr)
        if result.rc:
            raise self._failed(result)
        return result

    def _failed(self, result: Result) -> RunError:
        """Say what went wrong, from the last lines of the step or from all that was said."""
        text = "\n".join(self.reader.last_lines) if self.phase == "build" else ""
        text = text or (result.stderr if result.stderr.strip() else result.stdout)
        return RunError(docker_problem(self.login, self.phase, text, self.plan.base))

    def _check_platform(self, platform: str, what: str) -> None:
        if platform != self.plan.platform:
            where = f"{self.login.node} docker"
            seen = f"{what} is of {platform}"
            wanted = f"{self.plan.platform}, the platform of {self.plan.base}"
            fix = f"docker manifest inspect {self.plan.base.split('@')[0]}; then set image.base"
            raise RunError(Problem(where, seen, wanted, fix))

    def _verify(self, staging: str) -> None:
        """Hash the copy on the node, with the file that hashes here."""
        command = NodeCommand(self.plan.hash_copy, TREE_SCRIPT, HASH_SECONDS)
        result = self._runner.run(self.login.node, command)
        self._keep(result.stderr)
        seen = plain(result.stdout).strip() if result.rc == 0 else result.stderr.strip()[-200:]
        if seen != self.plan.tree_sha256:
            raise RunError(
                Problem(
                    f"{self.login.node}:{staging}",
                    f"tree hash {seen}",
                    f"{self.plan.tree_sha256}, as on this machine",
                    "does something write there? if not, check the disk; then build again",
                )
            )

    def _base(self) -> Described:
        """Return the base as the node has it; pulled by digest where it is not there."""
        self._enter("base", self.plan.find_base)
        found = self._run(self.plan.find_base)
        if found.rc:
            self._tell(None, " ".join(self.plan.pull_base))
            pulled = self._run(self.plan.pull_base, PULL_SECONDS, self._pull_line)
            if pulled.rc:
                raise self._failed(pulled)
            found = self._docker(self.plan.find_base)
        base = self._described(found)
        self._check_platform(base.platform, "the base image")
        return base

    def _pull_line(self, line: str) -> None:
        self._keep(line)
        self._tell(None, line.strip())

    def _build(self) -> None:
        result = self._run(self.plan.build, BUILD_SECONDS, self._build_line)
        if result.rc:
            raise self._failed(result)

    def _build_line(self, line: str) -> None:
        self._keep(line)
        step = self.reader.feed(line)
        self._tell(step or self.reader.step, "" if step else line.strip())

    def _keep(self, text: str) -> None:
        """Keep what was said in the log, at once."""
        if text:
            self._log.write(text.removesuffix("\n") + "\n")
            self._log.flush()

    def _described(self, found: Result) -> Described:
        try:
            return parse_inspect(found.stdout)
        except ValueError as error:
            raise self._unreadable(str(error), "what docker image inspect prints") from error

    def _contents(self) -> tuple[Mapping[str, Any], Mapping[str, str]] | tuple[None, None]:
        """Return receipt and contents; a user's own Dockerfile has neither."""
        if not self.plan.trees:
            return None, None
        self._tell(None, " ".join(self.plan.read))
        command = NodeCommand(self.plan.read, CONTENTS_SCRIPT, HASH_SECONDS)
        result = self._runner.run(self.login.node, command)
        self._keep(result.stderr)
        if result.rc:
            raise self._failed(result)
        try:
            return parse_contents(result.stdout)
        except ValueError as error:
            raise self._unreadable(str(error), "the receipt of a recipe") from error

    def _unreadable(self, seen: str, wanted: str) -> RunError:
        fix = f"tetraspark build --node {self.login.node} --no-cache"
        return RunError(Problem(f"{self.login.node} {self.plan.tag}", seen, wanted, fix))
