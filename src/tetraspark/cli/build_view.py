"""How a build looks: live rows on a terminal, lines elsewhere; the plan, the report."""

from rich.table import Table
from rich.text import Text

from tetraspark.cli.live import LiveView
from tetraspark.cli.output import err, out, print_problems
from tetraspark.images.build import BuildReport
from tetraspark.images.build_plan import BuildPlan
from tetraspark.images.node_build import Progress


class BuildView(LiveView):
    """Shows where each node is. Called from the threads of all nodes."""

    def __init__(self, nodes: list[str]) -> None:
        super().__init__()
        self._latest = {node: Progress(node, "wait") for node in nodes}

    def observe(self, progress: Progress) -> None:
        """Take in where a node is; elsewhere than on a terminal only a new phase or step counts."""
        with self._lock:
            before = self._latest[progress.node]
            self._latest[progress.node] = progress
            moved = (before.phase, before.step) != (progress.phase, progress.step)
            if not err.is_terminal and moved:
                err.print(_line(progress), markup=False)

    def table(self) -> Table:
        """Return a row a node."""
        table = Table("node", "phase", "step", "", box=None, pad_edge=False)
        for node, one in self._latest.items():
            step = f"{one.step.number}/{one.step.total}" if one.step else ""
            words = one.text or (one.step.text if one.step else "")
            table.add_row(node, one.phase, step, Text(words, overflow="ellipsis", no_wrap=True))
        return table


def _line(progress: Progress) -> str:
    return f"{progress.node} {progress.phase}: {progress.step or progress.text}"


def print_build_plan(plan: BuildPlan) -> None:
    """Print what a build would do: each command in order, above it where and when it runs."""
    out.print(f"image {plan.tag}, recipe {plan.recipe}, on {plan.base}", markup=False)
    out.print(f"context {plan.tree_sha256}: {plan.files} files", markup=False)
    out.print(f"  written to {plan.context} of this machine while the build runs", markup=False)
    for login in plan.nodes:
        out.print(f"node {login.node}: ssh {login}", markup=False)
    for step in plan.steps:
        out.print(f"# {step.phase}, {step.words}", markup=False)
        out.print(str(step), markup=False)


def print_report(report: BuildReport) -> None:
    """Print what came of each node, then what is wrong."""
    table = Table("node", "result", "seconds", "image", "layers", box=None, pad_edge=False)
    for one in report.outcomes:
        if one.built is None:
            where = f"failed: {one.phase}" + (f", {one.step}" if one.step else "")
            table.add_row(one.node, Text(where, style="red"), f"{one.seconds:.1f}", "", "")
            continue
        image, base = one.built.image, one.built.base
        layers = f"{len(base.layers)} of the base, {len(image.layers) - len(base.layers)} built"
        identity = Text(image.id[7:19])
        table.add_row(one.node, "built", f"{one.seconds:.1f}", identity, layers)
    out.print(table)
    for one in report.outcomes:
        if one.built is None:
            for line in one.last_lines:
                err.print(f"{one.node} | {line}", markup=False)
            err.print(f"{one.node} | all of it: {one.log}", markup=False)
    print_problems(report.problems)
    if report.ok:
        nodes = len(report.outcomes)
        same = "the same image on every node" if nodes > 1 else "one node, as planned"
        what = "base layers, labels, configuration"
        if report.plan.trees:
            what += ", receipt, contents"
        out.print(f"{report.plan.tag}: {same} ({what})", markup=False)
        if not report.plan.trees:
            out.print("your own Dockerfile: what its layers hold was not compared", markup=False)
