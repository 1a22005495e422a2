"""The JSON reports of the suites, as far as a page shows them; unknown keys are ignored."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tetraspark.measure.about import HardwareClass

Amount = Annotated[float, Field(ge=0, le=1e15)]
Count = Annotated[int, Field(ge=0, le=10**15)]
Place = Annotated[int, Field(ge=1, le=10**15)]
"""Where a cell stands on a logarithmic axis."""


class Part(BaseModel):
    """A part of a report: no conversions, no infinities."""

    model_config = ConfigDict(frozen=True, strict=True, allow_inf_nan=False)


class AboutSaid(Part):
    """What a report says of itself; see `measure.about.About`."""

    suite: str
    at: str
    tetraspark: str
    url: str
    model: str
    line: str | None
    site_sha256: str | None
    hardware_class: HardwareClass
    hardware: str
    client: str
    engine: dict[str, Any]


class DecodeRound(Part):
    """One round; rates in tokens a second, times in seconds."""

    tokens_per_second: Amount | None
    first_token_seconds: tuple[Amount, ...]
    faults: tuple[str, ...]


class DecodeCell(Part):
    """One kind of text with one sampling at one concurrency."""

    kind: str
    sampling: str
    concurrency: Place
    max_tokens: Count
    counted: bool
    rounds: tuple[DecodeRound, ...]
    acceptance_length: Amount | None = None


class DecodePlanSaid(Part):
    """What was asked for."""

    warm_up: Count


class DecodeReport(Part):
    """Of `bench decode`."""

    about: AboutSaid
    plan: DecodePlanSaid
    cells: tuple[DecodeCell, ...]
    changed_settings: tuple[str, ...]


class PrefillRequest(Part):
    """One request."""

    prompt_tokens: Count | None
    first_token_seconds: Amount | None
    faults: tuple[str, ...]


class PrefillRow(Part):
    """One length with one kind of text."""

    text: Literal["real", "filler"]
    wanted_tokens: Place
    requests: tuple[PrefillRequest, ...]


class PrefillReport(Part):
    """Of `bench prefill`."""

    about: AboutSaid
    corpus: str
    rows: tuple[PrefillRow, ...]
    changed_settings: tuple[str, ...]


class NeedleCase(Part):
    """One case."""

    wanted_tokens: Place
    depth: Amount
    phrase: str
    answer: str
    first_token_seconds: Amount | None
    error: str | None
    found: bool


class NeedleReport(Part):
    """Of `needle`."""

    about: AboutSaid
    corpus: str
    cases: tuple[NeedleCase, ...]


class SoakWave(Part):
    """One wave; seconds since the soak began."""

    began: Amount
    requests: Count
    tokens_per_second: Amount
    errors: tuple[str, ...]
    repeats_equal: bool
    counters: dict[str, float]


class SoakPlanSaid(Part):
    """What was asked for."""

    streams: Count
    max_tokens: Count
    prefill_tokens: Count


class SoakReport(Part):
    """Of `soak`."""

    about: AboutSaid
    plan: SoakPlanSaid
    corpus: str
    waves: tuple[SoakWave, ...]
    growth: dict[str, float]
    faults: tuple[str, ...]


class QualityOutcome(Part):
    """One attempt at one task."""

    id: str
    kind: str
    verdict: Literal["right", "wrong", "error", "not run"]
    why: str


class SamplingSaid(Part):
    """How tokens were drawn; a temperature of 0 is greedy."""

    temperature: Amount
    top_p: Amount


class QualityPlanSaid(Part):
    """What was asked for."""

    concurrency: Place
    repeat: Place
    sampling: SamplingSaid
    max_tokens: Place | None


class QualityReport(Part):
    """Of `quality`."""

    about: AboutSaid
    plan: QualityPlanSaid
    outcomes: tuple[QualityOutcome, ...]
    faults: tuple[str, ...]
    tokens_per_second: Amount | None
