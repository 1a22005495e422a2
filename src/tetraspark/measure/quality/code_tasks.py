"""Tasks of code. The first eight the bundled tiny model knows, too."""

from tetraspark.measure.quality.task import Call, Code, Task

ALONE = " Answer with the Python code alone."
MAX_TOKENS = 1024


def _task(number: int, prompt: str, *calls: Call) -> Task:
    return Task(f"CODE.{number:03}", prompt, Code(calls), MAX_TOKENS)


SIMPLE = (
    _task(
        1,
        "Write a Python function called add that adds two numbers.",
        Call("add(2, 3)", 5),
        Call("add(-7, 7)", 0),
        Call("add(0.5, 0.25)", 0.75),
    ),
    _task(
        2,
        "Write a Python function called larger that returns the larger of two numbers.",
        Call("larger(2, 9)", 9),
        Call("larger(9, 2)", 9),
        Call("larger(-4, -8)", -4),
        Call("larger(3, 3)", 3),
    ),
    _task(
        3,
        "Write a Python function called is_even that tells whether a number is even.",
        Call("is_even(4)", True),
        Call("is_even(7)", False),
        Call("is_even(0)", True),
        Call("is_even(-3)", False),
    ),
    _task(
        4,
        "Write a Python function called reverse that reverses a list.",
        Call("list(reverse([1, 2, 3]))", [3, 2, 1]),
        Call("list(reverse([]))", []),
        Call("list(reverse(['a', 'b']))", ["b", "a"]),
    ),
    _task(
        5,
        "Write a Python function called count_even that counts the even numbers of a list.",
        Call("count_even([1, 2, 4, 7])", 2),
        Call("count_even([])", 0),
        Call("count_even([0, -2, 5])", 2),
    ),
    _task(
        6,
        "Write a Python function called factorial that computes the factorial of a number.",
        Call("factorial(0)", 1),
        Call("factorial(5)", 120),
        Call("factorial(20)", 2432902008176640000),
    ),
    _task(
        7,
        "Write a Python function called largest that returns the largest item of a list.",
        Call("largest([3, 11, 5])", 11),
        Call("largest([-9, -2, -30])", -2),
        Call("largest([8])", 8),
    ),
    _task(
        8,
        "Write a Python function called total that sums a list.",
        Call("total([3, 11, 5])", 19),
        Call("total([])", 0),
        Call("total([-1, 1, 4])", 4),
    ),
)

TEXTS = (
    _task(
        9,
        "Write a Python function is_palindrome(text) that tells whether a text reads the same in"
        " both directions when all but letters and digits is left out and case does not count."
        + ALONE,
        Call("is_palindrome('Never odd or even')", True),
        Call("is_palindrome('step on no pot')", False),
        Call("is_palindrome('1a2A1!')", True),
        Call("is_palindrome('')", True),
    ),
    _task(
        10,
        "Write a Python function run_lengths(text) that returns a list of tuples (character,"
        " length), one for each run of equal characters, in order." + ALONE,
        Call("run_lengths('aaabcc')", [("a", 3), ("b", 1), ("c", 2)]),
        Call("run_lengths('')", []),
        Call("run_lengths('abab')", [("a", 1), ("b", 1), ("a", 1), ("b", 1)]),
    ),
    _task(
        11,
        "Write a Python function balanced(text) that tells whether the brackets (), [] and {} in a"
        " text are closed in the right order. Other characters do not matter." + ALONE,
        Call("balanced('f(a[1], {2})')", True),
        Call("balanced('([)]')", False),
        Call("balanced('((')", False),
        Call("balanced(')(')", False),
        Call("balanced('')", True),
    ),
    _task(
        12,
        "Write a Python function seconds(text) that turns a duration such as '1h30m', '45s' or"
        " '2h5s' (hours, minutes, seconds, in this order, at least one of them) into a whole number"
        " of seconds. It raises ValueError for any other text." + ALONE,
        Call("seconds('1h30m')", 5400),
        Call("seconds('45s')", 45),
        Call("seconds('2h5s')", 7205),
        Call("seconds('')", raises="ValueError"),
        Call("seconds('5s2h')", raises="ValueError"),
        Call("seconds('12')", raises="ValueError"),
    ),
    _task(
        13,
        "Write a Python function shift(text, by) that moves each ASCII letter by places in the"
        " alphabet, wrapping around and keeping its case. Other characters stay. by may be"
        " negative." + ALONE,
        Call("shift('Hello, Zoe!', 3)", "Khoor, Crh!"),
        Call("shift('Khoor, Crh!', -3)", "Hello, Zoe!"),
        Call("shift('abc', 27)", "bcd"),
    ),
    _task(
        14,
        "Write a Python function most_common(text, count) that returns the count most frequent"
        " words of a text as a list. Words are separated by white space, and case does not count:"
        " return them in lower case. Words that are equally frequent are in alphabetical order."
        + ALONE,
        Call("most_common('b a B c a b', 2)", ["b", "a"]),
        Call("most_common('pear fig apple', 2)", ["apple", "fig"]),
        Call("most_common('', 3)", []),
    ),
)

