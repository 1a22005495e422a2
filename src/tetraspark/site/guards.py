"""Section of a site file about limits on one request, and which engine reads which of its keys."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from tetraspark.site.engines import BRANCH, RELEASE, engine_of
from tetraspark.site.finding import Finding
from tetraspark.site.keypath import KeyPath
from tetraspark.site.lookup import Document, table_at
from tetraspark.site.section import Section

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "ultra", "max", "number"]

MOST_NGRAM = 1024
MOST_COVER = 16_384
"""What the plugin's detector keeps for (`engine.guard_env`), in tokens."""


class Guards(Section):
    """Limits on one request, applied inside the engine (docs/guards.md)."""

    max_new_tokens: int | None = Field(
        default=None, ge=1, le=1_048_576, description="filled in where absent, and the upper limit"
    )
    default_new_tokens: int | None = Field(
        default=None, ge=1, le=1_048_576, description="filled in instead, where absent"
    )
    max_sequences: int | None = Field(
        default=None, ge=1, le=4096, description="prompts times answers (`n`) of one request"
    )
    loop_abort: bool | None = Field(default=None, description="end a generation that repeats")
    loop_ngram: int | None = Field(
        default=None, ge=1, le=65_536, description="tokens of the shortest repeated piece"
    )
    loop_repeats: int | None = Field(
        default=None, ge=2, le=65_536, description="copies of it that count as a loop"
    )
    loop_same_token: int | None = Field(
        default=None, ge=8, le=4096, description="one token, so often in a row, is a loop"
    )
    loop_line_repeats: int | None = Field(
        default=None, ge=2, le=65_536, description="identical lines that count as a loop"
    )
    reasoning_efforts: tuple[Effort, ...] | None = Field(
        default=None, min_length=1, description="tiers that clients may ask for"
    )
    prefill_empty_cache_tokens: int | None = Field(
        default=None,
        ge=0,
        le=1_048_576,
        description="length from which blocks go back; 0 off",
    )


OF_BRANCH = ("prefill_empty_cache_tokens",)
OF_RELEASE = ("default_new_tokens", "max_sequences", "loop_same_token", "reasoning_efforts")


def guard_findings(document: Document) -> Iterator[Finding]:
    """Find keys that the site's engine does not read, and limits that contradict each other."""
    engine, guards = engine_of(document), table_at(document, "guards")
    unread = {BRANCH: OF_RELEASE, RELEASE: OF_BRANCH}.get(engine or "", ())
    for key in unread:
        if key in guards:
            names = f"sglang {engine}" if engine == RELEASE else f"the {engine} branch"
            wanted = f"keys that {names} reads (docs/guards.md)"
            seen = f"`{key}` is set, and {names} does not read it"
            yield Finding(("guards", key), seen, wanted, "remove it", (("image", "recipe"),))
    if engine == RELEASE:
        yield from _tokens(guards)
        yield from _cover(guards)


def _tokens(guards: Document) -> Iterator[Finding]:
    default, most = guards.get("default_new_tokens"), guards.get("max_new_tokens", 32_768)
    if isinstance(default, int) and isinstance(most, int) and default > most:
        path: KeyPath = ("guards", "default_new_tokens")
        seen = f"default_new_tokens = {default} with max_new_tokens = {most}"
        related: KeyPath = ("guards", "max_new_tokens")
        yield Finding(
            path, seen, "at most max_new_tokens", "lower one or raise the other", (related,)
        )


def _cover(guards: Document) -> Iterator[Finding]:
    ngram, repeats = guards.get("loop_ngram", 32), guards.get("loop_repeats", 4)
    if not isinstance(ngram, int) or not isinstance(repeats, int):
        return
    path: KeyPath = ("guards", "loop_ngram" if "loop_ngram" in guards else "loop_repeats")
    if not 2 <= ngram <= MOST_NGRAM:
        wanted = f"2 to {MOST_NGRAM} tokens: the detector's window holds no longer piece"
        yield Finding(path, f"loop_ngram = {ngram}", wanted, "loop_ngram = 32")
    elif ngram * repeats > MOST_COVER:
        seen = f"loop_ngram = {ngram} times loop_repeats = {repeats}"
        wanted = f"at most {MOST_COVER} tokens in all: a loop should end sooner"
        yield Finding(path, seen, wanted, "lower one of them")
