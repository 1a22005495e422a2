"""Which engine a site runs: it decides what variables and kernels there are."""

from collections.abc import Mapping

from tetraspark.site.lookup import Document, table_at

RELEASE = "0.5.23"
"""SGLang from the package index, unmodified."""

BRANCH = "dsv4.1"
"""SGLang's pinned `dsv4.1` branch, which the bash launchers' images hold."""

ENGINES: Mapping[str, str] = {
    "base": BRANCH,
    "canary": BRANCH,
    "canary-roce": BRANCH,
    "release": RELEASE,
}
"""Image recipe -> engine."""


def engine_of(document: Document) -> str | None:
    """Return the engine of a document as parsed; None where it does not tell."""
    if document.get("kind") == "local":
        return RELEASE
    recipe = table_at(document, "image").get("recipe")
    return ENGINES.get(recipe) if isinstance(recipe, str) else None
