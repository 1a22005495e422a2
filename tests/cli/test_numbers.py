"""Numbers that a person types: each has bounds, and what is no finite number is refused."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import pytest
import typer
from typer.testing import CliRunner

from tetraspark.cli.main import app
from tetraspark.cli.verbs import VERBS

JUDGED_BY_VALUE = {
    ("logs", "rank"),  # by the plan of the run
    ("pack", "--rank"),  # by --tp
    ("qualify lanes", "--min-mtu"),  # by what RDMA has
    ("ring plan", "--lost-cable"),  # by the cables of the inventory
}
NO_NUMBERS = ("nan", "inf", "-inf", "1e999", "-1", "1e300", "one", "")


@dataclass(frozen=True)
class Number:
    """A number that a verb takes."""

    verb: str
    option: str
    kind: type
    bounds: tuple[float | None, float | None]


def verbs() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield every verb with its function."""
    for name, place in VERBS.items():
        found = resolve_name(place)
        if not isinstance(found, typer.Typer):
            yield name, found
            continue
        for one in found.registered_commands:
            assert one.callback is not None
            word = one.name or one.callback.__name__.replace("_", "-")
            yield f"{name} {word}", one.callback


def numbers() -> Iterator[Number]:
    for verb, function in verbs():
        for name, hint in get_type_hints(function, include_extras=True).items():
            if get_origin(hint) is not Annotated:
                continue
            told = hint.__metadata__[0]
            # typer takes an option's first name for its default until it is asked for the command.
            names = [
                one for one in (told.default, *(told.param_decls or ())) if isinstance(one, str)
            ]
            option = next((one for one in names if one.startswith("--")), name)
            for kind in {int, float} & {hint.__origin__, *get_args(hint.__origin__)}:
                yield Number(verb, option, kind, (told.min, told.max))


NUMBERS = list(numbers())
FLOATS = [(one.verb, one.option) for one in NUMBERS if one.kind is float]
COUNTS = [
    (one.verb, one.option)
    for one in NUMBERS
    if one.kind is int and (one.verb, one.option) not in JUDGED_BY_VALUE
]


def test_every_number_has_bounds_on_both_sides() -> None:
    assert len(FLOATS) > 10 and len(COUNTS) > 20
    open_ended = {(one.verb, one.option) for one in NUMBERS if None in one.bounds}
    assert open_ended == JUDGED_BY_VALUE


@pytest.mark.parametrize("text", NO_NUMBERS)
@pytest.mark.parametrize(("verb", "option"), FLOATS)
def test_what_is_no_finite_number_within_bounds_is_refused(
    verb: str, option: str, text: str
) -> None:
    result = CliRunner().invoke(app, [*verb.split(), f"{option}={text}"], env={"COLUMNS": "200"})
    assert result.exit_code == 2, result.exception
    assert f"'{option}'" in result.output


@pytest.mark.parametrize("text", ["-1", str(10**30), "1" * 5000, "nan"])
@pytest.mark.parametrize(("verb", "option"), COUNTS)
def test_a_count_that_cannot_be_is_refused(verb: str, option: str, text: str) -> None:
    result = CliRunner().invoke(app, [*verb.split(), f"{option}={text}"], env={"COLUMNS": "200"})
    assert result.exit_code == 2, result.exception
    assert option in result.output
