"""The engine's own counters: from its /metrics, or from its log where it has none. Pure.

Names of SGLang 0.5.23 (srt/observability/metrics_collector.py). The counter of `realtime` tokens
moves with every step; the older ones, with every finished request.
"""

import re
from collections.abc import Iterable
from dataclasses import replace

from tetraspark.line.kv_pool import read_usage
from tetraspark.watch.observation import EngineSample

Series = dict[str, list[tuple[dict[str, str], float]]]
PREFIX = "sglang:"
REALTIME = "realtime_tokens_total"
MOST = 1e15
"""More tokens than any counter reaches; NaN and infinity are no number of anything either."""
_PREFILL = re.compile(r"Prefill batch.*?#new-token: (\d{1,15})\b")
_RUNNING = re.compile(r"#running-req: (\d{1,15})\b")
_WAITING = re.compile(r"#queue-req: (\d{1,15})\b")
_NUMBER = r"(\d{1,15}(?:\.\d{1,15})?)(?![\d.])"
_USED = re.compile(rf"(?<!full )(?<!swa )token usage: {_NUMBER}")
_RATE = re.compile(rf"gen throughput \(token/s\): {_NUMBER}")


def read_metrics(text: str) -> EngineSample | None:
    """Read the text of /metrics; None for one that is not the engine's.

    A value that no counter reaches is as one that is not told.
    """
    try:
        found = _series(text)
    except (ValueError, IndexError, KeyError):
        return None
    if not found:
        return None
    return EngineSample(
        running=_count(found, "num_running_reqs"),
        waiting=_count(found, "num_queue_reqs"),
        generated_tokens=_tokens(found, ("decode",), "generation_tokens_total"),
        prefilled_tokens=_tokens(found, ("prefill_compute",), "prompt_tokens_total"),
        tokens_per_second=_sum(found, "gen_throughput"),
        kv_used=_share(found),
        swa_used=_swa(found),
        acceptance=_largest(found, "spec_accept_length") or None,
    )


def _series(text: str) -> Series:
    # Here, or every command would load it when it starts.
    from prometheus_client.parser import text_string_to_metric_families

    found: Series = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            # A request's priority splits a gauge into parts; the whole has none.
            whole = sample.name.startswith(PREFIX) and not sample.labels.get("priority")
            if whole and abs(sample.value) <= MOST:
                name = sample.name.removeprefix(PREFIX)
                found.setdefault(name, []).append((sample.labels, sample.value))
    return found


def _sum(found: Series, name: str, mode: str | None = None) -> float | None:
    values = [value for labels, value in found.get(name, ()) if mode in (None, labels.get("mode"))]
    return sum(values) if values else None


def _largest(found: Series, name: str) -> float | None:
    return max((value for _, value in found.get(name, ())), default=None)


def _count(found: Series, name: str) -> int | None:
    value = _sum(found, name)
    return None if value is None else int(value)


def _tokens(found: Series, modes: Iterable[str], older: str) -> int | None:
    """Return tokens of these modes; a mode that no step was of yet has none."""
    if REALTIME not in found:
        return _count(found, older)
    return int(sum(_sum(found, REALTIME, mode) or 0.0 for mode in modes))


def _share(found: Series) -> float | None:
    full = _largest(found, "full_token_usage")
    return full or _largest(found, "token_usage")


def _swa(found: Series) -> float | None:
    """Return how full the sliding-window part is; None for a pool that has none."""
    size = _largest(found, "max_total_num_tokens_swa")
    return _largest(found, "swa_token_usage") if size else None


def read_log(texts: Iterable[str], before: EngineSample) -> EngineSample:
    """Return what is known after more lines of rank 0's log; prefilled tokens are added up."""
    known = before
    for text in texts:
        if "Prefill batch" in text or "Decode batch" in text:
            known = _after(text, known)
    return known


def _after(text: str, known: EngineSample) -> EngineSample:
    usage, prefill, rate = read_usage(text), _PREFILL.search(text), _RATE.search(text)
    running, waiting, used = _RUNNING.search(text), _WAITING.search(text), _USED.search(text)
    prefilled = known.prefilled_tokens
    if prefill:
        prefilled = (prefilled or 0) + int(prefill[1])
    alone = float(used[1]) if used else known.kv_used
    return replace(
        known,
        running=int(running[1]) if running else known.running,
        waiting=int(waiting[1]) if waiting else known.waiting,
        prefilled_tokens=prefilled,
        tokens_per_second=float(rate[1]) if rate else known.tokens_per_second,
        kv_used=usage.full if usage else alone,
        swa_used=usage.swa if usage else known.swa_used,
    )
