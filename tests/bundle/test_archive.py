"""A bundle as a file: what is in it, in which order, and that no source leaks a secret."""

import base64
import hashlib
import io
import json
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.bundle.nodes import CONTAINER, Nodes, found
from tests.line.launch_facts import SITE
from tetraspark.bundle.archive import INDEX, pack, write_new
from tetraspark.bundle.collect import Gathered, gather
from tetraspark.bundle.redaction import Redactor
from tetraspark.bundle.source import HEAD_BYTES, TAIL_BYTES, Missing, Source, ends
from tetraspark.errors import UsageError
from tetraspark.line.run import Run
from tetraspark.site.load import load_site

PLANTED = "PLANTED"
MADE = 1_790_000_000.0


@pytest.fixture(scope="module")
def gathered(tmp_path_factory: pytest.TempPathFactory) -> Gathered:
    """A bundle's texts, each with the planted word, of a fleet with one node down."""
    folder = tmp_path_factory.mktemp("site")
    path = folder / "two.toml"
    path.write_text(SITE.replace('served_name = "v41"', f'served_name = "{PLANTED}"'))
    run = Run(folder / "20261130-080000")
    run.folder.mkdir()
    for name in ("plan.json", "state.json", "effective.json", "rank0.log", "rank0.exit"):
        (run.folder / name).write_text(f'"{PLANTED} in {name}"\n')
    (run.folder / "launcher").write_text("not taken")
    nodes = Nodes({"spark1": found(PLANTED), "spark2": None}, PLANTED)
    made = gather(
        load_site(path), run, nodes, ("spark1", "spark2"), lambda: f'{{"verdict": "{PLANTED}"}}\n'
    )
    programs = {argv[:2] for argv in nodes.asked}
    assert programs == {("python3", "-I"), ("docker", "inspect"), ("docker", "logs")}
    return made


def unpacked(data: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        assert all(member.mode == 0o600 and member.mtime == MADE for member in tar)
        prefix = "tetraspark-support-two/"
        assert all(name.startswith(prefix) for name in tar.getnames())
        return {
            name.removeprefix(prefix): file.read()
            for name in tar.getnames()
            if (file := tar.extractfile(name))
        }


def packed(gathered: Gathered, redactor: Redactor) -> bytes:
    made = (gathered.sources, gathered.missing, gathered.findings)
    return pack("two", *made, redactor, MADE)[0]


def test_everything_is_there(gathered: Gathered) -> None:
    names = {source.name for source in gathered.sources}
    node = "nodes/spark1"
    assert names >= {
        "site.toml",
        "line/plan.json",
        "line/state.json",
        "line/rank0.log",
        "line/rank0.exit",
        "line/status.json",
        "line/receipts.jsonl",
        f"{node}/uname.txt",
        f"{node}/os-release.txt",
        f"{node}/docker-version.txt",
        f"{node}/docker-info.txt",
        f"{node}/meminfo.txt",
        f"{node}/buddyinfo.txt",
        f"{node}/journal.txt",
        f"{node}/journal-previous-boot.txt",
        f"{node}/pstore.txt",
        f"{node}/uptime.txt",
        f"{node}/dmesg.txt",
        f"{node}/nvidia-smi.txt",
        f"{node}/fabric/infiniband.txt",
        f"{node}/fabric/ip-addr.json",
        f"{node}/containers/{CONTAINER}/inspect.json",
        f"{node}/containers/{CONTAINER}/log.txt",
    }
    assert "line/launcher" not in names
    (absent,) = gathered.missing
    assert absent.name == "nodes/spark2"
    assert "ssh failed: timed out" in absent.why


def test_every_source_was_planted(gathered: Gathered) -> None:
    without = {one.name for one in gathered.sources if PLANTED not in one.text}
    assert without == {"line/run.txt", "line/receipts.jsonl"}


def test_values_of_unknown_variables_are_hidden_and_logs_are_in_order(gathered: Gathered) -> None:
    texts = {source.name: source.text for source in gathered.sources}
    folder = f"nodes/spark1/containers/{CONTAINER}"
    (one,) = json.loads(texts[f"{folder}/inspect.json"])
    assert one["Config"]["Env"] == [
        f"NCCL_DEBUG={PLANTED}",
        "HF_TOKEN=[hidden]",
        "MY_OWN=[hidden]",
        "PATH=/bin",
    ]
    times = [line.split()[0] for line in texts[f"{folder}/log.txt"].splitlines()]
    assert times == sorted(times)
    assert len(times) == 3
    receipt = json.loads(texts["line/receipts.jsonl"])
    assert receipt == {"log": f"{folder}/log.txt", "tetraspark": "engine", "rank": 0}


KEYS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=32)
WRITERS: tuple[Callable[[str], str], ...] = (
    str,
    quote,
    lambda text: quote(text, safe=""),
    lambda text: json.dumps(text)[1:-1],
    lambda text: base64.b64encode(f"user:{text}".encode()).decode(),
    lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    lambda text: text.encode().hex(),
)


