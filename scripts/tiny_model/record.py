"""What a run leaves in its folder: weights, tokenizer, and two records as JSON."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from scripts.tiny_model.evaluation import Evaluation
from scripts.tiny_model.llama import Architecture
from scripts.tiny_model.training import Settings, Trained

TRAINING, EVALUATION, WEIGHTS = "training.json", "evaluation.json", "weights.pt"


@dataclass(frozen=True)
class Record:
    """How the weights were made."""

    architecture: Architecture
    parameters: int
    settings: Settings
    rows: dict[int, int]  # texts of the corpus, by row length
    trained: Trained
    device: str
    torch: str
    command: str


def write(folder: Path, name: str, values: Record | Evaluation) -> None:
    """Write a record to the folder of the run."""
    text = json.dumps(asdict(values), indent=1, ensure_ascii=False)
    (folder / name).write_text(text + "\n", encoding="utf-8")


def read(folder: Path, name: str) -> dict[str, Any]:
    """Return a record of a run as JSON values."""
    values: dict[str, Any] = json.loads((folder / name).read_text(encoding="utf-8"))
    return values
