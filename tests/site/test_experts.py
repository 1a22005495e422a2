"""`engine.ep`: what the expert kernels of an image can run is planned, the rest is refused."""

import json
from pathlib import Path

import pytest

from tetraspark.errors import Problem, UsageError
from tetraspark.site.experts import V41, Experts, read_experts
from tetraspark.site.load import load_source
from tetraspark.site.source import decode_source

SITES = Path(__file__).parents[2] / "sites"
SWITCH = (SITES / "four-sparks-switch.toml").read_text()
RING = (SITES / "four-sparks-ring.toml").read_text()
NODES = '\n[[nodes]]\nname = "more{}"\nhost = "10.9.0.{}"\nnfs_server = "10.22.0.1"\n'


def problems(text: str, folder: Path = SITES) -> tuple[Problem, ...]:
    try:
        load_source(decode_source(folder / "mine.toml", text.encode()))
    except UsageError as error:
        return error.problems
    return ()


def site(tp: int, ep: int | None, text: str = SWITCH) -> str:
    """Return a fleet of `tp` nodes; without `ep` the key is absent."""
    one = text.replace("ep = 4\n", "" if ep is None else f"ep = {ep}\n").replace(
        "tp = 4", f"tp = {tp}"
    )
    head, *nodes = one.split("[[nodes]]")
    rest = nodes[-1].partition("[model]")
    nodes[-1] = rest[0]
    nodes = nodes[:tp] + ["".join(NODES.format(n, n).split("[[nodes]]")) for n in range(tp - 4)]
    return "[[nodes]]".join([head, *nodes]) + rest[1] + rest[2]


@pytest.mark.parametrize(
    ("tp", "ep"), [(4, 2), (4, 4), (2, 1), (2, 2), (1, 1), (3, 1), (8, 4), (8, 8), (6, 2)]
)
def test_what_the_kernels_can_run_is_accepted(tp: int, ep: int) -> None:
    assert problems(site(tp, ep)) == ()


@pytest.mark.parametrize(
    ("tp", "ep", "seen", "fix"),
    [
        (4, 1, "2304 / 4 = 576 columns of each expert of DeepSeek-V4.1-Flash", "set ep = 2 or 4"),
        (8, 1, "2304 / 8 = 288 columns", "set ep = 4 or 8"),
        (8, 2, "2304 / 4 = 576 columns", "set ep = 4 or 8"),
        (5, 1, "2304 / 5 columns", "change tp"),
        (5, 5, "ep = 5 with 384 routed experts", "change tp"),
        (6, 6, "ep = 6 with 128 experts of the draft", "set ep = 1 or 2"),
    ],
)
def test_what_they_cannot_run_names_line_reason_and_what_fits(
    tp: int, ep: int, seen: str, fix: str
) -> None:
    text = site(tp, ep)
    (problem,) = problems(text)
    line = text[: text.index(f"\nep = {ep}")].count("\n") + 2
    assert problem.where == f"{SITES}/mine.toml:{line}"
    assert f"ep = {ep}" in problem.seen and seen in problem.seen
    assert problem.fix == fix


def test_an_absent_ep_is_one_and_is_told_at_its_section() -> None:
    text = site(4, None)
    (problem,) = problems(text)
    assert problem.where.endswith(f":{text[: text.index('[engine]')].count(chr(10)) + 1}")
    assert "ep = 1 with tp = 4" in problem.seen
    assert "a multiple of 128" in problem.wanted


def test_ep_that_does_not_divide_tp_is_told_once() -> None:
    (problem,) = problems(site(4, 3))
    assert problem.wanted == "ep that divides tp"
    assert problem.fix == "set ep = 2 or 4"


def test_other_kernels_are_not_judged() -> None:
    args = 'extra_args = ["--moe-runner-backend", "{}", '
    for backend, count in (("marlin", 0), ("auto", 1), ("flashinfer_mxfp4", 1)):
        text = site(4, 1).replace("extra_args = [", args.format(backend))
        assert len(problems(text)) == count
    assert (
        problems(
            site(4, 1).replace("extra_args = [", 'extra_args = ["--moe-runner-backend=triton", ')
        )
        == ()
    )


def test_b12x_runs_narrow_experts_in_the_branchs_images_only() -> None:
    adapter = 'DSV41_MOE_B12X_NEXT = "1"\n'
    (problem,) = problems(site(4, 1, RING))
    assert problem.fix == 'set ep = 2 or 4, or DSV41_MOE_B12X_NEXT = "1" in [env]'
    assert problems(site(4, 1, RING) + adapter) == ()
    narrow, unread = problems(site(4, 1, SWITCH) + adapter)
    assert narrow.fix == "set ep = 2 or 4" and "is not read" in unread.seen


def test_the_models_own_dimensions_are_used_where_they_can_be_read(tmp_path: Path) -> None:
    text = site(4, 1).replace('"~/models/DeepSeek-V4.1-Flash"', '"model"')
    assert len(problems(text, tmp_path)) == 1
    (tmp_path / "model").mkdir()
    config = {"moe_intermediate_size": 2048, "n_routed_experts": 256}
    (tmp_path / "model" / "config.json").write_text(json.dumps(config))
    assert problems(text, tmp_path) == ()
    config["moe_intermediate_size"] = 2304
    (tmp_path / "model" / "config.json").write_text(json.dumps({"text_config": config}))
    (problem,) = problems(text, tmp_path)
    assert f"each expert of {tmp_path}/model/config.json" in problem.seen


def test_a_model_without_experts_has_nothing_to_divide(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"hidden_size": 128}')
    assert read_experts(tmp_path) is None


@pytest.mark.parametrize("text", ["{", "[]", "null", '{"text_config": 3}', "\udcff", "[" * 100_000])
def test_a_config_that_cannot_be_read_is_taken_for_that_of_v41(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_bytes(text.encode(errors="surrogateescape"))
    assert read_experts(tmp_path) == V41


def test_v41_is_as_published() -> None:
    assert Experts(2304, 384, 128, "DeepSeek-V4.1-Flash") == V41


def test_a_local_line_runs_its_experts_on_the_cpu() -> None:
    local = (SITES / "local.toml").read_text()
    assert problems(local.replace("tp = 4", "tp = 4\nep = 1")) == ()
    assert problems(local.replace("tp = 4", "tp = 4\nep = 2")) == ()
