"""The JSON reports of the benchmarks of one machine, as far as a page shows them."""

from pydantic import ConfigDict, Field

from tetraspark.measure.report.schema import Amount, Count, Part, Place


class StartSample(Part):
    """One cold start, in seconds."""

    floor: Amount
    first_token: Amount


class StartReport(Part):
    """Of `bench start`."""

    line: str
    engine: str
    ranks: Count
    cores: Count
    samples: tuple[StartSample, ...]


class TransportSample(Part):
    """One served line: tokens a second of each request."""

    transport: str
    tokens_per_second: tuple[Amount, ...]


class TransportReport(Part):
    """Of `bench transport`."""

    line: str
    ranks: Count
    cores: Count
    max_tokens: Count
    samples: tuple[TransportSample, ...]


class CollectiveSamples(Part):
    """One contestant at one size; microseconds a call, by round."""

    rounds_us: tuple[Amount, ...]
    wrong: Count
    compared: Count


class CollectivesBench(Part):
    """What was measured."""

    op: str
    dtype: str
    world: Count
    lanes: Count
    delivery: str
    in_place: bool
    device: str


class CollectivesRow(Part):
    """One size in bytes; every other key is a contestant."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, CollectiveSamples] = Field(init=False)

    bytes: Place
    ratio: dict[str, Amount]

    @property
    def contestants(self) -> dict[str, CollectiveSamples]:
        """The samples by the name of who took part."""
        return self.__pydantic_extra__


class CollectivesReport(Part):
    """Of `bench collectives`."""

    about: dict[str, str]
    bench: CollectivesBench
    rows: tuple[CollectivesRow, ...]
