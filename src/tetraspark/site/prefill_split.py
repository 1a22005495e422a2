"""Section of a site file about the prefill split of the engine plugin, and its rules."""

from collections.abc import Iterator

from pydantic import Field

from tetraspark.site.finding import Finding
from tetraspark.site.flags import meant
from tetraspark.site.keypath import KeyPath
from tetraspark.site.lookup import Document, is_list, table_at
from tetraspark.site.section import Section

SWITCHES = ("--enable-dp-attention", "--enable-prefill-cp")
SIZES = (
    "--dp-size", "--data-parallel-size", "--attn-dp-size", "--attention-data-parallel-size",
    "--attn-cp-size", "--attention-context-parallel-size",
)  # fmt: skip
"""Flags of sglang 0.5.23 that divide attention itself, where they are not 1."""


class PrefillSplit(Section):
    """From where on the ranks share the index scores of a prefill step.

    The floors are the engine plugin's own (`engine.split_env`); it refuses to boot below them.
    """

    min_context: int = Field(
        default=32_768, ge=32_768, le=1_048_576, description="tokens of the longest request"
    )
    min_rows: int = Field(
        default=1024, ge=1024, le=131_072, description="tokens of the prefill step"
    )


def split_findings(document: Document) -> Iterator[Finding]:
    """The split needs the engine that the plugin hooks, ranks to share rows, and room for both."""
    if "prefill_split" not in document or document.get("kind") == "local":
        return
    path: KeyPath = ("prefill_split",)
    recipe = table_at(document, "image").get("recipe")
    if recipe is not None and recipe != "release":
        seen, wanted = f'[prefill_split] with recipe "{recipe}"', "the engine its plugin hooks"
        fix = 'set recipe = "release", or remove the section'
        yield Finding(path, seen, wanted, fix, (("image", "recipe"),))
    if table_at(document, "engine").get("tp") == 1:
        fix = "remove the section"
        yield Finding(
            path, "[prefill_split] with tp = 1", "ranks to share rows", fix, (("engine", "tp"),)
        )
    yield from _unreached(document)
    yield from _unsplit(document)


def _unreached(document: Document) -> Iterator[Finding]:
    """A threshold above what the engine ever sees would never split anything."""
    split, engine = table_at(document, "prefill_split"), table_at(document, "engine")
    for key, limit, default in (
        ("min_context", "context_length", 32_768),
        ("min_rows", "chunked_prefill_size", 1024),
    ):
        least, most = split.get(key, default), engine.get(limit)
        if isinstance(least, int) and isinstance(most, int) and least > most:
            path: KeyPath = ("prefill_split", key)
            seen = f"{key} = {least} with {limit} = {most}: no step is ever split"
            fix = f"lower {key}, raise engine.{limit}, or remove the section"
            yield Finding(path, seen, f"{key} at most {limit}", fix, (("engine", limit),))


def _unsplit(document: Document) -> Iterator[Finding]:
    """With the engine's own ways to divide attention, a rank does not hold every row."""
    words = table_at(document, "engine").get("extra_args", ())
    words = words if is_list(words) else ()
    for index, word in enumerate(words):
        following = words[index + 1] if index + 1 < len(words) else None
        if isinstance(word, str) and _divides(word, following):
            path: KeyPath = ("engine", "extra_args", index)
            seen = f"`{word.partition('=')[0]}` beside [prefill_split]"
            wanted = "one way to divide a prefill: the plugin's needs every rank to hold all rows"
            yield Finding(path, seen, wanted, "remove one of them", (("prefill_split",),))


def _divides(word: str, following: object) -> bool:
    """Tell whether a flag, or the beginning of one as argparse takes it, divides attention."""
    flag, equals, value = word.partition("=")
    if meant(flag, SIZES):
        return (value if equals else following) != "1"
    return bool(meant(flag, SWITCHES))
