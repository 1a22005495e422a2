"""Tasks whose answer is a number. The first eight the bundled tiny model knows, too."""

from tetraspark.measure.quality.task import How, Number, Task

MARK = " End with one line of the form `Answer: N`, N being the number alone."
SHORT, LONG = 64, 768


def _short(number: int, prompt: str, value: float, how: How = "new") -> Task:
    return Task(f"NUMBER.{number:03}", prompt, Number(value, how), SHORT)


def _long(number: int, prompt: str, value: float, within: float = 0.0) -> Task:
    return Task(f"NUMBER.{number:03}", prompt + MARK, Number(value, "marked", within), LONG)


NUMBER_TASKS = (
    _short(1, "What is 19 + 23?", 42),
    _short(2, "What is 31 - 58?", -27),
    _short(3, "What is 7 * 8?", 56),
    _short(4, "Calculate 64 + 29.", 93),
    _short(5, "Which number is larger, 17 or 71?", 71, "bare"),
    _short(6, "Which number is smaller, 38 or 83?", 38, "bare"),
    _short(7, "Anna has 12 apples and gets 7 more. How many apples does Anna have now?", 19),
    _short(8, "Hugo has 45 coins and gives 18 away. How many coins does Hugo have left?", 27),
    _long(9, "What is 4,387 times 269?", 1180103),
    _long(10, "What is the remainder of 2 to the power of 50 divided by 13?", 4),
    _long(
        11,
        "A pump fills a tank in 5 hours, another one in 20 hours, and an open drain empties the"
        " full tank in 12 hours. Both pumps run and the drain is open. How many hours does it take"
        " to fill the empty tank?",
        6,
    ),
    _long(
        12,
        "A train leaves at 09:47 and arrives at 13:22 on the same day. It stands still for 5"
        " minutes at each of 7 stations on the way. How many minutes does it drive?",
        180,
    ),
    _long(
        13,
        "A coat costs 240 coins. Its price rises by 25 percent and then falls by 25 percent. What"
        " does it cost now?",
        225,
    ),
    _long(
        14,
        "In a yard there are hens and goats with 31 heads and 88 legs together, all of them"
        " healthy. How many goats are there?",
        13,
    ),
    _long(
        15,
        "How many whole numbers from 1 to 1000 are divisible by 4 or by 6, but not by both?",
        250,
    ),
    _long(
        16,
        "Four machines pass a token around. The first takes 12 ms for it, and each of the others"
        " takes half as long again as the one before it. How many milliseconds does one round"
        " take?",
        97.5,
    ),
    _long(
        17,
        "A bag holds 5 red and 3 blue marbles. Two are drawn, the first one is not put back. What"
        " is the probability that both have the same colour? Give it as a decimal number with at"
        " least three places.",
        13 / 28,
        within=0.0006,
    ),
    _long(
        18,
        "Mara is three times as old as her son. In 12 years she will be twice as old as he will be"
        " then. How old is Mara today?",
        36,
    ),
    _long(
        19,
        "How many different words, with meaning or without, can be made of all letters of BALLOON?",
        1260,
    ),
    _long(
        20,
        "A rectangle is 7 cm longer than it is wide, and its diagonal is 13 cm long. What is its"
        " area in square centimetres?",
        60,
    ),
)
