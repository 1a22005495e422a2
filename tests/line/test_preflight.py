import dataclasses
import shutil
import socket
from pathlib import Path

import pytest

from tetraspark.errors import UsageError
from tetraspark.fleet.port import free_ports
from tetraspark.line.plan import Plan
from tetraspark.line.preflight import preflight


@pytest.fixture
def ready(plan: Plan, tmp_path: Path) -> Plan:
    model = shutil.copytree(plan.model, tmp_path / "model")
    return dataclasses.replace(plan, model=str(model), port=free_ports(1)[0])


def test_the_bundled_model_and_a_free_port_pass(ready: Plan) -> None:
    preflight(ready)


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("config.json", "config.json: missing"),
        ("tokenizer.json", "tokenizer.json: missing"),
        ("model.safetensors", "no *.safetensors"),
        ("chat_template.jinja", "no chat template"),
    ],
)
def test_an_incomplete_model_is_refused_by_file(ready: Plan, file: str, said: str) -> None:
    (Path(ready.model) / file).unlink()
    with pytest.raises(UsageError) as caught:
        preflight(ready)
    assert said in str(caught.value)


def test_a_template_inside_the_tokenizer_configuration_counts(ready: Plan) -> None:
    (Path(ready.model) / "chat_template.jinja").unlink()
    (Path(ready.model) / "tokenizer_config.json").write_text('{"chat_template": "x"}')
    preflight(ready)


def test_all_problems_are_told_at_once(ready: Plan) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", ready.port))
        server.listen()
        with pytest.raises(UsageError) as caught:
            preflight(dataclasses.replace(ready, model="/no/such/model"))
    assert len(caught.value.problems) == 2
    assert "no such folder" in str(caught.value)
    assert f"127.0.0.1:{ready.port}: port taken by pid" in str(caught.value)
