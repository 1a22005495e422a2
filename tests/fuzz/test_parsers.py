"""No parser raises anything but what it says, whatever it is given."""

import pytest

from tests.fuzz.parsers import PARSERS, Parser
from tests.fuzz.strive import fuzz_parser

EXAMPLES = 15
WITHOUT_A_WHOLE_SEED = {"ring plan", "Engram manifest", "Engram tables"}


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_a_parser_reads_or_refuses(parser: Parser) -> None:
    fuzz_parser(parser, EXAMPLES)


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_a_seed_of_a_parser_is_read(parser: Parser) -> None:
    """Seeds that are all refused would fuzz nothing but the refusal."""
    read = 0
    for seed in parser.seeds()[:40]:
        try:
            parser.read(seed)
            read += 1
        except parser.raises:
            continue
    assert read or parser.name in WITHOUT_A_WHOLE_SEED


def test_the_fuzzer_finds_what_a_careless_parser_raises() -> None:
    def numbers(text: str) -> list[int]:
        return [int(sign) for sign in text if sign.isdigit()]

    with pytest.raises(ValueError, match="invalid literal"):
        fuzz_parser(Parser("careless", numbers, lambda: ("12",)), 300)
