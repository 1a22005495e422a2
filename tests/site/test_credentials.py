"""Credentials: refused wherever they stand in a site, with the line and without the value."""

import time
from pathlib import Path

import pytest

from tetraspark.errors import Problem, UsageError
from tetraspark.site.load import load_source
from tetraspark.site.secret import holds_secret, redact
from tetraspark.site.source import decode_source

SITES = Path(__file__).parents[2] / "sites"
SWITCH = (SITES / "four-sparks-switch.toml").read_text()
DIGEST = "@sha256:" + "0" * 64
IMAGE = 'recipe = "release"'
OWN = f'{IMAGE}\ndockerfile = "D"\n'
KEY = "sk-s3cr3ts3cr3ts3cr3t"

CASES = [
    (IMAGE, f'{IMAGE}\nbase = "https://bob:s3cr3t@reg/x:1"'),
    (IMAGE, f'{IMAGE}\nbase = "bob:s3cr3t@reg/x:1{DIGEST}"'),
    ('host = "10.0.0.1"', 'host = "bob:s3cr3t@10.0.0.1"'),
    ('host = "10.0.0.1"', 'host = "bob:s3cr3t"'),
    ('nfs_server = "10.0.22.1"', 'nfs_server = "bob:s3cr3t"'),
    ('ssh_host = "spark4.lan"', 'ssh_host = "ssh://s3cr3t@spark4.lan"'),
    ('user = "alice"', 'user = "alice:s3cr3t"'),
    ('user = "bob"', 'user = "bob:s3cr3t"'),
    (IMAGE, f'{OWN}pip_index = "u:s3cr3t@mirror/simple"'),
    (IMAGE, f'{OWN}pip_index = "https://s3cr3t@mirror/simple"'),
    (IMAGE, f'{OWN}pip_index = "https://mirror:s3cr3t/simple"'),
    (IMAGE, f'{OWN}pip_index = "https://mirror/simple#s3cr3t"'),
    (IMAGE, f'{OWN}pip_index = "https://mirror/simple?k=s3cr3t"'),
    (IMAGE, f'{OWN}pip_index = "s3cr3t"'),
    (IMAGE, f'{OWN}build_args = {{ X = "https://s3cr3t@mirror" }}'),
    ('served_name = "deepseek-v4.1-flash"', 'served_name = "hf_s3cr3ts3cr3ts3cr3t"'),
    ('key_file = "four-sparks-switch.key"', f'key_file = "{KEY}"'),
    ('tag = "tetraspark:four-sparks"', f'tag = "tetraspark:{KEY}"'),
    ('name = "four-sparks-switch"', f'name = "{KEY}"'),
    ('name = "spark2"', f'name = "{KEY} x"'),
    ('"flashinfer_cutlass"', f'"{KEY}"'),
    ('"flashinfer_cutlass"', f'"--x {KEY}"'),
    ("[env]", f'[env]\nNOTE = "{KEY}"'),
    ("[env]", f'[env]\n"{KEY}" = "x"'),
    ("tp = 4", f'tp = "{KEY}"'),
]


def problems(text: str) -> tuple[Problem, ...]:
    with pytest.raises(UsageError) as caught:
        load_source(decode_source(SITES / "mine.toml", text.encode()))
    return caught.value.problems


@pytest.mark.parametrize(("old", "new"), CASES)
def test_a_credential_is_refused_at_its_line_and_not_shown(old: str, new: str) -> None:
    assert old in SWITCH
    text = SWITCH.replace(old, new, 1)
    (problem,) = problems(text)
    line = text[: text.index("s3cr3t")].count("\n") + 1
    assert problem.where == f"{SITES}/mine.toml:{line}"
    assert "s3cr3t" not in str(problem) and problem.fix


def test_a_value_repeated_in_another_finding_is_hidden() -> None:
    twice = SWITCH.replace('host = "10.0.0.1"', 'host = "b:s3cr3t@h"')
    twice = twice.replace('host = "10.0.0.2"', 'host = "b:s3cr3t@h"')
    assert "s3cr3t" not in str(problems(twice))


def test_a_credential_in_a_line_that_is_no_toml_is_hidden() -> None:
    assert "s3cr3t" not in str(problems("base = https://bob:s3cr3t@reg/x:1\n"))


@pytest.mark.parametrize(
    "text",
    [
        f"registry.example:5000/team/x:1{DIGEST}",
        f"x:1{DIGEST}",
        "https://mirror.example:8443/simple",
        "bob@spark1.lan",
        "What is 19 + 23? Write to: bob@example.com",
        "~/models/DeepSeek-V4.1-Flash",
        "expandable_segments:False",
    ],
)
def test_ordinary_values_are_no_credentials(text: str) -> None:
    assert not holds_secret(text)


@pytest.mark.parametrize("piece", ["9", "a:", "token", "://"])
def test_the_search_takes_no_time_on_a_large_text(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    start = time.process_time()
    assert not holds_secret(text)
    redact(text[:1000])
    assert time.process_time() - start < 2
