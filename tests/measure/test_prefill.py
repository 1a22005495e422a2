"""Prefill and needle: what is real text, how prompts get their length, what is not believed."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.measure.synthetic import Script, serving
from tetraspark.errors import RunError, UsageError
from tetraspark.measure.corpus import Corpus, filler, is_filler, library, of_file
from tetraspark.measure.needle import Needle, haystack, measure_needle, phrase_of
from tetraspark.measure.prefill import QUESTION, judge, measure_prefill
from tetraspark.measure.reader import Piece
from tetraspark.measure.sized import Density, measure_density
from tetraspark.measure.stream import Trace

LIBRARY = library()
SOUND = Trace(0.0, 2.0, (Piece(2.0, "a", 1),), "length", 4096, 1, 0)


def phrase(prompt: str) -> str:
    """Answer as a model that finds the phrase."""
    return prompt.partition("key phrase is ")[2].partition(".")[0] + " "


def test_L64_filler_is_told_from_real_text() -> None:
    real = LIBRARY.text(40_000, 1)
    assert not is_filler(real)
    assert is_filler(filler(40_000, 1))
    fault = "filler under the name of real text"
    assert judge(SOUND, 4096, "real", filler(40_000, 1)).faults == (fault,)
    assert judge(SOUND, 4096, "filler", filler(40_000, 1)).faults == ()
    assert judge(SOUND, 4096, "real", real).faults == ()


def test_L65_a_cached_prompt_is_no_measurement() -> None:
    (fault,) = judge(replace(SOUND, cached_tokens=4000), 4096, "real", LIBRARY.text(99, 1)).faults
    assert fault == "4000 tokens came out of the prefix cache"


def test_texts_begin_otherwise_and_repeat_by_seed() -> None:
    texts = [LIBRARY.text(5000, seed) for seed in range(20)]
    assert len({text[:24] for text in texts}) == 20
    assert LIBRARY.text(5000, 3) == texts[3]
    assert all(len(text) == 5000 for text in texts)


def test_a_text_longer_than_the_corpus_does_not_repeat_a_paragraph() -> None:
    small = Corpus("small", tuple(f"paragraph {number} " * 8 for number in range(5)))
    paragraphs = small.text(3000, 0).split("\n\n")
    assert len(paragraphs) > 6
    assert len(set(paragraphs)) == len(paragraphs)


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "book.txt"
    file.write_text("\n\n".join(LIBRARY.paragraphs[:20]))
    assert of_file(file).name.startswith("book.txt (")
    file.write_text("the " * 5000)
    with pytest.raises(UsageError, match="one word over and over"):
        of_file(file)
    with pytest.raises(UsageError, match="no such file"):
        of_file(tmp_path / "absent")


@pytest.mark.parametrize(
    ("prompt_tokens", "words"),
    [(None, "no usage.prompt_tokens"), (2000, "2000 tokens, not about 4096")],
)
def test_a_prompt_of_another_length_is_told(prompt_tokens: int | None, words: str) -> None:
    wrong = replace(SOUND, prompt_tokens=prompt_tokens)
    (fault,) = judge(wrong, 4096, "real", LIBRARY.text(500, 1)).faults
    assert words in fault


def test_the_rate_is_tokens_over_the_time_to_the_first() -> None:
    assert judge(SOUND, 4096, "real", LIBRARY.text(500, 1)).tokens_per_second == 2048


def test_density_needs_a_server_that_counts() -> None:
    with serving(Script(usage=False)) as server, pytest.raises(RunError, match="prompt_tokens"):
        measure_density(server.api, lambda size: "x" * size, 5)


def test_a_server_whose_count_does_not_grow_is_refused() -> None:
    with (
        serving(Script(prompt_tokens=500)) as server,
        pytest.raises(RunError, match="500 for twice as much"),
    ):
        measure_density(server.api, lambda size: "x" * size, 5)


def test_density_gives_the_characters_of_a_length() -> None:
    assert Density(4.0, 10).characters(1010) == 4000


def test_rows_come_by_text_and_length_with_the_warm_up_dropped() -> None:
    with serving(Script(pieces=1)) as server:
        rows = list(measure_prefill(server.api, LIBRARY, (512, 256), ("real", "filler"), 2, 0, 5))
        prompts = server.prompts
    assert [(row.text, row.wanted_tokens, row.valid) for row in rows] == [
        ("real", 256, True),
        ("real", 512, True),
        ("filler", 256, True),
        ("filler", 512, True),
    ]
    assert all(len(row.requests) == 2 for row in rows)
    drawn = [int(text.partition("part ")[2].partition(".")[0]) for text in prompts[:8]]
    assert drawn == [-2000, -4000, 1, 2, 3, 4, 5, 6]
    assert prompts[8] == filler(2000, -6 - 2000) + QUESTION
    assert len({text[:24] for text in prompts}) == len(prompts) == 2 * (2 + 2 * 3)


def test_a_text_that_comes_out_too_short_or_long_makes_way_for_another() -> None:
    places = [0]

    def count(prompt: str) -> int:
        places[0] += 1
        return len(prompt) // (4 if places[0] % 3 else 8)

    with serving(Script(pieces=1, count=count)) as server:
        (row,) = measure_prefill(server.api, LIBRARY, (256,), ("real",), 5, 0, 5)
        prompts = server.prompts
    assert row.valid
    assert len(row.requests) == 5
    assert len({text[:24] for text in prompts}) == len(prompts) > 2 + 6


def test_a_density_that_is_wrong_for_short_texts_is_corrected_by_them() -> None:
    def count(prompt: str) -> int:
        return len(prompt) // (4 if len(prompt) > 1900 else 8)

    with serving(Script(pieces=1, count=count)) as server:
        (row,) = measure_prefill(server.api, LIBRARY, (200,), ("real",), 2, 0, 5)
    assert row.valid


def test_a_length_that_no_text_has_is_told_after_a_few() -> None:
    with serving(Script(pieces=1, count=lambda text: min(len(text) // 4, 1100))) as server:
        (row,) = measure_prefill(server.api, LIBRARY, (2000,), ("real",), 1, 0, 5)
    assert row.requests[0].faults == ("1100 tokens, not about 2000",)


@pytest.mark.parametrize("depth", [0.0, 0.5, 1.0])
def test_the_phrase_stands_at_its_depth(depth: float) -> None:
    text = haystack(LIBRARY, 40_000, depth, "amber falcon 42", 1)
    place = text.index("The key phrase is amber falcon 42.") / len(text)
    assert place == pytest.approx(depth, abs=0.12)
    assert text.endswith("What is the key phrase?")
    assert text.count("amber falcon") == 1


@pytest.mark.parametrize(
    ("answer", "error", "found"),
    [
        ("It is Amber Falcon 42.", None, True),
        ("amber falcon 4", None, False),
        ("amber falcon 42", "cut", False),
    ],
)
def test_a_phrase_is_found_whole_or_not(answer: str, error: str | None, found: bool) -> None:
    case = Needle(4096, 0.5, "amber falcon 42", answer, 4000, 0, 1.0, error)
    assert case.found is found


@pytest.mark.parametrize(
    "answer",
    [
        "amber falcon 421",
        "clamber falcon 42",
        "amber falcon 42.5",
        "amber falcon 42\n\nThe text",
        "amber falcon 42 and " * 20,
    ],
)
def test_a_phrase_within_something_longer_is_not_found(answer: str) -> None:
    case = Needle(4096, 0.5, "amber falcon 42", answer, 4000, 0, 1.0, None)
    assert not case.found


def test_a_text_of_another_length_finds_nothing() -> None:
    case = Needle(131072, 0.5, "amber falcon 42", "amber falcon 42", 4000, 0, 1.0, None)
    assert (case.found, case.faults) == (False, ("4000 tokens, not about 131072",))


def test_a_haystack_whose_length_was_guessed_wrong_is_corrected() -> None:
    def count(prompt: str) -> int:
        return len(prompt) // (4 if len(prompt) > 1900 else 8)

    with serving(Script(reply=phrase, delay=0, finish="stop", count=count)) as server:
        cases = list(measure_needle(server.api, LIBRARY, (200,), (0.0, 1.0), 2, 0, 5))
        prompts = server.prompts
    assert [(case.faults, case.found) for case in cases] == [((), True)] * 4
    assert len({case.phrase for case in cases}) == 4
    assert len({text[:24] for text in prompts}) == len(prompts) == 2 + 4 + 1


def test_a_haystack_of_a_length_that_no_text_has_is_told() -> None:
    script = Script(reply=phrase, delay=0, count=lambda text: min(len(text) // 4, 1100))
    with serving(script) as server:
        (case,) = measure_needle(server.api, LIBRARY, (2000,), (0.5,), 1, 0, 5)
    assert (case.found, case.faults) == (False, ("1100 tokens, not about 2000",))


def test_a_phrase_in_the_reasoning_is_no_answer() -> None:
    corpus = Corpus("small", tuple(f"paragraph {number} " * 20 for number in range(20)))
    with serving(Script(reply=phrase, delay=0, finish="stop")) as server:
        found = list(measure_needle(server.api, corpus, (512,), (0.5,), 1, 0, 5))
    with serving(Script(reply=phrase, delay=0, finish="stop", reasons=True)) as server:
        thought = list(measure_needle(server.api, corpus, (512,), (0.5,), 1, 0, 5))
    assert ([case.found for case in found], [case.found for case in thought]) == ([True], [False])


def test_no_text_is_no_first_token() -> None:
    silent = replace(SOUND, pieces=())
    assert judge(silent, 4096, "real", LIBRARY.text(500, 1)).faults == ("no first token",)


def test_phrases_differ_by_case() -> None:
    assert len({phrase_of(seed) for seed in range(50)}) > 40
