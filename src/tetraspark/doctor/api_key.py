"""The API key's file, which is on this machine and not on a node: `serve` hands the key on."""

from collections.abc import Iterator, Mapping

from tetraspark.doctor.finding import Finding
from tetraspark.doctor.node_view import NodeView
from tetraspark.errors import Problem, UsageError
from tetraspark.site.key_file import key_file_of, read_key
from tetraspark.site.load import LoadedSite


def key_problem(loaded: LoadedSite) -> Problem | None:
    """Return why a start would refuse the line's key file; None for a good one, or without one."""
    try:
        file = key_file_of(loaded)
        if file is not None:
            read_key(file)
    except UsageError as error:
        return error.problems[0]
    return None


def usable(views: Mapping[str, NodeView]) -> Iterator[Finding]:
    """Judge the file by what a start says of it."""
    view = next(iter(views.values()))
    problem, file = view.key, view.loaded.site.api.key_file
    wanted = "a key that its owner alone can read, or no api.key_file"
    if problem is None:
        yield Finding("ok", file or "no api.key_file: the API is open", wanted)
        return
    where = view.loaded.origin("api.key_file").where
    seen, fix = f"{problem.where}: {problem.seen}", problem.fix or f"correct it ({where})"
    yield Finding("failed", seen, problem.wanted, fix)
