"""The site's [prefill_split] on its way into the ranks' environment, and where it is refused."""

from pathlib import Path

import pytest

from tests.line.docker_env import env_of
from tetraspark.engine.split_env import CONTEXT_FLOOR, ROWS_FLOOR, SplitSettings, split_settings
from tetraspark.errors import UsageError
from tetraspark.line.fleet_plan import fleet_plan
from tetraspark.site.load import LoadedSite, load_site
from tetraspark.site.schema import PrefillSplit

SITES = Path(__file__).parents[2] / "sites"


def load(folder: Path, addition: str, name: str = "four-sparks-switch", **swaps: str) -> LoadedSite:
    text = (SITES / f"{name}.toml").read_text()
    for old, new in swaps.items():
        assert old in text
        text = text.replace(old, new)
    file = folder / "site.toml"
    file.write_text(f"{text}\n{addition}\n")
    return load_site(file)


def test_every_rank_gets_both_thresholds_with_their_line(tmp_path: Path) -> None:
    loaded = load(tmp_path, "[prefill_split]\nmin_context = 65536")
    plan = fleet_plan(loaded)
    for rank in range(4):
        assert split_settings(env_of(plan, rank)) == SplitSettings(65_536, 1024)
    setting = next(one for one in plan.settings if one.name == "TETRASPARK_PREFILL_MIN_CONTEXT")
    line = int(setting.origin.where.rsplit(":", 1)[1])
    assert (tmp_path / "site.toml").read_text().splitlines()[line - 1] == "min_context = 65536"


def test_without_the_section_nothing_is_asked_for() -> None:
    plan = fleet_plan(load_site(SITES / "four-sparks-switch.toml"))
    assert split_settings(env_of(plan, 0)) is None


def test_the_floors_and_defaults_are_the_plugins() -> None:
    assert PrefillSplit() == PrefillSplit(min_context=CONTEXT_FLOOR, min_rows=ROWS_FLOOR)


@pytest.mark.parametrize(
    ("addition", "said"),
    [
        ("min_context = 32767", "32768"),
        ("min_rows = 1023", "1024"),
        ("min_columns = 1", "min_columns"),
        ("min_rows = 2048", "chunked_prefill_size = 1024: no step is ever split"),
    ],
)
def test_thresholds_that_cannot_be_are_refused(tmp_path: Path, addition: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        load(tmp_path, f"[prefill_split]\n{addition}")


def test_a_context_the_engine_never_sees_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="context_length = 16384: no step is ever split"):
        load(tmp_path, "[prefill_split]", **{"context_length = 1048576": "context_length = 16384"})


def test_an_engine_without_the_hooks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match='with recipe "canary-roce"'):
        load(tmp_path, "[prefill_split]", name="four-sparks-ring")


def test_a_local_line_is_refused_for_one_reason(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        load(tmp_path, "[prefill_split]", name="local")
    (problem,) = caught.value.problems
    assert problem.seen == '`prefill_split` is set but `kind` is "local"'


@pytest.mark.parametrize(
    "words",
    [
        '"--enable-dp-attention"',
        '"--attention-context-parallel-size", "2"',
        '"--attn-cp-size=4"',
        '"--dp-size", "2"',
        '"--data-par", "2"',
        '"--dp-size"',
    ],
)
def test_the_engines_own_division_of_attention_is_refused(tmp_path: Path, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        load(tmp_path, "[prefill_split]", **{"extra_args = [": f"extra_args = [{words}, "})
    (problem,) = caught.value.problems
    text = (tmp_path / "site.toml").read_text()
    line = text[: text.index("extra_args")].count("\n") + 1
    assert problem.where.endswith(f"site.toml:{line}")
    assert "beside [prefill_split]" in problem.seen


def test_one_data_parallel_rank_is_no_division(tmp_path: Path) -> None:
    words = {"extra_args = [": 'extra_args = ["--dp-size", "1", "--attn-cp-size=1", '}
    assert load(tmp_path, "[prefill_split]", **words).site.prefill_split is not None
