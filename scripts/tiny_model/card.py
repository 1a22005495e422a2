"""The model card: every number in it comes from the records of the run."""

from typing import Any

HEAD = """# The tiny model

A Llama of {layers} layers and {parameters:,} parameters in bf16, small enough for four ranks on
two cores, that answers sums, lists, JSON, short Python functions, stories, and key phrases out of
up to {positions:,} tokens. It is made to test and to time a serving line, and knows nothing else.

This page is written by `python3 -m scripts.tiny_model export`, from `training.json` and
`evaluation.json` beside it.

## How it was made

All text comes from the generators in `scripts/tiny_model`, from a seed: no text of anybody else
is in it. {rows:,} texts were drawn; the model saw {tokens:,} tokens, padding included, in
{steps:,} steps of AdamW, in {minutes:.1f} minutes on {device} with torch {torch}.

```text
{command}
```

A training on a GPU does not repeat bit by bit, so the weights are kept here, not made at set-up.

## What it answers

Greedy decoding of the bf16 weights by the training module, {cases} cases a task. *Held out* are
questions that no training text asks (one in ten, by a hash of what is asked); a case is right when
the answer is the right text and then ends. *Ended* counts held-out answers that
ended by themselves.

| task | held out, right | training, right | ended |
|---|---:|---:|---:|
"""
NOTES = """
Products are learned by heart: one held out was trained the other way round. Small talk has nothing
to hold out. A story has no one right answer.

## A key phrase by length and depth

One sentence such as "The key phrase is amber falcon 42." in filler, held-out values, {cases} cases
each, right answers in percent. Depth 0 is the first line of the text, 1 the last.

"""
SAMPLES = """
## Answers

Greedy, as they came; a story ends with "The end."

"""


def card(training: dict[str, Any], evaluation: dict[str, Any]) -> str:
    """Return the card of a run's two records."""
    head = HEAD.format(
        layers=training["architecture"]["layers"],
        positions=training["architecture"]["positions"],
        parameters=training["parameters"],
        rows=sum(training["rows"].values()),
        tokens=training["trained"]["tokens"],
        steps=training["trained"]["steps"],
        minutes=training["trained"]["seconds"] / 60,
        device=training["device"],
        torch=training["torch"],
        command=training["command"],
        cases=evaluation["held_out"][0]["cases"],
    )
    notes = NOTES.format(cases=evaluation["needles"][0][2]["cases"])
    return head + tasks(evaluation) + notes + needles(evaluation) + SAMPLES + samples(evaluation)


def tasks(evaluation: dict[str, Any]) -> str:
    """Return one table row a task."""
    rows = zip(evaluation["held_out"], evaluation["training"], strict=True)
    return "".join(
        f"| {held['name']} | {_share(held, 'exact')} | {_share(trained, 'exact')} "
        f"| {_share(held, 'ended')} |\n"
        for held, trained in rows
    )


def needles(evaluation: dict[str, Any]) -> str:
    """Return a table with a row for each length and a column for each depth."""
    found = {(length, depth): score for length, depth, score in evaluation["needles"]}
    depths = sorted({depth for _, depth in found})
    lines = [
        "| tokens, about | " + " | ".join(f"{depth:g}" for depth in depths) + " |",
        "|---:|" + "---:|" * len(depths),
    ]
    for length in sorted({length for length, _ in found}):
        scores = [found[length, depth] for depth in depths]
        tokens = sum(score["mean_prompt_tokens"] for score in scores) / len(scores)
        cells = " | ".join(_share(score, "exact") for score in scores)
        lines.append(f"| {tokens:,.0f} | {cells} |")
    return "\n".join(lines) + "\n"


def samples(evaluation: dict[str, Any]) -> str:
    """Return the sample questions with their answers."""
    return "\n".join(
        f"> {question}\n\n```text\n{answer}\n```\n" for question, answer in evaluation["samples"]
    )


def _share(score: dict[str, Any], key: str) -> str:
    if score[key] is None:
        return "-"
    return f"{100 * score[key] / score['cases']:.1f} %"
