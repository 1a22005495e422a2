"""The profile parser: what bash would hold, or why that cannot be known; nothing is run."""

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tetraspark.errors import UsageError
from tetraspark.site.envfile import EnvFile, parse_envfile


def parse(text: str | bytes) -> EnvFile:
    return parse_envfile(Path(".env"), text if isinstance(text, bytes) else text.encode())


def values(text: str | bytes) -> dict[str, str | None]:
    return {item.name: item.value for item in parse(text).assignments}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("QUANT=nvfp4\nCONTEXT_LENGTH=262144", {"QUANT": "nvfp4", "CONTEXT_LENGTH": "262144"}),
        ("export A=1\n  export B=2 C=3\n", {"A": "1", "B": "2", "C": "3"}),
        (b"\xef\xbb\xbfA=x\r\nTP_SIZE=4\r\n", {"A": "x", "TP_SIZE": "4"}),
        ("A=b#c\nB=b # c\nC= # c\nD='x # y' # z", {"A": "b#c", "B": "b", "C": "", "D": "x # y"}),
        ("A='$X `y` \\n'\nB=\"\\$X \\` \\\" \\\\ \\n\"", {"A": "$X `y` \\n", "B": '$X ` " \\ \\n'}),
        ("A=a\\ b\\#c\nB=x'y'\"z\"", {"A": "a b#c", "B": "xyz"}),
        ("A=\"one \\\ntwo\"\nB=x\\\ny\nC='l1\nl2'", {"A": "one two", "B": "xy", "C": "l1\nl2"}),
        ("A=$HOME/m\nB=${HOME}/n\nC=${A}/o", {"A": "~/m", "B": "~/n", "C": "~/m/o"}),
        ("A=${X:-d}\nB=1\nC=${B:-2}$B\nE=\nF=${E:-g}${E-h}", {
            "A": "d", "B": "1", "C": "11", "E": "", "F": "g"}),
        ("PORT=${PORT:-8888}\nA=${X:-$HOME/m}/n\nB=${X:-${Y:-z}}", {
            "PORT": "8888", "A": "~/m/n", "B": "z"}),
        ("A=1;B=2 # c\nA+=x\nexport A\n", {"A": "1x", "B": "2"}),
        ("A=$\nB=a$ b=1", {"A": "$", "B": "a$", "b": "1"}),
        ('A=$"x y"', {"A": "x y"}),
        ("A=${X:-{a}}\nB=${X:-a~b}\nC='x~'\nD=~/x", {
            "A": "{a}", "B": "a~b", "C": "x~", "D": "~/x"}),
        ("A='~x'\nB=${X:-~/m}", {"A": "~x", "B": "~/m"}),
    ],
)  # fmt: skip
def test_values_are_what_bash_would_hold(text: str | bytes, wanted: dict[str, str]) -> None:
    assert values(text) == wanted
    assert parse(text).statements == ()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("A=$(touch RAN)", "command substitution"),
        ('A="x `touch RAN`"', "command substitution"),
        ("A=$((1+1))", "arithmetic"),
        ("A=(a b\n c)", "a bash array"),
        ("A=[]", "a list in brackets"),
        ("A=[..]", "a list in brackets"),
        ("A=$UNSET/x", "`$UNSET` is not set earlier"),
        ("A=x:$HOME/y", "not the beginning of a path"),
        ("A=${HOME}x", "not the beginning of a path"),
        ("A=${B%.*}", "needs a shell"),
        ("A=$1", "parameter of the running shell"),
        ("A=$'x\\n'", "$'…'"),
        ("A=~bob/x", "`~`"),
        ("A=~+", "`~`"),
        ("A=/a:~/b", "`~`"),
        ("B=$(x)\nA=$B", "`$B` is not known"),
        ("A='~/x'", "a quoted `~`"),
        ('A="~"', "a quoted `~`"),
        ("A=\\~/x", "a quoted `~`"),
        ("A=''~/x", "a quoted `~`"),
        ('A="${X:-~/x}"', "a quoted `~`"),
        ("A=${X:-'a b'}", "needs a shell"),
        ('A="${X:-a\\"b}"', "needs a shell"),
        ('A="$(a "$(b "}")" \')\' ${c})"', "command substitution"),
        ("A=1\nunset A", "unset again"),
    ],
)
def test_what_only_a_shell_could_tell_has_no_value(text: str, why: str) -> None:
    found = parse(text)
    item = found.assignments[-1]
    assert (item.name, item.value) == ("A", None)
    assert why in item.why
    assert found.statements == ()


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("source x.env\n. y.env", [(1, "another file"), (2, "another file")]),
        ("EXTRA=--api-key hush1", [(1, "put the whole value in quotes")]),
        ("A = 1", [(1, "without blanks")]),
        ("A[0]=x", [(1, "a bash array")]),
        ("echo hi > RAN\nA=1 && touch RAN", [(1, "never run"), (2, "never run")]),
        ("if true; then\nA=1\nfi\n", [(1, "block"), (1, "block"), (2, "block"), (3, "block")]),
        ("f() {\nA=1\n}", [(1, "function"), (2, "block"), (3, "block")]),
        ("cat <<END\nA=1\nEND", [(1, "never run")]),
        ("set -a", [(1, "a command")]),
        ("export NOWHERE", [(1, "no value in this file")]),
        ("A='never ends\nB", [(1, "without its other half"), (2, "a command")]),
        ("A=$(never\nB", [(1, "without its other half"), (2, "a command")]),
    ],
)
def test_everything_else_is_a_statement_with_its_line(
    text: str, rows: list[tuple[int, str]]
) -> None:
    found = parse(text + "\nLAST=1")
    assert [item.line for item in found.statements] == [line for line, _ in rows]
    for statement, (_, why) in zip(found.statements, rows, strict=True):
        assert why in statement.why
        assert "hush" not in statement.text + statement.why
    assert {item.name: item.value for item in found.assignments} == {"LAST": "1"}


