"""The steps: `train` fills a run's folder and evaluates, `export` makes the model's folder."""

import argparse
import sys
from pathlib import Path

MODEL = Path(__file__).resolve().parents[2] / "models" / "tiny"


def main(argv: list[str]) -> int:
    """Run one step; return the exit code: 2 for what is missing, with a line that names it."""
    options = parser().parse_args(argv)
    try:
        if options.verb == "export":
            # Not at the top: the processes that draw the corpus import this file without torch.
            from scripts.tiny_model.export import export

            export(options.run, options.folder)
        else:
            on_device(options)
    except FileNotFoundError as error:
        print(f"{error.filename}: no such file; wanted: the folder of a run", file=sys.stderr)
        return 2
    return 0


def on_device(options: argparse.Namespace) -> None:
    """Train if asked to, and evaluate."""
    import torch

    from scripts.tiny_model.llama import Architecture
    from scripts.tiny_model.run import TRIAL, WHOLE, Plan, examine, run

    device, scale = torch.device(options.device), TRIAL if options.trial else WHOLE
    if device.type == "cuda" and not torch.cuda.is_available():
        raise SystemExit(
            "this torch sees no GPU; wanted: one, or --device cpu --trial to try all steps"
        )
    if options.verb == "train":
        command = f"python3 -m scripts.tiny_model train --out RUN --minutes {options.minutes:g}"
        sizes = Architecture()
        run(Plan(options.out, sizes, scale, device, options.minutes, options.steps, command))
    examine(options.out, device, scale.extent)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(prog="python3 -m scripts.tiny_model", description=__doc__)
    verbs = made.add_subparsers(dest="verb", required=True)
    train = verbs.add_parser("train", help="draw the corpus, train, evaluate")
    minutes = "until training ends, corpus included; evaluation comes after (%(default)s)"
    train.add_argument("--minutes", type=float, default=8.0, help=minutes)
    train.add_argument("--steps", type=int, help="end after so many steps, if that is sooner")
    evaluate = verbs.add_parser("evaluate", help="evaluate the weights of a run again")
    for verb in (train, evaluate):
        verb.add_argument("--out", type=Path, required=True, help="the run's folder")
        devices = ("cuda", "cpu")
        verb.add_argument("--device", choices=devices, default="cuda", help="(%(default)s)")
        verb.add_argument("--trial", action="store_true", help="a little of all, for a CPU")
    export = verbs.add_parser("export", help="write a model's folder from a run's")
    export.add_argument("run", type=Path, help="the run's folder")
    export.add_argument("folder", type=Path, nargs="?", default=MODEL, help="(%(default)s)")
    return made


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
