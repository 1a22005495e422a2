"""A whole run in small, on the CPU: the loss falls, and what it leaves loads and is described."""

import json
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from scripts.tiny_model.__main__ import main
from scripts.tiny_model.card import card
from scripts.tiny_model.evaluation import Evaluation
from scripts.tiny_model.llama import Architecture
from scripts.tiny_model.record import Record
from scripts.tiny_model.run import TRIAL, Plan, examine, run
from scripts.tiny_model.training import Settings

SIZES = Architecture(hidden=64, intermediate=128, layers=2)
STEPS = 24


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run")


@pytest.fixture(scope="module")
def record(folder: Path) -> Record:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # Two that wait for each other on busy cores are many times slower.
    try:
        return run(Plan(folder, SIZES, TRIAL, torch.device("cpu"), 5.0, STEPS, "a trial"))
    finally:
        torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def evaluation(folder: Path, record: Record) -> Evaluation:
    return examine(folder, torch.device("cpu"), TRIAL.extent)


@pytest.fixture(scope="module")
def exported(folder: Path, evaluation: Evaluation) -> Path:
    assert main(["export", str(folder), str(folder / "model")]) == 0
    return folder / "model"


def test_the_loss_falls(record: Record) -> None:
    assert record.trained.steps == STEPS
    assert 6.8 < record.trained.first_loss < 7.1  # ln(1024) = 6.93: it starts knowing nothing.
    assert record.trained.last_loss < record.trained.first_loss - 0.7


@torch.inference_mode()
def test_the_exported_model_answers_as_the_evaluation_says(
    exported: Path, record: Record, evaluation: Evaluation
) -> None:
    tokenizer = AutoTokenizer.from_pretrained(exported)
    model = AutoModelForCausalLM.from_pretrained(exported)
    assert model.dtype == torch.bfloat16
    assert model.num_parameters() == record.parameters
    for question, answer in evaluation.samples[:6]:
        messages = [{"role": "user", "content": question}]
        prompt = tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, return_tensors="pt"
        )
        made = model.float().generate(**prompt, max_new_tokens=TRIAL.extent.answer, do_sample=False)
        text = tokenizer.decode(made[0, prompt["input_ids"].shape[1] :], skip_special_tokens=True)
        assert text == answer


def test_the_card_tells_the_records(exported: Path, record: Record) -> None:
    training = json.loads((exported / "training.json").read_text())
    values = json.loads((exported / "evaluation.json").read_text())
    text = (exported / "README.md").read_text()
    assert text == card(training, values)
    assert f"{record.parameters:,} parameters" in text
    assert f"{record.trained.steps:,} steps" in text
    values["held_out"][0] |= {"cases": 400, "exact": 399}
    values["needles"][2][2] |= {"cases": 8, "exact": 5}
    told = card(training, values)
    assert "| addition | 99.8 % |" in told
    assert "62.5 %" in told


def test_the_rate_warms_up_and_ends_near_nothing() -> None:
    settings = Settings(1, minutes=1, steps=None, warmup=10, batch_divisor=1, rate=1.0)
    assert settings.rate_at(0, 0) == pytest.approx(0.1)
    assert settings.rate_at(20, 0) == pytest.approx(1)
    assert settings.rate_at(20, 0.5) == pytest.approx(0.505)
    assert settings.rate_at(20, 1.0) == settings.rate_at(20, 1.5) == pytest.approx(0.01)


def test_a_folder_that_is_no_run_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(tmp_path), str(tmp_path / "model")]) == 2
    assert capsys.readouterr().err.startswith(f"{tmp_path / 'training.json'}: no such file")
    assert main(["evaluate", "--out", str(tmp_path), "--device", "cpu", "--trial"]) == 2


def test_a_machine_without_a_gpu_is_told_what_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit, match="sees no GPU; wanted: one, or --device cpu --trial"):
        main(["train", "--out", str(tmp_path)])