def test_a_value_made_from_a_secret_is_one() -> None:
    found = parse("API_KEY=k\nA=x$API_KEY\nB=${C:-$A}\nMAX_TOKENS=1")
    assert [item.secret for item in found.assignments] == [True, True, True, False]


@pytest.mark.parametrize("data", [b"A=\xff", b"A=1\0", b"A=1\rB=2"])
def test_bytes_that_are_not_text_are_refused(data: bytes) -> None:
    with pytest.raises(UsageError, match=r"\.env:1"):
        parse(data)


NAME = st.sampled_from(["A", "B", "C", "D"])
PLAIN = st.text(st.sampled_from("abz09_.,/:=+#~-"), max_size=6)
PART = st.one_of(
    PLAIN,
    st.text(st.sampled_from("ab $`\"#;&|\\\n=()"), max_size=6).map(lambda text: f"'{text}'"),
    st.text(st.sampled_from("ab '#;&|=()"), max_size=6).map(lambda text: f'"{text}"'),
    st.sampled_from(['"\\$\\`\\"\\\\\\a"', "\\ ", "\\#", "\\\n", "$A", '"${B}"', "${C:-d e}",
                     "${D-$A}", '"${A:-x}${B:-$C}"']),
)  # fmt: skip
VALUE = st.lists(PART, max_size=3).map("".join)
STATEMENT = st.builds(
    lambda export, name, plus, value, end: f"{export}{name}{plus}={value}{end}",
    st.sampled_from(["", "", "export ", "  "]), NAME, st.sampled_from(["", "", "", "+"]), VALUE,
    st.sampled_from(["\n", " # note\n", "\n\n# X=1\n", ";", "; # x\n"]),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(STATEMENT, min_size=1, max_size=6).map("".join))
def test_values_agree_with_bash(text: str) -> None:
    preset = "A=a\nB=b\nC=\nD=d\n"
    found = parse(preset + text)
    # a tilde that bash expands is kept for the node that uses the path: HOME=~ makes them equal
    shown = 'for n in A B C D; do printf "%s\\0" "${!n}"; done'
    bash = shutil.which("bash")
    assert bash is not None
    done = subprocess.run(
        [bash, "-c", f"{preset}{text}\n{shown}"],
        env={"HOME": "~", "PATH": "/nonexistent"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.statements == () and done.returncode == 0, (found, done.stderr)
    ours = {item.name: item.value for item in found.assignments}
    if None not in ours.values():
        assert [ours[name] for name in "ABCD"] == done.stdout.split("\0")[:4]
