"""What must hold in [image], and which of its recipes other sections are for."""

import re
from collections.abc import Iterator

from tetraspark.site.engines import BRANCH, RELEASE, engine_of
from tetraspark.site.finding import Finding
from tetraspark.site.keypath import KeyPath
from tetraspark.site.lookup import Document, table_at
from tetraspark.site.machines import OWN_ARGUMENTS, secret_argument

BRANCH_SECTIONS = ("engram",)
"""Sections that only become variables of the adapters in the dsv4.1 branch's images."""

_RUST_MODE = "SGLANG_RUST_BUILD_MODE"
_RECIPE: KeyPath = ("image", "recipe")


def image_findings(document: Document) -> Iterator[Finding]:
    """Return every broken rule of the image."""
    yield from _rust(document)
    yield from _unread(document)
    for name in table_at(document, "image", "build_args"):
        finding = _argument(name)
        yield from (finding,) if finding else ()


def _rust(document: Document) -> Iterator[Finding]:
    recipe = table_at(document, "image").get("recipe")
    if engine_of(document) == BRANCH and table_at(document, "env").get(_RUST_MODE) != "never":
        seen = f'recipe "{recipe}" without {_RUST_MODE} = "never" in [env]'
        wanted = "it: that branch's engine looks for cargo at start-up, and the image has none"
        fix = f'add {_RUST_MODE} = "never" under [env]'
        yield Finding(_RECIPE, seen, wanted, fix, (("env", _RUST_MODE),))


def _unread(document: Document) -> Iterator[Finding]:
    if document.get("kind") != "fleet" or engine_of(document) != RELEASE:
        return
    for name in BRANCH_SECTIONS:
        if name in document:
            seen = f'[{name}] with recipe "release": sglang {RELEASE} does not read its variables'
            wanted = "an image of the dsv4.1 branch, whose adapters alone read them"
            fix = f'remove [{name}], or set recipe = "canary-roce", "canary" or "base"'
            yield Finding((name,), seen, wanted, fix, (_RECIPE,))


def _argument(name: str) -> Finding | None:
    path: KeyPath = ("image", "build_args", name)
    if secret_argument(name):
        seen = f"build argument `{name}` holds a secret"
        wanted = "no secret: build arguments stay in the image's history"
        return Finding(path, seen, wanted, "remove it")
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        wanted = "letters, digits and `_`, not a digit first"
        return Finding(path, f"build argument {name!r}", wanted, "correct the name")
    if name in OWN_ARGUMENTS:
        key = OWN_ARGUMENTS[name]
        return Finding(path, f"build argument `{name}`", f"that in `{key}`", f"set `{key}` instead")
    return None
