"""The node program: the modules of `ring.inside` as one text, sent over ssh, run as root."""

import json
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.resources import files
from typing import Any

from tetraspark.errors import Problem, RunError
from tetraspark.fleet.command import NodeCommand, NodeRunner

PACKAGE = "tetraspark.ring.inside"
MODULES = (
    *("say", "devlink", "seen", "kind", "store", "files", "marker", "network", "steering"),
    *("rule_text", "rule", "journal", "judge", "guards", "snapshot", "undo", "timer", "commit"),
    *("hairpin", "account", "confirm", "main"),
)
"""Each after those that it imports."""

LOADER = """
import sys, types
for name in ("tetraspark", "tetraspark.ring", PACKAGE):
    sys.modules[name] = types.ModuleType(name)
for name, text in MODULES:
    full = PACKAGE + "." + name
    module = sys.modules[full] = types.ModuleType(full)
    setattr(sys.modules[PACKAGE], name, module)
    exec(compile(text, "ring/inside/" + name + ".py", "exec"), module.__dict__)
sys.modules[PACKAGE + ".main"].main(REQUEST)
"""
# sudo takes most of the environment away, and the way back to the operator with it.
AS_ROOT = """
if [ "$(id -u)" = 0 ]; then exec python3 -I -; fi
exec sudo -n env "SSH_CONNECTION=$SSH_CONNECTION" python3 -I -
"""


@cache
def _modules() -> str:
    texts = [(name, files(PACKAGE).joinpath(f"{name}.py").read_text("utf-8")) for name in MODULES]
    return f"PACKAGE = {PACKAGE!r}\nMODULES = {texts!r}\n"


def script(request: Mapping[str, Any]) -> bytes:
    """Return the program that answers a request; it needs python3 (3.9 or later) and no package."""
    return f"{_modules()}REQUEST = {json.dumps(request)!r}\n{LOADER}".encode()


def ask(
    runner: NodeRunner, node: str, request: Mapping[str, Any], seconds: float = 60.0
) -> dict[str, Any]:
    """Return a node's answer. Raises RunError with its refusal, or when it cannot be asked."""
    command = NodeCommand(("sh", "-c", AS_ROOT), stdin=script(request), timeout=seconds)
    result = runner.run(node, command)
    try:
        answer: dict[str, Any] = json.loads(result.stdout)
        problems = [
            Problem(f"{node} {one['where']}", one["seen"], one["wanted"], one["fix"])
            for one in answer["problems"]
        ]
    except (ValueError, KeyError, TypeError) as error:
        last = (result.stderr.strip().splitlines() or [str(error)])[-1][:300]
        seen = f"the node program ended with {result.rc}: {last}"
        fix = f"on {node}: python3 --version; sudo -n true"
        wanted = "python3 (3.9 or later), and root or sudo without a password"
        raise RunError(Problem(node, seen, wanted, fix)) from error
    if problems:
        raise RunError(*problems)
    return answer


def ask_all(
    runner: NodeRunner, requests: Iterable[tuple[str, Mapping[str, Any]]], seconds: float = 60.0
) -> dict[str, dict[str, Any] | RunError]:
    """Ask nodes in parallel; a node that refuses or cannot be asked gives its error."""
    asked = dict(requests)

    def one(node: str) -> dict[str, Any] | RunError:
        try:
            return ask(runner, node, asked[node], seconds)
        except RunError as error:
            return error

    with ThreadPoolExecutor(max(len(asked), 1)) as pool:
        return dict(zip(asked, pool.map(one, asked), strict=True))


def problems_of(answers: Mapping[str, dict[str, Any] | RunError]) -> list[Problem]:
    """Return the problems of all nodes that gave an error."""
    errors = (one for one in answers.values() if isinstance(one, RunError))
    return [problem for error in errors for problem in error.problems]
