"""What a site may not ask for together with Engram."""

from pathlib import Path

import pytest

from tests.site.test_import_profile import SMALL
from tetraspark.errors import UsageError
from tetraspark.site.envfile import parse_envfile
from tetraspark.site.import_env import import_profile
from tetraspark.site.load import load_site

RING = (Path(__file__).parents[2] / "sites" / "four-sparks-ring.toml").read_text()
SPEED = '[speculative]\nalgorithm = "DSPARK"\nsps_table = "sps.json"\n\n'
PROFILE = SMALL + "ENGRAM_DIR=/data/engram\nSPEC_ALGO=DSPARK\nDSPARK_SPS_TABLE=/state/sps.json\n"


def test_L59b_a_speed_table_with_engram_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    text = RING.replace("[api]", SPEED + "[api]")
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        load_site(path)
    (problem,) = caught.value.problems
    line = text[: text.index("sps_table")].count("\n") + 1
    assert problem.where == f"{path}:{line}"
    assert problem.seen.startswith("`sps_table` with [engram]")
    assert "equal length" in problem.wanted
    path.write_text(text.replace('sps_table = "sps.json"\n', ""))
    assert load_site(path).site.speculative is not None


def test_L59b_an_imported_profile_loses_its_speed_table_and_says_so() -> None:
    result = import_profile(parse_envfile(Path(".env"), PROFILE.encode()), "four", "four.key")
    entries = {entry.name: entry for entry in result.report.entries}
    assert "sps_table" in entries["DSPARK_SPS_TABLE"].why
    document = result.draft.document()
    assert "sps_table" not in document["speculative"]
    assert document["engram"] == {"dir": "/data/engram"}
