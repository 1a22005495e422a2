"""A communicator's state is written again once it can be."""

import json
import os
from pathlib import Path

from tests.serving import eventually
from tetraspark.engine.progress import progress_path, write_in_background


def test_a_state_that_could_not_be_written_is_written_later(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    path = progress_path(folder, 2)
    asked: list[int] = []

    def state() -> dict[str, object]:
        asked.append(1)
        return {"operations": len(asked)}

    write_in_background(path, state)
    assert eventually(lambda: len(asked) > 1, 5)
    folder.mkdir()
    assert eventually(path.exists, 5)
    told = json.loads(path.read_text())
    assert told["pid"] == os.getpid()
    assert told["operations"] > 2
