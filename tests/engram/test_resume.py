"""A pack that was cut off: it goes on, or says why not, and the bytes are the same."""

import fcntl
import json
import os
import random
import re
import resource
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.engram.checkpoint import ROWS, Made, make_checkpoint
from tests.engram.packing import contents, pack, pieces, problem, states
from tetraspark.engram.inside.files import locked
from tetraspark.engram.inside.pack import _amount
from tetraspark.engram.inside.refusal import Refusal
from tetraspark.engram.layout import Table
from tetraspark.engram.plan import PYTHON, local_plan
from tetraspark.engram.program import script
from tetraspark.engram.request import request, slices
from tetraspark.engram.run import Here, run_plan

KILL = """
import atexit, os, sys
calls, last = [0], {last}
def counted(call):
    def counting(*words, **more):
        calls[0] += 1
        if calls[0] == last:
            os.kill(os.getpid(), 9)
        return call(*words, **more)
    return counting
for name in "pwrite preadv fdatasync fsync replace unlink posix_fadvise ftruncate".split():
    setattr(os, name, counted(getattr(os, name)))
atexit.register(lambda: print(calls[0], file=sys.stderr))
"""


def killed(text: bytes, last: int) -> tuple[int, str]:
    """Run the program; kill it without warning at a call of the system, the `last`-th of some.

    Returns the exit code, and how many such calls there were if it came to its end.
    """
    program = KILL.format(last=last).encode() + text
    done = subprocess.run(PYTHON, input=program, capture_output=True, check=False)
    return done.returncode, done.stderr.decode()


