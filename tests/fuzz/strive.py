"""Give a target many inputs; what it raises beyond what it may comes out."""

from hypothesis import HealthCheck, given, settings

from tests.fuzz.mutate import data, hazards, texts
from tests.fuzz.parsers import Parser
from tests.fuzz.records import Record


def _settings(examples: int, fixed: bool) -> settings:
    return settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=fixed,
        suppress_health_check=list(HealthCheck),
    )


def fuzz_parser(parser: Parser, examples: int, *, fixed: bool = True) -> None:
    """Give a parser so many texts; `fixed` gives it the same ones every time, and fewer."""

    def read(text: str) -> None:
        try:
            parser.read(text)
        except parser.raises:
            return

    for text in hazards(parser.seeds(), 4 if fixed else 16):
        read(text)
    _settings(examples, fixed)(given(texts(parser.seeds()))(read))()


def fuzz_record(record: Record, examples: int, *, fixed: bool = True) -> None:
    """Give a record's reader so many damaged ones; each has to be refused by name."""
    known = frozenset(record.samples)

    @_settings(examples, fixed)
    @given(data(record.samples))
    def run(given_bytes: bytes) -> None:
        if given_bytes in known:
            return
        try:
            record.read(given_bytes)
        except record.refusal as error:
            assert str(error).strip(), "a refusal without a word"
            return
        raise AssertionError(f"{record.name}: taken for whole: {given_bytes[:200]!r}")

    run()
