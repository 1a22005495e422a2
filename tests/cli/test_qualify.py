"""`qualify lanes`: what it refuses before anything is set up."""

import pytest
from typer.testing import CliRunner

from tetraspark.cli.main import app
from tetraspark.errors import UsageError

GOOD = {"--rank": "0", "--world": "2", "--meet": "10.0.0.1:9000", "--node": "spark1"}


@pytest.mark.parametrize(
    ("option", "value", "seen"),
    [
        ("--rank", "2", "--rank: 2; wanted: below --world 2"),
        ("--meet", "10.0.0.1", "--meet: 10.0.0.1; wanted: HOST:PORT"),
        ("--meet", ":9000", "--meet: :9000"),
        ("--meet", "a:70000", "--meet: a:70000"),
        ("--devices", "rocep1s0f0@nowhere", "--devices"),
        ("--devices", "a,,b", "'' is not DEVICE[:PORT][@ADDRESS]"),
        ("--min-mtu", "1500", "min_mtu 1500"),
    ],
)
def test_bad_usage_is_named(option: str, value: str, seen: str) -> None:
    told = {**GOOD, "--devices": "rocep1s0f0", option: value}
    words = [word for pair in told.items() for word in pair]
    result = CliRunner().invoke(app, ["qualify", "lanes", *words])
    assert isinstance(result.exception, UsageError)
    assert seen in str(result.exception)
