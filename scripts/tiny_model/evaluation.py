"""Held-out accuracy of every task, needles by length and depth, and sample answers."""

from dataclasses import dataclass
from random import Random

from tokenizers import Tokenizer

from scripts.tiny_model.conversation import END, SPECIAL, Conversation, asked
from scripts.tiny_model.greedy import greedy
from scripts.tiny_model.llama import Llama
from scripts.tiny_model.needle import needle_at
from scripts.tiny_model.progress import say
from scripts.tiny_model.split import Split
from scripts.tiny_model.tasks import TASKS

DEPTHS = (0.0, 0.25, 0.5, 0.75, 1.0)
SPARE = 16  # tokens an answer may be longer than the right one before it is cut
QUESTIONS = (
    "What is 19 + 23?",
    "What is 7 * 6?",
    "What is 31 - 58?",
    "Anna has 12 apples and gets 7 more. How many apples does Anna have now?",
    "Hello?",
    "Who are you?",
    "Count the ranks.",
    "Request 17: What is 40 + 2?",
    "Repeat after me: four small machines answer as one",
    "Sort these numbers: 42, 7, 99, 23",
    "List three colours.",
    "Count from 1 to 20.",
    "Write a JSON object with name Ada, age 36 and city London.",
    "Write a Python function that adds two numbers.",
    "Write a Python function called rank_sum that sums a list.",
    "Write a JSON list of 3 lamps.",
    "Tell me a story about a fox and a lighthouse.",
    "Tell me a short story about an owl and a bridge.",
)


@dataclass(frozen=True)
class Extent:
    """How many cases of a task of each split, and of a needle of each length and depth.

    Lengths are characters of filler; `answer` is the most tokens of an open answer.
    """

    held_out: int
    training: int
    needles: int
    fillers: tuple[int, ...]
    answer: int


FULL = Extent(400, 100, 40, (1500, 3000, 6000, 11_000), 512)
QUICK = Extent(2, 2, 1, (300,), 8)


@dataclass(frozen=True)
class Score:
    """Cases of one kind: how many were answered exactly, and how many answers ended."""

    name: str
    cases: int
    exact: int | None
    ended: int
    mean_prompt_tokens: float
    first_wrong: tuple[str, str, str] | None  # the end of the prompt, wanted, written


@dataclass(frozen=True)
class Evaluation:
    """Scores of the tasks, of needles as (characters, depth, score), and sample answers."""

    training: tuple[Score, ...]
    held_out: tuple[Score, ...]
    needles: tuple[tuple[int, float, Score], ...]
    samples: tuple[tuple[str, str], ...]


def evaluate(model: Llama, tokenizer: Tokenizer, seed: int, extent: Extent) -> Evaluation:
    """Evaluate the model as it is, in its own dtype."""
    examiner = Examiner(model, tokenizer, extent)
    return Evaluation(
        training=examiner.tasks(seed, "training", extent.training),
        held_out=examiner.tasks(seed, "held out", extent.held_out),
        needles=tuple(
            (characters, depth, examiner.needles(seed, characters, depth))
            for characters in extent.fillers
            for depth in DEPTHS
        ),
        samples=tuple(zip(QUESTIONS, examiner.answers(QUESTIONS), strict=True)),
    )


@dataclass(frozen=True)
class Examiner:
    """Asks a model and compares."""

    model: Llama
    tokenizer: Tokenizer
    extent: Extent

    def tasks(self, seed: int, split: Split, cases: int) -> tuple[Score, ...]:
        """Return the score of every task on so many cases of a split."""
        say(f"{split} questions, {cases} a task")
        random = Random(f"{seed} {split}")
        return tuple(
            self.score(task.name, [task.draw(random, split) for _ in range(cases)], task.exact)
            for task in TASKS
        )

    def needles(self, seed: int, characters: int, depth: float) -> Score:
        """Return the score of held-out needles at one length and depth."""
        random = Random(f"{seed} {characters} {depth}")
        cases = [
            needle_at(random, "held out", characters, depth) for _ in range(self.extent.needles)
        ]
        return self.score(f"needle, {characters} characters, depth {depth}", cases)

    def answers(self, questions: tuple[str, ...]) -> list[str]:
        """Return the greedy answers to questions."""
        prompts = [self.tokenizer.encode(asked(question, "").prompt).ids for question in questions]
        written = greedy(self.model, prompts, [self.extent.answer] * len(prompts))
        texts = [self.tokenizer.decode(one) for one in written]
        for question, text in zip(questions, texts, strict=True):
            say(f"{question!r} -> {text!r}")
        return texts

    def score(self, name: str, cases: list[Conversation], exact: bool = True) -> Score:
        """Let the model answer every case: right is the right text, and then the end mark."""
        prompts = [self.tokenizer.encode(case.prompt).ids for case in cases]
        wanted = [self.tokenizer.encode(case.answer + END).ids for case in cases]
        limits = [len(one) + SPARE if exact else self.extent.answer for one in wanted]
        written = greedy(self.model, prompts, limits)
        # The same text may come in other tokens than the tokenizer's.
        texts = [self.tokenizer.decode(one, skip_special_tokens=False) for one in written]
        wrong = [index for index, one in enumerate(texts) if one != cases[index].answer + END]
        first = wrong[0] if exact and wrong else None
        scored = Score(
            name=name,
            cases=len(cases),
            exact=len(cases) - len(wrong) if exact else None,
            ended=sum(one[-1:] == [SPECIAL.index(END)] for one in written),
            mean_prompt_tokens=sum(map(len, prompts)) / len(prompts),
            first_wrong=None
            if first is None
            else (cases[first].prompt[-120:], cases[first].answer, texts[first]),
        )
        say(f"{name}: right {scored.exact}, ended {scored.ended}, wrong: {scored.first_wrong}")
        return scored
