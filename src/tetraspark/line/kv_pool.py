"""The KV pool that a rank's engine made, from its log, and how full it is. Pure.

Texts of SGLang 0.5.23. Only rank 0 prints `max_total_num_tokens`; every rank prints the size of
the pool it allocates. A pin that does not fit is cut down there, without an error.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from tetraspark.errors import Problem

LARGEST_PAGE = 256
"""Tokens of V4.1's page, the largest of any pool here: a pool is a whole number of pages."""

# Estimates of a pool, which the last one before the allocation decides.
_SIZED = re.compile(
    r"DSV4 pool sizes: full=(?P<full>\d{1,18}\b), swa=(?P<swa>\d{1,18}\b)"
    r"|full_layer_tokens=(?P<full2>\d{1,18}\b), swa_layer_tokens=(?P<swa2>\d{1,18}\b)"
    r"|\bfull_token=(?P<full3>\d{1,18}\b)"
)
_ALLOCATED = re.compile(r"(?:\] |^)(?:Full )?KV Cache is allocated\..*#tokens: (\d{1,18}\b)")
_TARGET = re.compile(r"DSV4 SWA storage: worker=target")
_RESIZED = re.compile(
    r"Post-capture KV sizing: full_layer_tokens=(?P<full>\d{1,18}\b), "
    r"swa_layer_tokens=(?P<swa>\d{1,18}\b)"
)
_TOTAL = re.compile(r"\bmax_total_num_tokens=(\d{1,18}\b)")
_USAGE = re.compile(
    r"full token usage: (?P<full>\d{1,9}(?:\.\d+)?).*?swa token usage: (?P<swa>\d{1,9}(?:\.\d+)?)"
    r".*?#running-req: (?P<running>\d{1,18}\b).*?#queue-req: (?P<waiting>\d{1,18}\b)"
    r"|#running-req: (?P<running2>\d{1,18}\b).*?full token usage: (?P<full2>\d{1,9}(?:\.\d+)?)"
    r".*?swa token usage: (?P<swa2>\d{1,9}(?:\.\d+)?).*?#queue-req: (?P<waiting2>\d{1,18}\b)"
)


@dataclass(frozen=True)
class KvPool:
    """Tokens of a rank's pool, and of its sliding-window part where it has one.

    `final` is set once the pool is there: later lines are of the draft model's.
    """

    tokens: int | None = None
    swa_tokens: int | None = None
    final: bool = False

    def read(self, text: str) -> Self:
        """Return what is known after one more line."""
        if total := _TOTAL.search(text):
            return replace(self, tokens=int(total[1]), final=True)
        if resized := _RESIZED.search(text):
            swa = int(resized["swa"]) or None
            return replace(self, tokens=int(resized["full"]), swa_tokens=swa, final=True)
        if self.final:
            return self
        if sized := _SIZED.search(text):
            full = sized["full"] or sized["full2"] or sized["full3"]
            swa_text = sized["swa"] or sized["swa2"]
            return replace(self, tokens=int(full), swa_tokens=int(swa_text) if swa_text else None)
        if allocated := _ALLOCATED.search(text):
            return replace(self, tokens=self.tokens or int(allocated[1]), final=True)
        return replace(self, final=True) if _TARGET.search(text) else self


@dataclass(frozen=True)
class PoolUsage:
    """How full both parts of a pool are (0 to 1), and the requests that run and wait."""

    full: float
    swa: float
    running: int
    waiting: int

    def __str__(self) -> str:
        text = f"full {self.full:.0%} used, swa {self.swa:.0%} used, waiting {self.waiting}"
        if self.waiting and self.swa >= 0.9 > self.full:
            text += ": the sliding-window part is what is short, not the KV size"
        return text


def read_usage(text: str) -> PoolUsage | None:
    """Read a line about a batch; None for other lines, and for a pool without a window part."""
    found = _USAGE.search(text)
    if found is None:
        return None
    end = "" if found["full"] is not None else "2"
    return PoolUsage(
        full=float(found[f"full{end}"]),
        swa=float(found[f"swa{end}"]),
        running=int(found[f"running{end}"]),
        waiting=int(found[f"waiting{end}"]),
    )


def pool_problems(pools: Mapping[int, KvPool], pin: int, nodes: Sequence[str]) -> list[Problem]:
    """Return a problem for each rank whose pool is not the pinned one.

    A pool may be short of the pin by a part of a page, the same part on every rank.
    """
    usual = _most_common([pool.tokens for pool in pools.values()])
    problems = []
    for rank, node in enumerate(nodes):
        tokens = pools[rank].tokens if rank in pools else None
        right = tokens is not None and 0 <= pin - tokens < LARGEST_PAGE and tokens == usual
        if not right:
            seen = "its log does not tell its KV pool"
            if tokens is not None:
                seen = f"a KV pool of {tokens} tokens"
                seen += f", {usual} on other ranks" if usual not in (None, tokens) else ""
            wanted = f"engine.kv_tokens = {pin}, cut to whole pages, on every rank"
            fix = f"tetraspark logs {rank}: what left it less memory; or lower engine.kv_tokens"
            problems.append(Problem(f"rank {rank} ({node})", seen, wanted, fix))
    return problems


def _most_common(values: Sequence[int | None]) -> int | None:
    """Return the value that most ranks have, the largest of several."""
    known = [value for value in values if value is not None]
    return max(known, key=lambda value: (known.count(value), value), default=None)
