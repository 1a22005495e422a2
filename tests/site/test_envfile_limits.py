"""Hostile profiles: every limit has a reason, and time grows with the size of the file alone."""

import time
from pathlib import Path

import pytest

from tetraspark.errors import UsageError
from tetraspark.site.envfile import LARGEST_FILE, EnvFile, parse_envfile
from tetraspark.site.shell_value import LARGEST_VALUE
from tetraspark.site.shell_word import DEEPEST

# an eighth of the largest file: what grows with the square takes minutes even so
ROOM = LARGEST_FILE // 8
SECONDS = 5


def parse(text: str) -> EnvFile:
    started = time.process_time()
    found = parse_envfile(Path(".env"), text.encode())
    assert time.process_time() - started < SECONDS
    return found


def nested(opening: str, closing: str, depth: int) -> str:
    return f"A={opening * depth}x{closing * depth}\nLAST=1\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (nested('"$(', ')"', 20_000), "command substitution"),
        (nested("$(", ")", 20_000), "command substitution"),
        (nested("${B:-", "}", 20_000), f"nested more than {DEEPEST} deep"),
        (nested('"${B:-', '}"', 20_000), f"nested more than {DEEPEST} deep"),
        (nested("${B:-$(", ")}", 20_000), "command substitution"),
        (nested("${B:-", "}", DEEPEST + 1), f"nested more than {DEEPEST} deep"),
    ],
)
def test_deep_nesting_is_reported_with_its_reason(text: str, why: str) -> None:
    first, last = parse(text).assignments
    assert (first.name, first.value) == ("A", None) and why in first.why
    assert (last.name, last.value) == ("LAST", "1")


def test_nesting_up_to_the_limit_is_read() -> None:
    assert parse(nested("${B:-", "}", DEEPEST)).assignments[0].value == "x"


@pytest.mark.parametrize("opening", ['"$(', "$(", "${B:-", '"', "`", "(", "'"])
def test_nesting_without_an_end_is_reported(opening: str) -> None:
    found = parse(f"A={opening * 20_001}\nLAST=1\n")
    assert "without its other half" in found.statements[0].why
    assert found.assignments[-1].name == "LAST"


@pytest.mark.parametrize(
    "line",
    ["A=$(\n", "A=${B:-\n", 'A="${\n', "A=1\n", "A=1;", "x\n", "<<E\n", "A=x\\\n", "a", "$A",
     "A=$A$A\n", "A=x$A\n", "A+=x\n", "{\n", "f() {\n", 'A="$(x)"\n', "${A:-", "${A:-}", "token "],
)  # fmt: skip
def test_time_grows_with_the_size_alone(line: str) -> None:
    text = "A=" + line * (ROOM // len(line))
    found = parse(text)
    assert found.assignments or found.statements


def test_a_chain_of_unknown_variables_keeps_its_first_reason() -> None:
    rows = "".join(f"A{number}=$A{number - 1}\n" for number in range(1, 50_000))
    found = parse(f"A0=$(date)\n{rows}")
    last = found.assignments[-1]
    assert last.value is None and last.why.startswith("`$A49998` is not known: command subst")
    assert len(last.why) < 100


def test_after_many_unended_quotes_the_rest_is_one_statement() -> None:
    found = parse("A=$(\n" * 100)
    assert len(found.statements) < 30
    last = found.statements[-1]
    assert "the rest of the file is not read" in last.why and last.line == len(found.statements)


def test_values_that_grow_have_a_limit() -> None:
    found = parse("A=xxxxxxxx\n" + "A=$A$A\n" * 40)
    assert found.assignments[-1].value is None
    assert f"longer than {LARGEST_VALUE} characters" in found.assignments[-1].why
    many = parse(f"A={'x' * LARGEST_VALUE}\n" + "".join(f"B{n}=$A\n" for n in range(5000)))
    assert sum(len(item.value or "") for item in many.assignments) < 2**24
    assert "together" in many.assignments[-1].why


def test_a_file_that_is_too_large_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        parse_envfile(Path("big.env"), b"#" * (LARGEST_FILE + 1))
    (problem,) = caught.value.problems
    assert problem.where == "big.env" and problem.fix
    assert "1048577 bytes" in problem.seen and "1048576" in problem.wanted
    assert parse_envfile(Path("big.env"), b"#" * LARGEST_FILE).assignments == ()
