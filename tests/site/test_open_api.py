"""Nobody opens a server to the network by leaving a line out."""

from pathlib import Path

import pytest

from tests.site.test_import_profile import SMALL, imported, site
from tetraspark.errors import UsageError
from tetraspark.site.load import load_site

SITES = Path(__file__).parents[2] / "sites"


def load(tmp_path: Path, base: str, api: str) -> None:
    path = tmp_path / "site.toml"
    head, _, tail = (SITES / base).read_text().partition("[api]\n")
    rest = tail.partition("\n[")
    path.write_text(f"{head}[api]\n{api}\n[{rest[2]}")
    load_site(path)


@pytest.mark.parametrize("base", ["local.toml", "four-sparks-switch.toml"])
@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.1", "spark1.lan"])
def test_an_address_of_the_network_without_a_key_is_refused(
    tmp_path: Path, base: str, host: str
) -> None:
    with pytest.raises(UsageError) as caught:
        load(tmp_path, base, f'host = "{host}"\nport = 30000')
    (problem,) = caught.value.problems
    assert host in problem.seen
    assert "api.key_file" in problem.fix
    assert "allow_open = true" in problem.fix


@pytest.mark.parametrize("base", ["local.toml", "four-sparks-switch.toml"])
@pytest.mark.parametrize(
    "api",
    [
        "port = 30000",
        'host = "127.0.0.1"\nport = 30000',
        'host = "127.0.0.2"\nport = 30000',
        'host = "localhost"\nport = 30000\nallow_open = false',
        'host = "0.0.0.0"\nport = 30000\nkey_file = "k"',
        'host = "0.0.0.0"\nport = 30000\nallow_open = true',
    ],
)
def test_loopback_a_key_or_the_explicit_word_is_enough(tmp_path: Path, base: str, api: str) -> None:
    load(tmp_path, base, api)


@pytest.mark.parametrize(
    ("api", "words"),
    [
        ("port = 30000\nallow_open = true", "on loopback"),
        ('host = "0.0.0.0"\nport = 30000\nkey_file = "k"\nallow_open = true', "beside"),
    ],
)
def test_an_allowance_that_allows_nothing_is_refused(tmp_path: Path, api: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        load(tmp_path, "local.toml", api)


def test_an_imported_profile_without_a_key_says_so() -> None:
    result = imported(SMALL)
    api = site(result).api
    assert (api.host, api.allow_open, api.key_file) == ("0.0.0.0", True, None)
    added = {item.key: item.why for item in result.report.added}
    assert "no API key" in added["api.allow_open"]


def test_an_imported_profile_with_a_key_or_on_loopback_needs_no_allowance() -> None:
    keyed = site(imported(SMALL + "API_KEY=abcdefgh\n")).api
    assert (keyed.allow_open, keyed.key_file) == (False, "four.key")
    later = site(imported(SMALL + 'EXTRA_SGLANG_ARGS="--api-key abcdefgh"\n')).api
    assert (later.allow_open, later.key_file) == (False, "four.key")
    inner = site(imported(SMALL + 'EXTRA_SGLANG_ARGS="--host 127.0.0.1"\n')).api
    assert (inner.allow_open, inner.host) == (False, "127.0.0.1")
