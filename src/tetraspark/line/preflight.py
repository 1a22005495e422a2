"""What is looked at before a line of this machine is started."""

import errno
from dataclasses import replace
from pathlib import Path

from tetraspark.errors import Problem, UsageError
from tetraspark.fleet.port import bind_error, owner_of
from tetraspark.line.plan import Plan
from tetraspark.site.source import LARGEST_DATA, read_bytes


def in_phase(phase: str, problem: Problem) -> Problem:
    """Return a problem that says in which phase of a start it came up."""
    return replace(problem, seen=f"{phase}: {problem.seen}")


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
    return config.is_file() and b'"chat_template"' in read_bytes(config, largest=LARGEST_DATA)


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
