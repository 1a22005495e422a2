"""The program that a node's python3 gets on stdin: the modules of `inside`, and the request."""

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

PACKAGE = "tetraspark.engram.inside"
# Each module after those that it imports.
MODULES = ("refusal", "events", "files", "source", "record", "pipeline", "plan", "part", "pack",
           "verify", "main")  # fmt: skip
BEGIN = """
import sys, types
for name, text in {modules!r}:
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(text, name, "exec"), module.__dict__)
sys.exit(sys.modules[{main!r}].main({request!r}))
"""


def script(request: Mapping[str, Any]) -> bytes:
    """Return the program that does what the request says."""
    folder = files(PACKAGE)
    modules = [
        (f"{PACKAGE}.{name}", folder.joinpath(f"{name}.py").read_text(encoding="utf-8"))
        for name in MODULES
    ]
    text = BEGIN.format(modules=modules, main=f"{PACKAGE}.main", request=json.dumps(request))
    return text.encode()