@settings(max_examples=40, deadline=None)
@given(KEYS.map(lambda text: f"Zq{text}"), st.sampled_from(WRITERS))
def test_a_secret_planted_in_every_source_is_in_none(
    gathered: Gathered, key: str, write: Callable[[str], str]
) -> None:
    written = write(key)
    told = [check for check in gathered.findings if PLANTED in check.observed]
    assert len(told) == 2
    planted = Gathered(
        tuple(Source(s.name, s.text.replace(PLANTED, written)) for s in gathered.sources),
        tuple(Missing(m.name, m.why.replace(PLANTED, written)) for m in gathered.missing),
        tuple(
            replace(
                check,
                observed=check.observed.replace(PLANTED, written),
                fix=check.fix.replace(PLANTED, written),
            )
            for check in told
        ),
    )
    sources = [s for s in planted.sources if written in s.text]
    assert len(sources) > 20
    files = unpacked(packed(planted, Redactor([key])))
    for name, text in files.items():
        assert written.encode() not in text, name
        assert key.encode() not in text, name


def test_the_index_lists_each_file_with_its_hash_and_what_is_missing(gathered: Gathered) -> None:
    files = unpacked(packed(gathered, Redactor()))
    index = json.loads(files.pop(INDEX))
    assert [one["name"] for one in index["files"]] == sorted(files)
    for one in index["files"]:
        text = files[one["name"]]
        assert (len(text), hashlib.sha256(text).hexdigest()) == (one["bytes"], one["sha256"])
    assert [one["name"] for one in index["missing"]] == ["nodes/spark2"]
    assert {one["id"] for one in index["findings"]} >= {"POWER.PREVIOUS_END", "MEMORY.GUARD"}
    assert index["made_at"].startswith("2026-")


def test_the_same_texts_make_the_same_bytes(gathered: Gathered) -> None:
    turned = Gathered(gathered.sources[::-1], gathered.missing[::-1], gathered.findings)
    assert packed(gathered, Redactor()) == packed(turned, Redactor())


def test_a_bundle_is_its_owners_and_never_replaces_a_file(tmp_path: Path) -> None:
    file = tmp_path / "b.tar.gz"
    write_new(file, b"one")
    assert file.stat().st_mode & 0o777 == 0o600
    with pytest.raises(UsageError, match="the file exists"):
        write_new(file, b"two")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="the file exists"):
        write_new(link, b"two")
    with pytest.raises(UsageError, match="cannot be written"):
        write_new(tmp_path / "no" / "folder", b"two")
    assert file.read_bytes() == b"one"
    assert not (tmp_path / "elsewhere").exists()


def test_a_long_log_keeps_both_ends_in_whole_lines() -> None:
    lines = [f"line {number} {'x' * 90}\n" for number in range(8000)]
    data = "".join(lines).encode()
    text = ends(data)
    kept = text.splitlines(keepends=True)
    assert kept[0] == lines[0]
    assert kept[-1] == lines[-1]
    cut = [line for line in kept if not line.startswith("line ")]
    assert len(cut) == 1
    left_out = int(cut[0].split()[1])
    assert left_out + len(text) - len(cut[0]) == len(data)
    assert ends(data[:HEAD_BYTES] + data[-TAIL_BYTES:], len(data)) == text
    assert ends(b"short") == "short"


def test_one_endless_line_is_left_out_for_it_could_hold_half_a_secret() -> None:
    assert ends(b"k" * (HEAD_BYTES + TAIL_BYTES + 1)).startswith("[... 327681 bytes left out")
