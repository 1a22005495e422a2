"""The instructions of a Dockerfile, read as docker reads them."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

KNOWN = {
    *("ADD", "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL"),
    *("MAINTAINER", "ONBUILD", "RUN", "SHELL", "STOPSIGNAL", "USER", "VOLUME", "WORKDIR"),
}


@dataclass(frozen=True)
class Instruction:
    """One instruction with its continuation lines joined, and the line it begins in."""

    line: int
    name: str
    words: tuple[str, ...]

    @property
    def flags(self) -> tuple[str, ...]:
        """The words in front that are flags: docker takes quotes and backslashes out of those."""
        plain = [re.sub(r"[\"'\\]", "", word) for word in self.words]
        end = next((at for at, word in enumerate(plain) if not word.startswith("--")), len(plain))
        return self.words[:end]

    @property
    def arguments(self) -> tuple[str, ...]:
        """The words behind the flags; those of a JSON list without its brackets and quotes."""
        words = self.words[len(self.flags) :]
        if words and words[0].startswith("["):
            try:
                return tuple(str(word) for word in json.loads(" ".join(words)))
            except (ValueError, RecursionError):  # docker takes it as plain words then
                return words
        return words

    @property
    def heredoc(self) -> str | None:
        """The first word that starts a heredoc, if any."""
        if self.name not in ("RUN", "COPY", "ADD"):
            return None
        return next((word for word in self.words if re.search(r"(?<!<)<<-?[^<\s]", word)), None)

    def flag(self, name: str) -> str | None:
        """Return the value of `--name=value`."""
        start = f"--{name}="
        return next((w.removeprefix(start) for w in self.flags if w.startswith(start)), None)


def parse(text: str) -> Iterator[Instruction]:
    """Yield the instructions of a Dockerfile; comments and blank lines go away.

    A heredoc ends it: what follows its first line may be its body.
    """
    parts: list[str] = []
    first = 0
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("#") or not line.strip():
            continue
        first = first if parts else number
        body = re.sub(r"\\[ \t]*$", "", line)
        parts.append(body)
        if body == line:
            found = _joined(first, parts)
            yield from found
            if any(one.heredoc is not None for one in found):
                return
            parts = []
    yield from _joined(first, parts)


def _joined(line: int, parts: list[str]) -> list[Instruction]:
    """Return the instruction of some lines: docker puts no blank between them."""
    words = "".join(parts).split()
    return [Instruction(line, words[0].upper(), tuple(words[1:]))] if words else []
