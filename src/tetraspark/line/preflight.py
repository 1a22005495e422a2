"""What is looked at before anything is started."""

import errno
from dataclasses import replace
from pathlib import Path

from tetraspark.errors import Problem, RunError, UsageError
from tetraspark.fleet.command import NodeRunner
from tetraspark.fleet.docker_failure import classify, docker_problem
from tetraspark.fleet.facts import Wanted
from tetraspark.fleet.login import Login, logins
from tetraspark.fleet.port import bind_error, owner_of
from tetraspark.fleet.probe import probe_all
from tetraspark.line.plan import Plan
from tetraspark.site.load import LoadedSite

IMAGE = "image"


def fleet_preflight(loaded: LoadedSite, runner: NodeRunner) -> None:
    """Check that the Docker of every node answers and has the image.

    Raises RunError with every problem found. Nothing has been stopped or started by then.
    """
    assert loaded.site.image is not None, "a fleet has one"
    tag = loaded.site.image.tag
    wanted = Wanted(commands={IMAGE: ("docker", "image", "inspect", "--format={{.Id}}", tag)})
    found = probe_all(runner, {node.name: wanted for node in loaded.site.nodes})
    problems = []
    for login in logins(loaded, offline=True):
        facts = found[login.node]
        if isinstance(facts, RunError):
            problems += [in_phase("preflight", one) for one in facts.problems]
        elif facts.commands[IMAGE].rc:
            problems.append(_no_image(loaded, login, tag, facts.commands[IMAGE].stderr))
    if problems:
        raise RunError(*problems)


def in_phase(phase: str, problem: Problem) -> Problem:
    """Return a problem that says in which phase of a start it came up."""
    return replace(problem, seen=f"{phase}: {problem.seen}")


def _no_image(loaded: LoadedSite, login: Login, tag: str, text: str) -> Problem:
    problem = docker_problem(login, "preflight", text, tag)
    if classify(text).name == "no such image":
        fix = f"tetraspark build --site {loaded.path} --node {login.node}"
        return replace(problem, wanted=f"the image {tag} on every node", fix=fix)
    return problem


def preflight(plan: Plan) -> None:
    """Check the model's folder and the ports. Raises UsageError with every problem found."""
    problems = [*_model_problems(Path(plan.model), plan.site), *_port_problems(plan)]
    if problems:
        raise UsageError(*problems)


def _model_problems(folder: Path, site: str) -> list[Problem]:
    wanted = {
        "config.json": "the model's configuration",
        "tokenizer.json": "the model's tokenizer",
    }
    if not folder.is_dir():
        seen = "not a folder" if folder.exists() else "no such folder"
        fix = f"correct model.path in {site}; the bundled one is models/tiny"
        return [Problem(str(folder), seen, "the folder of a checkpoint", fix)]
    problems = [
        Problem(str(folder / name), "missing", what, f"complete {folder}")
        for name, what in wanted.items()
        if not (folder / name).is_file()
    ]
    if not any(folder.glob("*.safetensors")):
        problems.append(Problem(str(folder), "no *.safetensors", "weights", f"complete {folder}"))
    if not _has_chat_template(folder):
        problems.append(
            Problem(
                str(folder),
                "no chat template: neither chat_template.jinja nor one in tokenizer_config.json",
                "a template, or chat requests fail",
                f"put chat_template.jinja into {folder}",
            )
        )
    return problems


def _has_chat_template(folder: Path) -> bool:
    config = folder / "tokenizer_config.json"
    if (folder / "chat_template.jinja").is_file():
        return True
    return config.is_file() and b'"chat_template"' in config.read_bytes()


def _port_problems(plan: Plan) -> list[Problem]:
    error = bind_error(plan.port, plan.host)
    where = f"{plan.host}:{plan.port}"
    if error is None:
        return []
    if error.errno == errno.EADDRINUSE:
        fix = f"stop that process, or set api.port (0 chooses a free one) in {plan.site}"
        seen = f"port taken by {owner_of(plan.port)}"
        return [Problem(where, seen, "a free port for the API", fix)]
    fix = f"set api.host and api.port in {plan.site}; `ip -4 addr` shows this machine's addresses"
    return [Problem(where, f"cannot listen: {error.strerror}", "an address of this machine", fix)]
