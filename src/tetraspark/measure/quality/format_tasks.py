"""Tasks whose answer has a form to keep. The first six the bundled tiny model knows, too."""

from tetraspark.measure.quality.rules import (
    Exactly,
    Items,
    Lines,
    Members,
    Numbers,
    Rows,
    Rule,
    Whole,
    Without,
    Words,
)
from tetraspark.measure.quality.task import Format, Task

ALONE = " Answer with that alone."
MAX_TOKENS = 384
COLOURS = frozenset(
    (
        "red",
        "green",
        "blue",
        "yellow",
        "white",
        "black",
        "orange",
        "purple",
        "violet",
        "pink",
        "brown",
        "grey",
        "gray",
        "cyan",
        "teal",
        "indigo",
        "gold",
        "silver",
    )
)


def _task(number: int, prompt: str, *rules: Rule) -> Task:
    return Task(f"FORMAT.{number:03}", prompt, Format(rules), MAX_TOKENS)


FORMAT_TASKS = (
    _task(
        1,
        "Repeat after me: four small machines answer as one",
        Exactly("four small machines answer as one"),
    ),
    _task(2, "Sort these numbers: 42, 7, 99, 23", Numbers((7, 23, 42, 99))),
    _task(3, "Count from 1 to 20.", Numbers(tuple(range(1, 21)))),
    _task(4, "List three colours.", Members(3, COLOURS)),
    _task(
        5,
        "Name the first two of lantern, otter, bridge, whistle.",
        Items(("lantern", "otter")),
    ),
    _task(6, "Count from 31 to 24.", Numbers(tuple(range(31, 23, -1)))),
    _task(
        7,
        "Write this sentence in capital letters and change nothing else: The seal's 3 boats left"
        " at 6 a.m." + ALONE,
        Exactly("THE SEAL'S 3 BOATS LEFT AT 6 A.M."),
    ),
    _task(
        8,
        "Write the words plum, fig, Pear, date and apple one a line, in alphabetical order without"
        " regard to case, each as it is written here." + ALONE,
        Exactly("apple\ndate\nfig\nPear\nplum"),
    ),
    _task(
        9,
        'Write a CSV table with the header "name,note,count" and two rows: Lea with the note'
        ' small, red and the count 4; Jan with the note he said "no" and the count 12. Quote a'
        " field where CSV needs it." + ALONE,
        Rows(
            (("name", "note", "count"), ("Lea", "small, red", "4"), ("Jan", 'he said "no"', "12"))
        ),
    ),
    _task(
        10,
        "Give exactly five tips for a clean kitchen, one a line. Each line begins with its number,"
        " a bracket and a space, as in `1) `, and has no full stop. No other lines." + ALONE,
        Whole(r"1\) \S.*\n2\) \S.*\n3\) \S.*\n4\) \S.*\n5\) \S.*"),
        Without(r"\."),
        Lines(5),
    ),
    _task(
        11,
        "Write one sentence about the sea of exactly eleven words, which ends with a full stop."
        + ALONE,
        Whole(r"[A-Z][^.!?\n]*\."),
        Words(11),
        Without(r"\d"),
    ),
    _task(
        12,
        "Describe rain in one sentence of at least six words that does not hold the letter e."
        + ALONE,
        Without("e"),
        Whole(r"\S+(?: \S+){5,}[.!?]"),
    ),
    _task(
        13,
        "Write four lines of two or more words each, of which the first letters, read downwards,"
        " are R, I, N and G." + ALONE,
        Whole(r"R\S* .*\S.*\nI\S* .*\S.*\nN\S* .*\S.*\nG\S* .*\S.*"),
        Lines(4),
    ),
    _task(
        14,
        "Write these dates as YYYY-MM-DD, one a line, the earliest first: 7 March 2021, 30 December"
        " 2019, 1 March 2021." + ALONE,
        Exactly("2019-12-30\n2021-03-01\n2021-03-07"),
    ),
    _task(
        15,
        "Write a Markdown table with the columns n and square for n from 1 to 4: a header line, a"
        " line of dashes and four rows. Each line begins and ends with |." + ALONE,
        Lines(6, r"\|.*\|"),
        Whole(r"\| *n *\| *square *\|\n\| *:?-+:? *\| *:?-+:? *\|\n(?:\| *\d+ *\| *\d+ *\|\n?){4}"),
        Numbers((1, 1, 2, 4, 3, 9, 4, 16)),
    ),
)
