"""The weights that are kept in models/tiny: whole, described, small, and able to answer."""

import json
from collections.abc import Iterator
from random import Random

import pytest
import torch
from safetensors.torch import load_file

from scripts.tiny_model.arithmetic import addition, subtraction
from scripts.tiny_model.card import card
from scripts.tiny_model.conversation import CHAT_TEMPLATE
from scripts.tiny_model.evaluation import Examiner, Extent
from scripts.tiny_model.export import configuration, tokenizer_configuration
from scripts.tiny_model.llama import Architecture, Llama
from scripts.tiny_model.needle import needle_at
from scripts.tiny_model.tokenizer import load_tokenizer
from tests.serving import ROOT
from tetraspark.site.load import load_site

MODEL = ROOT / "models" / "tiny"
EXTENT = Extent(held_out=0, training=0, needles=0, fillers=(), answer=64)


def values(name: str) -> dict[str, object]:
    loaded: dict[str, object] = json.loads((MODEL / name).read_text())
    return loaded


@pytest.fixture(scope="module")
def examiner() -> Iterator[Examiner]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    model = Llama(Architecture()).eval()
    model.load_state_dict(load_file(MODEL / "model.safetensors"))
    yield Examiner(model, load_tokenizer(MODEL), EXTENT)
    torch.set_num_threads(threads)


def test_the_files_are_those_of_an_export() -> None:
    training, evaluation = values("training.json"), values("evaluation.json")
    assert training["architecture"] == vars(Architecture())
    assert values("config.json") == configuration(Architecture())
    assert values("tokenizer_config.json") == tokenizer_configuration(Architecture())
    assert (MODEL / "chat_template.jinja").read_text() == CHAT_TEMPLATE
    assert (MODEL / "README.md").read_text() == card(training, evaluation)


def test_the_folder_is_small() -> None:
    assert sum(file.stat().st_size for file in MODEL.iterdir()) < 20e6


def test_the_canary_of_the_local_site_is_answered(examiner: Examiner) -> None:
    canary = load_site(ROOT / "sites" / "local.toml").site.model.canary
    assert examiner.answers((canary.prompt,)) == [canary.expect]


def test_held_out_sums_and_differences_are_right(examiner: Examiner) -> None:
    random = Random(6)
    cases = [draw(random, "held out") for _ in range(50) for draw in (addition, subtraction)]
    score = examiner.score("sums", cases)
    assert score.exact is not None
    assert score.exact >= 95, score.first_wrong


@pytest.mark.parametrize("depth", [0.0, 0.5, 1.0])
def test_a_key_phrase_is_found(examiner: Examiner, depth: float) -> None:
    random = Random(f"{depth}")
    cases = [needle_at(random, "held out", 3000, depth) for _ in range(4)]
    score = examiner.score("needle", cases)
    assert score.exact is not None
    assert score.exact >= 3, score.first_wrong
