"""Secrets leave no trace: not as themselves, not encoded, not behind their names."""

import base64
import json
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.serving import write_site
from tetraspark.bundle.redaction import HIDDEN, Redactor, known_secrets, redactor_of
from tetraspark.site.key_file import CREDENTIAL
from tetraspark.site.load import load_site

KEY = "s3cr3t/+key=="
KEYS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=40).map(
    lambda text: f"Zq{text}"
)
AROUND = st.text(st.characters(codec="utf-8"), max_size=12)


@settings(deadline=None)
@given(KEYS, AROUND, AROUND)
def test_a_known_secret_is_taken_out_however_it_is_written(
    key: str, before: str, after: str
) -> None:
    clean = Redactor([key]).clean
    for written in (key, quote(key), quote(key, safe=""), quote_plus(key), json.dumps(key)[1:-1]):
        assert written not in clean(f"{before}{written}{after}")
    for whole in (f"{before}{key}{after}", f"user:{key}"):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            text = encode(whole.encode()).decode()
            left = clean(text).replace(HIDDEN, "")
            assert len(text) - len(left) >= len(key), text
        assert key.encode().hex() not in clean(whole.encode().hex())


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("API_KEY=abc123", "API_KEY=[hidden]"),
        ("export HF_TOKEN='abc 123' x=1", "export HF_TOKEN='[hidden]' x=1"),
        ("set API_KEY=abc123", "set API_KEY=[hidden]"),
        ("PASSWORD=a,b;c\nx", "PASSWORD=[hidden]\nx"),
        ("GET /v1?api_key=abc&x=1", "GET /v1?api_key=[hidden]"),
        ("api_key=[hidden]rest", "api_key=[hidden]"),
        ("api_key=[hidden], tp=4", "api_key=[hidden], tp=4"),
        ('{"api_key": "abc123", "n": 1}', '{"api_key": "[hidden]", "n": 1}'),
        ('\\"api_key\\": \\"abc123\\", 1', '\\"api_key\\": \\"[hidden]\\", 1'),
        ('{"password": "a\\"bc"}', '{"password": "[hidden]"}'),
        ("--api-key abc123 --port 1", "--api-key [hidden] --port 1"),
        ("--api-key=abc123", "--api-key=[hidden]"),
        ('["--api-key", "abc123"]', '["--api-key", "[hidden]"]'),
        ("ServerArgs(api_key='abc', tp=4)", "ServerArgs(api_key='[hidden]', tp=4)"),
        ("Authorization: Bearer abc123def", "Authorization: [hidden]"),
        ('"authorization": "Basic dXNlcjpwYXNz"', '"authorization": "[hidden]"'),
        ("sent bearer abc123def.xyz", "sent bearer [hidden]"),
        ("Set-Cookie: session=abc; Path=/", "Set-Cookie: [hidden]"),
        ("http://user:pass@proxy:3128", "http://[hidden]proxy:3128"),
        ("using hf_abcdefghijklmnopqrst", "using [hidden]"),
        (
            "a\n-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----\nb",
            "a\n[hidden]\nb",
        ),
        ("-----BEGIN RSA PRIVATE KEY-----\ncut off", "[hidden]"),
    ],
)  # fmt: skip
def test_what_has_the_form_of_a_secret_is_taken_out(text: str, left: str) -> None:
    assert Redactor().clean(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "[TP0] Prefill batch, #new-seq: 1, #new-token: 15, #cached-token: 0, token usage: 0.00",
        "[TP0] Decode batch, #swa token: 64, gen throughput (token/s): 61.20, #queue-req: 2",
        "server_args=ServerArgs(api_key=None, max_total_tokens=8192)",
        'key_file = "local.key"',
        "NCCL INFO NET/IB : Using [0]rocep1s0f0:1/RoCE; OOB enP7s7:10.0.0.2<0>",
        "image tetraspark:line@sha256:0000",
        "basic information follows",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert Redactor([KEY]).clean(text) == text


def test_a_key_is_read_whatever_the_mode_of_its_file(tmp_path: Path) -> None:
    site = write_site(tmp_path, "keyed", {"port = 30000": 'port = 0\nkey_file = "key"'})
    (tmp_path / "key").write_text(f"{KEY}\n")
    (tmp_path / "key").chmod(0o644)
    redactor = redactor_of(load_site(site), {})
    assert redactor.clean(f"said {KEY} aloud") == f"said {HIDDEN} aloud"
    assert redactor.unread is None


def test_a_key_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    site = write_site(tmp_path, "keyed", {"port = 30000": 'port = 0\nkey_file = "key"'})
    (tmp_path / "key").mkdir()
    redactor = redactor_of(load_site(site), {"HF_TOKEN": "abcdef"})
    assert redactor.clean("x abcdef") == f"x {HIDDEN}", "what is known is taken out all the same"
    assert redactor.unread is not None
    assert redactor.unread.name == str(tmp_path / "key")
    assert redactor.unread.why.endswith(
        ", so a key that a text repeats is not known: look before you send"
    )


def test_secrets_of_the_environment_are_known_by_their_names() -> None:
    assert known_secrets(f"{KEY}\n", {}) == (KEY,)
    found = known_secrets("", {"HF_TOKEN": "abcdef", "PATH": "/bin", "MY_SECRET": "ab"})
    assert found == ("abcdef",)


def test_a_key_file_that_never_ends_is_told_and_not_read(tmp_path: Path) -> None:
    loaded = load_site(write_site(tmp_path, "k", {"port = 30000": 'port = 0\nkey_file = "key"'}))
    (tmp_path / "key").symlink_to("/dev/zero")
    missing = redactor_of(loaded, {}).unread
    assert missing is not None and missing.why.startswith("a device or socket, so a key that")


def test_a_very_short_key_is_taken_out_too() -> None:
    assert Redactor(["k9"]).clean("x k9 y") == "x [hidden] y"


def test_in_a_unit_of_the_line_the_key_is_known_by_its_credential(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The site's own file cannot be read there."""
    file = write_site(tmp_path, "unit", {"port = 30000": 'port = 0\nkey_file = "key"'})
    (tmp_path / CREDENTIAL).write_text(KEY + "\n")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    assert KEY not in redactor_of(load_site(file), {}).clean(f"said {KEY} aloud")
