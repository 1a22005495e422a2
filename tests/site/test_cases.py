"""Ways of writing configuration that have cost people a working server, one test each."""

import json
import shlex
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tetraspark.errors import UsageError
from tetraspark.fleet.command import NodeCommand
from tetraspark.fleet.rank import RankCommand
from tetraspark.line.settings import derived, env_of
from tetraspark.site.envfile import parse_envfile
from tetraspark.site.load import LoadedSite, load_site

SITES = Path(__file__).parents[2] / "sites"
LOCAL = (SITES / "local.toml").read_text()


def values(data: bytes) -> dict[str, str | None]:
    found = parse_envfile(Path("a.env"), data)
    return {item.name: item.value for item in found.assignments}


def load(tmp_path: Path, text: str) -> LoadedSite:
    path = tmp_path / "site.toml"
    path.write_text(text)
    return load_site(path)


def test_L01_a_last_line_without_a_newline_counts() -> None:
    assert values(b"QUANT=nvfp4\nCONTEXT_LENGTH=262144") == {
        "QUANT": "nvfp4",
        "CONTEXT_LENGTH": "262144",
    }


def test_L01_an_exported_name_is_found() -> None:
    assert values(b"export QUANT=nvfp4\n") == {"QUANT": "nvfp4"}


def test_L02_two_words_in_one_element_are_refused_with_the_list_to_write(tmp_path: Path) -> None:
    text = LOCAL.replace("tp = 4", 'tp = 4\nextra_args = ["--log-level debug"]')
    with pytest.raises(UsageError) as caught:
        load(tmp_path, text)
    assert '"--log-level", "debug"' in caught.value.problems[0].fix


def test_L02_a_key_among_the_words_is_refused_and_not_repeated(tmp_path: Path) -> None:
    for words in ('["--api-key abc123"]', '["--api-key", "abc123"]', '["--api-key=abc123"]'):
        with pytest.raises(UsageError) as caught:
            load(tmp_path, LOCAL.replace("tp = 4", f"tp = 4\nextra_args = {words}"))
        assert "abc123" not in str(caught.value)
        assert "api.key_file" in str(caught.value)


def test_L02_a_string_in_place_of_the_list_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        load(tmp_path, LOCAL.replace("tp = 4", 'tp = 4\nextra_args = "--log-level debug"'))
    assert '["--log-level", "debug"]' in caught.value.problems[0].fix


WORD = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)


@settings(deadline=None)
@given(st.lists(WORD, max_size=6), st.dictionaries(WORD, WORD, max_size=3))
def test_L03_words_pass_a_shell_unchanged(words: list[str], cfg: dict[str, str]) -> None:
    argv = ("python3", "--json-model-override-args", json.dumps(cfg), *words)
    assert shlex.split(str(NodeCommand(argv))) == list(argv)
    assert shlex.split(str(RankCommand(0, "node0", argv, (), 1))) == list(argv)


def test_L04_quotes_and_comments_inside_a_value_are_warned_of(tmp_path: Path) -> None:
    text = LOCAL + "\n[env]\nA = '\"abc\"'\nNCCL_ALGO = 'Ring # leave'\n"
    warnings = load(tmp_path, text).warnings
    assert ["quote" in warnings[0].seen, "` #`" in warnings[1].seen] == [True, True]


def test_L04_an_env_file_is_read_as_a_shell_would_and_not_as_docker_does() -> None:
    found = values(b'QUANT="abc"\nNCCL_DEBUG=          # leave empty\n')
    assert found == {"QUANT": "abc", "NCCL_DEBUG": ""}


def test_L05_a_profile_is_never_run(tmp_path: Path) -> None:
    proof = tmp_path / "ran"
    text = f"EXTRA=--level touch {proof}\nB=$(touch {proof})\nC=`touch {proof}`\ntouch {proof}\n"
    found = parse_envfile(tmp_path / "c.env", text.encode())
    assert not proof.exists()
    assert [item.line for item in found.statements] == [1, 4]
    assert {item.name: item.value for item in found.assignments} == {"B": None, "C": None}


def test_L06_crlf_and_a_byte_order_mark_are_read_and_told_once() -> None:
    data = b"\xef\xbb\xbfIB_HCA=rocep1s0f0,rocep1s0f1\r\nTP_SIZE=4\r\n"
    found = parse_envfile(Path("d.env"), data)
    assert {item.name: item.value for item in found.assignments} == {
        "IB_HCA": "rocep1s0f0,rocep1s0f1",
        "TP_SIZE": "4",
    }
    assert ["BOM" in one.seen or "CRLF" in one.seen for one in found.warnings] == [True, True]


def test_L14_a_key_of_another_mode_is_refused(tmp_path: Path) -> None:
    text = (SITES / "four-sparks-ring.toml").read_text()
    with pytest.raises(UsageError, match="nfs_server"):
        load(tmp_path, text.replace('mode = "local"', 'mode = "local"\nnfs_server = "10.0.22.1"'))


def test_L19_a_tag_with_a_digest_is_refused(tmp_path: Path) -> None:
    text = (SITES / "four-sparks-ring.toml").read_text()
    tag = f"dsv41@sha256:{'0' * 64}"
    with pytest.raises(UsageError, match=r"image\.base"):
        load(tmp_path, text.replace("tetraspark:canary-roce", tag))


def test_L25_an_image_of_the_branch_needs_the_rust_build_off(tmp_path: Path) -> None:
    text = (SITES / "four-sparks-ring.toml").read_text()
    with pytest.raises(UsageError, match="SGLANG_RUST_BUILD_MODE"):
        load(tmp_path, text.replace('SGLANG_RUST_BUILD_MODE = "never"', ""))


def test_L28_unset_is_absent_and_empty_is_an_error(tmp_path: Path) -> None:
    assert env_of([derived("env", "NCCL_IB_GID_INDEX", None, "", None)], 0) == ()
    with pytest.raises(ValueError, match="NCCL_IB_GID_INDEX"):
        env_of([derived("env", "NCCL_IB_GID_INDEX", "", "", None)], 0)
    with pytest.raises(UsageError, match="is empty"):
        load(tmp_path, LOCAL + '\n[env]\nNCCL_ALGO = ""\n')
