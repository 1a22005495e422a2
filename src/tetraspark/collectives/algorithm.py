"""The ways to do an all-reduce."""

from enum import StrEnum


class Algorithm(StrEnum):
    """How an all-reduce moves its data; the bits of the result are the same for both.

    One-shot: every rank writes its whole input to every peer and sums all of them itself.
    Two-shot: a reduce-scatter in the same fixed order, then an all-gather of the reduced chunks.
    With W ranks two-shot puts 2/W of one-shot's bytes on the wire, for one more exchange.
    """

    ONE_SHOT = "one-shot"
    TWO_SHOT = "two-shot"