NUMBERS = (
    _task(
        15,
        "Write a Python function prime_factors(n) that returns the prime factors of a whole number"
        " n >= 1 as a list in ascending order, each as often as it divides n." + ALONE,
        Call("prime_factors(1)", []),
        Call("prime_factors(360)", [2, 2, 2, 3, 3, 5]),
        Call("prime_factors(97)", [97]),
        Call("prime_factors(1000000007 * 2)", [2, 1000000007]),
    ),
    _task(
        16,
        "Write a Python function to_roman(n) that returns the Roman numeral of a whole number from"
        " 1 to 3999, and raises ValueError for other numbers." + ALONE,
        Call("to_roman(4)", "IV"),
        Call("to_roman(1987)", "MCMLXXXVII"),
        Call("to_roman(3999)", "MMMCMXCIX"),
        Call("to_roman(0)", raises="ValueError"),
        Call("to_roman(4000)", raises="ValueError"),
    ),
    _task(
        17,
        "Write a Python function in_base(n, base) that returns a whole number n >= 0 as text in a"
        " base from 2 to 16, with the digits 0-9a-f and without a prefix." + ALONE,
        Call("in_base(255, 16)", "ff"),
        Call("in_base(0, 2)", "0"),
        Call("in_base(10, 3)", "101"),
    ),
    _task(
        18,
        "Write a Python function is_leap(year) that tells whether a year of the Gregorian calendar"
        " is a leap year." + ALONE,
        Call("is_leap(2024)", True),
        Call("is_leap(1900)", False),
        Call("is_leap(2000)", True),
        Call("is_leap(2023)", False),
    ),
)

LISTS = (
    _task(
        19,
        "Write a Python function flatten(items) that returns one flat list of all that is in"
        " arbitrarily nested lists, in order. Tuples are items like any other." + ALONE,
        Call("flatten([1, [2, [3, []]], 4])", [1, 2, 3, 4]),
        Call("flatten([])", []),
        Call("flatten([(1, 2), ['ab']])", [(1, 2), "ab"]),
    ),
    _task(
        20,
        "Write a Python function merge(ranges) that takes a list of tuples (first, last) of whole"
        " numbers, both ends included, in any order, and returns a sorted list of tuples in which"
        " ranges that overlap are joined. Ranges that only lie side by side, such as (1, 2) and"
        " (3, 4), stay apart. The argument must not be changed." + ALONE,
        Call("merge([(5, 8), (1, 3), (2, 4)])", [(1, 4), (5, 8)]),
        Call("merge([(1, 2), (3, 4)])", [(1, 2), (3, 4)]),
        Call("merge([(1, 9), (2, 3)])", [(1, 9)]),
        Call("merge([])", []),
        Call("(merge(given), given)[1]", [(3, 4), (1, 3)], setup="given = [(3, 4), (1, 3)]"),
    ),
    _task(
        21,
        "Write a Python function transpose(rows) that returns the columns of a list of equally long"
        " lists as a list of lists. It raises ValueError when the lists differ in length." + ALONE,
        Call("transpose([[1, 2, 3], [4, 5, 6]])", [[1, 4], [2, 5], [3, 6]]),
        Call("transpose([])", []),
        Call("transpose([[1], [2, 3]])", raises="ValueError"),
    ),
    _task(
        22,
        "Write a Python function spiral(rows) that returns the items of a rectangular list of lists"
        " as one list, clockwise from the first item of the first row inwards." + ALONE,
        Call("spiral([[1, 2, 3], [4, 5, 6], [7, 8, 9]])", [1, 2, 3, 6, 9, 8, 7, 4, 5]),
        Call("spiral([[1, 2, 3, 4]])", [1, 2, 3, 4]),
        Call("spiral([[1], [2], [3]])", [1, 2, 3]),
        Call("spiral([[1, 2], [3, 4], [5, 6]])", [1, 2, 4, 6, 5, 3]),
    ),
)

STRUCTURES = (
    _task(
        23,
        "Write a Python function order(needs) that takes a dict from each task's name to a list of"
        " the names that must come before it, and returns all names as a list in such an order."
        " Where several names could come next, the alphabetically first one does. Names that stand"
        " in the lists alone are tasks, too. It raises ValueError when there is no such order."
        + ALONE,
        Call("order({'c': ['a', 'b'], 'b': ['a'], 'a': []})", ["a", "b", "c"]),
        Call("order({'z': [], 'a': ['m']})", ["m", "a", "z"]),
        Call("order({})", []),
        Call("order({'a': ['b'], 'b': ['a']})", raises="ValueError"),
    ),
    _task(
        24,
        "Write a Python class Cache. Cache(size) keeps at most size entries. put(key, value) adds"
        " or replaces an entry, get(key) returns its value or None. When there are too many, the"
        " entry that was put or got longest ago is dropped." + ALONE,
        Call(
            "(c.get('a'), c.get('b'), c.get('c'))",
            (1, None, 3),
            setup="c = Cache(2); c.put('a', 1); c.put('b', 2); c.get('a'); c.put('c', 3)",
        ),
        Call(
            "(c.get('a'), c.get('b'))",
            (9, 2),
            setup="c = Cache(2); c.put('a', 1); c.put('b', 2); c.put('a', 9)",
        ),
        Call(
            "(c.get('a'), c.get('b'))",
            (None, 2),
            setup="c = Cache(1); c.put('a', 1); c.put('b', 2)",
        ),
    ),
    _task(
        25,
        "Write a Python function calculate(text) that returns the value of an arithmetic expression"
        " of whole numbers, + - * (with the usual precedence, also a minus before a number or a"
        " bracket) and round brackets, with any spaces. It raises ValueError for any other text and"
        " does not use eval, exec or compile." + ALONE,
        Call("calculate('2 + 3 * 4')", 14),
        Call("calculate('-(2 - 5) * (1+1)')", 6),
        Call("calculate('10 - 2 - 3')", 5),
        Call("calculate('2 +')", raises="ValueError"),
        Call("calculate('(1')", raises="ValueError"),
        Call("calculate('abc')", raises="ValueError"),
    ),
)

CODE_TASKS = SIMPLE + TEXTS + NUMBERS + LISTS + STRUCTURES
