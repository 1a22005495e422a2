"""A Dockerfile of the user's own: where it may be, and what it must not do."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tetraspark.errors import Problem, UsageError
from tetraspark.site.load import LoadedSite
from tetraspark.site.machines import secret_argument
from tetraspark.site.source import Source, read_source

BASE_ARGUMENT = "BASE_IMAGE"
INDEX_ARGUMENT = "PIP_INDEX_URL"
PREDEFINED = {
    name
    for word in ("HTTP", "HTTPS", "FTP", "NO", "ALL")
    for name in (f"{word}_PROXY", f"{word.lower()}_proxy")
}
"""Build arguments that docker knows without ARG."""
_PINNED = re.compile(r"\S+@sha256:[0-9a-f]{64}")


@dataclass(frozen=True)
class Instruction:
    """One instruction with its continuation lines joined, and the line it begins in."""

    line: int
    name: str
    words: tuple[str, ...]

    @property
    def arguments(self) -> tuple[str, ...]:
        """The words that are no flags."""
        return tuple(word for word in self.words if not word.startswith("--"))

    def flag(self, name: str) -> str | None:
        """Return the value of `--name=value`."""
        start = f"--{name}="
        return next((w.removeprefix(start) for w in self.words if w.startswith(start)), None)


@dataclass(frozen=True)
class OwnDockerfile:
    """The Dockerfile, its folder (which is the context), and what it declares."""

    path: Path
    source: Source
    instructions: tuple[Instruction, ...]

    @property
    def name(self) -> str:
        """Path of the Dockerfile in its context."""
        return self.path.name

    @property
    def arguments(self) -> set[str]:
        """Names of ARG."""
        found = (one.arguments for one in self.instructions if one.name == "ARG")
        return {words[0].partition("=")[0] for words in found if words}

    @property
    def uses_files(self) -> bool:
        """Say whether it copies from `files/`, the recipe's verified files."""
        return any(
            re.match(r"(\./)?files(/|$)", word)
            for one in self.instructions
            if one.name == "COPY" and one.flag("from") is None
            for word in one.arguments[:-1]
        )


def read_own(loaded: LoadedSite, text: str) -> OwnDockerfile:
    """Read and check the Dockerfile that a site names.

    Raises UsageError where it is outside the repository, links resolved, and for each thing in it
    that would let unhashed bytes or secrets into the image.
    """
    where = loaded.origin("image.dockerfile").where
    path = loaded.resolve(text, "image.dockerfile")
    root = repository_of(loaded.path.resolve())
    if not path.is_relative_to(root):
        seen, fix = f"{path}, which is outside {root}", "copy it into the repository"
        raise UsageError(Problem(where, seen, "a Dockerfile in the site's repository", fix))
    source = read_source(path)
    own = OwnDockerfile(path, source, tuple(parse(source.text)))
    problems = [
        *_directives(source),
        *(problem for check in (_images, _secrets, _downloads) for problem in check(own)),
    ]
    if problems:
        raise UsageError(*problems)
    return own


def repository_of(path: Path) -> Path:
    """Return the checkout that a file is in; its folder when it is in none."""
    return next((one for one in path.parents if (one / ".git").exists()), path.parent)


def parse(text: str) -> Iterator[Instruction]:
    """Yield the instructions of a Dockerfile; comments and blank lines go away."""
    parts: list[str] = []
    first = 0
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("#") or not line.strip():
            continue
        first = first if parts else number
        parts.append(line.rstrip().removesuffix("\\"))
        if not line.rstrip().endswith("\\"):
            name, *words = " ".join(parts).split()
            yield Instruction(first, name.upper(), tuple(words))
            parts = []
    if parts:
        name, *words = " ".join(parts).split() or [""]
        yield Instruction(first, name.upper(), tuple(words))


def _directives(source: Source) -> Iterator[Problem]:
    for number, line in enumerate(source.text.split("\n"), 1):
        if not line.startswith("#"):
            return
        if re.match(r"#\s*syntax\s*=", line):
            wanted, fix = "none: docker would fetch it from Docker Hub", "delete the line"
            yield Problem(source.where(number), "a syntax directive", wanted, fix)


def _images(own: OwnDockerfile) -> Iterator[Problem]:
    """Every image that bytes come from must be named by its digest."""
    stages: set[str] = set()
    names = {"scratch"}
    if BASE_ARGUMENT in own.arguments:
        names |= {f"${BASE_ARGUMENT}", f"${{{BASE_ARGUMENT}}}"}
    for one in own.instructions:
        image = _image_of(one)
        known = image is None or image in names or image.lower() in stages or image.isdigit()
        if not known and not _PINNED.fullmatch(image or ""):
            wanted = f"${BASE_ARGUMENT}, an earlier stage, or NAME@sha256:DIGEST: tags move"
            fix = f"ARG {BASE_ARGUMENT} before the first FROM, and FROM ${BASE_ARGUMENT}"
            yield Problem(own.source.where(one.line), f"image {image!r}", wanted, fix)
        if one.name == "FROM" and len(one.arguments) == 3:
            stages.add(one.arguments[2].lower())


def _image_of(one: Instruction) -> str | None:
    """Return the image an instruction takes bytes from, if any."""
    if one.name == "FROM":
        return (one.arguments or ("",))[0]
    mount = re.search(r"(?:^|,)from=([^,]+)", one.flag("mount") or "")
    return mount[1] if mount else one.flag("from")


def _secrets(own: OwnDockerfile) -> Iterator[Problem]:
    for one in own.instructions:
        if one.name not in ("ARG", "ENV"):
            continue
        # `ENV NAME some words` is the old form: one variable.
        old = one.name == "ENV" and "=" not in (one.arguments or ("",))[0]
        for word in one.arguments[:1] if old else one.arguments:
            name = word.partition("=")[0]
            if secret_argument(name):
                seen = f"{one.name} {name}, a secret by its name"
                wanted = "no secret: arguments and variables stay in the image's history"
                yield Problem(own.source.where(one.line), seen, wanted, "remove it")


def _downloads(own: OwnDockerfile) -> Iterator[Problem]:
    for one in own.instructions:
        remote = [word for word in one.arguments[:-1] if re.match(r"(https?|git)[:@]", word)]
        if one.name == "ADD" and remote:
            wanted = "files of the context: nothing hashes what ADD downloads"
            fix = "put the file into the repository, and COPY it"
            yield Problem(own.source.where(one.line), "ADD of a URL", wanted, fix)