def test_killed_at_any_moment_it_goes_on_and_ends_with_the_same_bytes(tmp_path: Path) -> None:
    rows = {1: 3000, 14: 2500}
    made = make_checkpoint(tmp_path / "model", 5, rows)
    tables = [Table(layer, count, 256, (0, count)) for layer, count in rows.items()]

    def program(folder: str) -> bytes:
        asked = request(
            "pack", str(made.path), str(tmp_path / folder), slices(tables, 0, 2, "rows")
        )
        return pieces(script(asked))

    code, count = killed(program("once"), 0)
    assert code == 0
    calls, wanted = int(count), contents(tmp_path / "once")
    assert len(wanted) == 4 and calls > 500
    moments = random.Random(7)
    # Again and again, then once at each of the last calls, where names change.
    for trial in range(2):
        kills = 0
        while (code := killed(program(f"trial{trial}"), moments.randint(1, calls // 2))[0]) != 0:
            assert code == -signal.SIGKILL
            kills += 1
            for layer, end in rows.items():
                name = tmp_path / f"trial{trial}" / f"engram-l{layer}-r0of2"
                if name.with_suffix(".json").exists():
                    size = name.with_suffix(".bin").stat().st_size
                    assert size == 4096 + 264 * (end // 2)
        assert kills >= 1
        assert contents(tmp_path / f"trial{trial}") == wanted
    for last in range(calls - 11, calls + 1):
        assert killed(program(f"last{last}"), last)[0] == -signal.SIGKILL
        assert killed(program(f"last{last}"), 0)[0] == 0
        assert contents(tmp_path / f"last{last}") == wanted


def full_disk(text: bytes, size: int) -> subprocess.CompletedProcess[bytes]:
    """Run the program where a file cannot grow beyond `size`."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return subprocess.run(PYTHON, input=text, capture_output=True, check=False, preexec_fn=limit)


def test_a_full_disk_is_told_and_costs_nothing_that_was_packed(made: Made, tmp_path: Path) -> None:
    text = (made.path / "config.json").read_text()
    plan = local_plan(text, str(made.path), str(tmp_path / "o"), 0, 1, "rows", "pack", False)
    program = pieces(script(plan.nodes[0].request))
    done = full_disk(program, 60_000)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 1
    assert events[-1]["event"] == "problem"
    assert events[-1]["where"].endswith("engram-l1-r0of1.bin.part")
    assert events[-1]["seen"] == "File too large"
    assert "the same command goes on" in events[-1]["wanted"]
    journal = json.loads((tmp_path / "o/engram-l1-r0of1.bin.part.json").read_text())
    assert 0 < journal["rows"] < ROWS[1]
    assert not list((tmp_path / "o").glob("*.bin"))
    assert states(pack(made.path, tmp_path / "o", 0, 1)) == ["packed", "packed"]
    data = (tmp_path / "o/engram-l1-r0of1.bin").read_bytes()
    assert data[4096:] == made.records(1, 0, ROWS[1])


def half_packed(made: Made, folder: Path) -> Path:
    """Pack until the disk is full; return the part that is left."""
    text = (made.path / "config.json").read_text()
    plan = local_plan(text, str(made.path), str(folder), 0, 1, "rows", "pack", False)
    assert full_disk(pieces(script(plan.nodes[0].request)), 60_000).returncode == 1
    return folder / "engram-l1-r0of1.bin.part"


def test_a_part_is_gone_on_with(made: Made, tmp_path: Path) -> None:
    """What is before the journal's row is not read from the checkpoint again."""
    half_packed(made, tmp_path)
    said: list[dict[str, Any]] = []
    text = (made.path / "config.json").read_text()
    plan = local_plan(text, str(made.path), str(tmp_path), 0, 1, "rows", "pack", False)
    report = run_plan(plan, Here(), lambda node, event: said.append(event.words))
    assert states(report) == ["packed", "packed"]
    resumed = [one for one in said if one.get("what") == "resume"]
    assert resumed and resumed[-1]["done"] == resumed[-1]["total"] > 4096


@pytest.mark.parametrize("damage", ["byte", "cut", "journal"])
def test_a_damaged_part_begins_anew(made: Made, tmp_path: Path, damage: str) -> None:
    part = half_packed(made, tmp_path)
    if damage == "byte":
        data = bytearray(part.read_bytes())
        data[5000] ^= 1
        part.write_bytes(data)
    elif damage == "cut":
        os.truncate(part, 6000)
    else:
        part.with_name(part.name + ".json").unlink()
    assert states(pack(made.path, tmp_path, 0, 1)) == ["packed", "packed"]
    data = bytearray((tmp_path / "engram-l1-r0of1.bin").read_bytes())
    assert data[4096:] == made.records(1, 0, ROWS[1])


def test_a_part_of_another_checkpoint_is_refused(made: Made, tmp_path: Path) -> None:
    half_packed(made, tmp_path / "o")
    other = make_checkpoint(tmp_path / "other", 9)
    path = other.path / "model-00001-of-00003.safetensors"
    path.write_bytes(path.read_bytes().replace(b'"pt"', b'"np"'))
    said = problem(pack(other.path, tmp_path / "o", 0, 1))
    assert "engram-l1-r0of1.bin.part.json: it is of another shard: sources" in said


def test_two_packs_of_a_shard_do_not_meet(made: Made, tmp_path: Path) -> None:
    pack(made.path, tmp_path, 1)
    with (tmp_path / ".engram-l14-r0of4.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert "another pack is at work" in problem(pack(made.path, tmp_path))
    assert states(pack(made.path, tmp_path)) == ["packed", "packed"]
    assert not list(tmp_path.glob(".engram-*"))


def test_a_lock_whose_file_has_gone_is_no_lock(tmp_path: Path) -> None:
    """Between opening and locking another one may end, and take the file away."""
    path, flock, gone = tmp_path / "lock", fcntl.flock, list[int]()

    def late(handle: int, how: int) -> None:
        if not gone:
            gone.append(path.stat().st_ino)
            path.unlink()
        flock(handle, how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tetraspark.engram.inside.files.fcntl.flock", late)
        with locked(path):
            assert path.exists()
            with pytest.raises(Refusal), locked(path):
                pass
            assert path.exists()
    assert not path.exists()


def test_too_little_room_is_refused_before_a_byte_is_written(made: Made, tmp_path: Path) -> None:
    text = (made.path / "config.json").read_text()
    plan = local_plan(text, str(made.path), str(tmp_path / "o"), 0, 1, "rows", "pack", False)
    program = script(plan.nodes[0].request).replace(b"16 << 20", b"1 << 62")
    done = subprocess.run(PYTHON, input=program, capture_output=True, check=False)
    found = json.loads(done.stdout.splitlines()[-1])
    assert done.returncode == 1
    assert " GiB for 2 shards" in found["wanted"]
    assert re.fullmatch(r"\d+\.\d\d [GM]iB free", found["seen"])
    assert (_amount(1 << 29), _amount(1 << 31)) == ("512.00 MiB", "2.00 GiB")
    assert contents(tmp_path / "o") == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not JSON"),
        ("[]", "not a JSON object"),
        ('{"identity": 5}', "not a manifest of ours"),
        ('{"rows": "x"}', "not a manifest of ours"),
    ],
)
def test_a_journal_that_says_nothing_is_refused_or_replaced(
    made: Made, tmp_path: Path, text: str, said: str
) -> None:
    part = half_packed(made, tmp_path)
    part.with_name(part.name + ".json").write_text(text)
    assert f"it is {said}" in problem(pack(made.path, tmp_path, 0, 1))
    assert states(pack(made.path, tmp_path, 0, 1, replace=True)) == ["packed", "packed"]


def test_ended_between_the_new_name_and_the_manifest(made: Made, tmp_path: Path) -> None:
    """The journal says that all is there, so nothing is copied again; it is hashed."""
    pack(made.path, tmp_path)
    wanted = contents(tmp_path)
    path = tmp_path / "engram-l1-r0of4.json"
    said = json.loads(path.read_text())
    sha256 = said.pop("sha256")
    del said["samples"]
    path.unlink()
    journal = {"identity": said, "rows": said["rows"][1], "sha256": sha256}
    (tmp_path / "engram-l1-r0of4.bin.part.json").write_text(json.dumps(journal))
    assert states(pack(made.path, tmp_path)) == ["whole", "packed"]
    assert contents(tmp_path) == wanted
