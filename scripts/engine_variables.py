"""Write the table of an engine's environment variables, from its files.

Usage: python scripts/engine_variables.py [--sglang WHEEL_OR_FOLDER] \
           > src/tetraspark/site/sglang-0.5.23.variables.txt

Names are taken from the text of every Python file: some are read by `os.environ` and declared
nowhere. A name that ends in `_` is the beginning of names that the engine puts together.
"""

import argparse
import ast
import hashlib
import re
import sys
from collections.abc import Iterator

from tetraspark.engine.pins import read_pins
from tetraspark.engine.tree import PACKAGE, Tree, TreeError, open_tree

NAME = re.compile(r"(?<![A-Z0-9_])SGLANG_[A-Z0-9_]+")
# An option or a variable in a note on what replaces a deprecated one.
REPLACEMENT = re.compile(r"(?<![A-Z0-9_])SGLANG_[A-Z0-9_]+|--[a-z][a-z0-9-]+")
ENVIRON = "srt/environ.py"
# Read by the engine's compiled gRPC and HTTP servers only.
NATIVE = ("SGLANG_TONIC_PAYLOAD",)


def table(tree: Tree) -> str:
    """Return the table of one engine, sorted, with the hash of where names are declared.

    Raises TreeError when the files cannot be read or hold no declarations.
    """
    version = next(pin.asked for pin in read_pins(tree.metadata()) if pin.package == PACKAGE)
    environ = tree.read(ENVIRON)
    if environ is None:
        raise TreeError(f"no {ENVIRON}", "an engine that declares its variables there")
    deprecated = dict(_deprecated(environ))
    names = {name for file in tree.files() for name in NAME.findall(tree.read(file) or "")}
    digest = hashlib.sha256(environ.encode()).hexdigest()
    lines = [_line(name, deprecated) for name in sorted(names | {*NATIVE, *deprecated})]
    head = (
        f"# SGLANG_ names in the files of {PACKAGE} {version}: scripts/engine_variables.py",
        f"# {ENVIRON}: sha256 {digest}",
    )
    return "\n".join((*head, *lines)) + "\n"


def _line(name: str, deprecated: dict[str, list[str]]) -> str:
    if name in deprecated:
        return " ".join((name, "deprecated", *deprecated[name]))
    return f"{name}*" if name.endswith("_") else name


def _deprecated(environ: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each deprecated name and its replacements: the registry's, then the aliases."""
    for node in ast.walk(_parsed(environ)):
        value = getattr(node, "value", None)
        if isinstance(node, ast.AnnAssign) and isinstance(value, ast.Dict):
            yield from _registry(node, value)
        elif isinstance(node, ast.Assign) and isinstance(value, ast.Call):
            old = [word.value for word in value.keywords if word.arg == "deprecated_name"]
            for one in old:
                if isinstance(one, ast.Constant) and isinstance(node.targets[0], ast.Name):
                    yield str(one.value), [node.targets[0].id]


def _parsed(environ: str) -> ast.Module:
    try:
        return ast.parse(environ)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        seen = f"{ENVIRON} is no Python: {error}"
        raise TreeError(seen, "an engine that declares its variables there") from error


def _registry(node: ast.AnnAssign, value: ast.Dict) -> Iterator[tuple[str, list[str]]]:
    if not isinstance(node.target, ast.Name) or node.target.id != "_DEPRECATED_ENVS":
        return
    for key, call in zip(value.keys, value.values, strict=True):
        if isinstance(key, ast.Constant):
            texts = [str(one.value) for one in ast.walk(call) if isinstance(one, ast.Constant)]
            found = [name for text in texts for name in REPLACEMENT.findall(text)]
            yield str(key.value), list(dict.fromkeys(found))


def main() -> int:
    """Print the table; return the process exit code, 2 when there is no engine to read."""
    parser = argparse.ArgumentParser(description="Write the table of an engine's variables.")
    parser.add_argument("--sglang", metavar="PATH", help="wheel or folder; else the installed one")
    path = parser.parse_args().sglang
    try:
        text = table(open_tree(path))
    except TreeError as error:
        where = PACKAGE if path is None else path or "--sglang"
        print(f"error: {where}: {error}; fix: {error.fix}", file=sys.stderr)
        return 2
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
