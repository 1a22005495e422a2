"""What a suite measures: any OpenAI-compatible server, and what is known of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tetraspark.errors import RunError
from tetraspark.line.api import Api
from tetraspark.measure import about
from tetraspark.measure.about import About, HardwareClass
from tetraspark.measure.secret import report_without_key, without_key

INFO_SECONDS = 10.0
KEPT = (
    "attention_backend",
    "chunked_prefill_size",
    "context_length",
    "dtype",
    "ep_size",
    "kv_cache_dtype",
    "max_running_requests",
    "max_total_num_tokens",
    "mem_fraction_static",
    "moe_runner_backend",
    "page_size",
    "speculative_algorithm",
    "speculative_num_draft_tokens",
    "tp_size",
    "version",
)
"""Settings of `/server_info` that a report keeps."""


@dataclass(frozen=True)
class Endpoint:
    """A server, and the line behind it where it is one of ours.

    `effective` is what the engine ran with when the line became ready (effective.json).
    """

    api: Api
    hardware_class: HardwareClass
    hardware: str
    line: str | None = None
    run: str | None = None
    site_sha256: str | None = None
    effective: Sequence[Mapping[str, Any]] = field(default=())

    def about(self, suite: str) -> About:
        """Return what a report of this suite says of itself."""
        info = self.info()
        return About(
            suite=suite,
            at=about.now(),
            tetraspark=about.this_version(),
            url=self.api.url,
            model=self.api.model,
            line=self.line,
            run=self.run,
            site_sha256=self.site_sha256,
            hardware_class=self.hardware_class,
            hardware=self.hardware,
            client=about.this_machine(),
            engine=report_without_key(
                {key: info[key] for key in KEPT if key in info}, self.api.key
            ),
        )

    def info(self) -> dict[str, Any]:
        """Return what the server says it runs with; empty where it says nothing."""
        try:
            return self.api.server_info(INFO_SECONDS)
        except (RunError, RecursionError):
            return {}

    def acceptance_length(self) -> float | None:
        """Return tokens a verification step since the server started, where it tells them."""
        states = self.info().get("internal_states")
        told = states if isinstance(states, list) else []
        lengths = [one.get("avg_spec_accept_length") for one in told if isinstance(one, dict)]
        found = [float(one) for one in lengths if isinstance(one, int | float) and 0 <= one < 1e6]
        return sum(found) / len(found) if found else None

    def changed(self) -> list[str]:
        """Return each setting that the server has otherwise than when the line became ready.

        A server that tells them no more is a finding too.
        """
        info = self.info()
        if self.effective and not info:
            return ["the server's settings could not be read again"]
        return [
            without_key(
                f"{one['key']} is {info[one['key']]!r}, "
                f"and was {one['value']!r} when the line started",
                self.api.key,
            )
            for one in self.effective
            if one["key"] in info and info[one["key"]] != one["value"]
        ]
