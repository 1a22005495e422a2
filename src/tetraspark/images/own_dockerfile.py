"""A Dockerfile of the user's own: where it may be, and what it must not do."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tetraspark.errors import Problem, UsageError
from tetraspark.images.instruction import KNOWN, Instruction, parse
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
_DIRECTIVES = {
    "syntax": "none: docker would fetch it from Docker Hub",
    "escape": "none: a backslash goes on in the next line, and nothing else",
}
_PINNED = re.compile(r"\S+@sha256:[0-9a-f]{64}")


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
    if root is None:
        seen = f"{loaded.path.resolve().parent}, which is in no git checkout"
        wanted = "one: of the Dockerfile's folder, what git tracks is built from, and nothing else"
        fix = f"in that folder: git init && git add {text}, and what it copies"
        raise UsageError(Problem(where, seen, wanted, fix))
    if not path.is_relative_to(root):
        seen, fix = f"{path}, which is outside {root}", "copy it into the repository"
        raise UsageError(Problem(where, seen, "a Dockerfile in the site's repository", fix))
    source = read_source(path)
    own = OwnDockerfile(path, source, tuple(parse(source.text)))
    problems = list(_unreadable(own)) or [
        problem for check in (_images, _secrets, _downloads) for problem in check(own)
    ]
    if problems:
        raise UsageError(*problems)
    return own


def repository_of(path: Path) -> Path | None:
    """Return the checkout that a file is in, if any."""
    return next((one for one in path.parents if (one / ".git").exists()), None)


def _unreadable(own: OwnDockerfile) -> Iterator[Problem]:
    """Find what docker would read in another way than these rules do."""
    for number, seen, wanted, fix in (*_odd_lines(own), *_odd_instructions(own)):
        yield Problem(own.source.where(number), seen, wanted, fix)


def _odd_lines(own: OwnDockerfile) -> Iterator[tuple[int, str, str, str]]:
    start = own.instructions[0].line if own.instructions else 0
    for number, line in enumerate(own.source.text.split("\n"), 1):
        directive = re.match(r"\s*#\s*(syntax|escape)\s*=", line, re.IGNORECASE)
        if directive and number < start:
            seen = f"a {directive[1].lower()} directive"
            yield number, seen, _DIRECTIVES[directive[1].lower()], "delete the line"
        if re.search(r"[^\S \t]", line):
            yield number, "an unusual blank character", "blanks and tabs", "replace it"


def _odd_instructions(own: OwnDockerfile) -> Iterator[tuple[int, str, str, str]]:
    for one in own.instructions:
        if one.name not in KNOWN:
            wanted = f"one of {', '.join(sorted(KNOWN))}"
            yield one.line, f"instruction {one.name!r}", wanted, "correct it"
        if one.name == "ONBUILD":
            wanted = "none: it runs in a later build, which nobody checked"
            yield one.line, "ONBUILD", wanted, "write the instruction there"
        if one.heredoc is not None:
            wanted = "one instruction a line: heredocs are not read here"
            yield one.line, f"a heredoc, {one.heredoc}", wanted, "COPY a script, and RUN it"
        if any(re.search(r"[\"'\\]", word) for word in one.flags):
            yield one.line, "quotes in a flag", "--name=value without any", "take them out"
    if all(one.name != "FROM" for one in own.instructions):
        yield 1, "no FROM", "a Dockerfile", f"ARG {BASE_ARGUMENT}, then FROM ${BASE_ARGUMENT}"


def _images(own: OwnDockerfile) -> Iterator[Problem]:
    """Every image that bytes come from must be named by its digest."""
    stages: list[str] = []
    variables = {f"${BASE_ARGUMENT}", f"${{{BASE_ARGUMENT}}}"}
    given = variables if BASE_ARGUMENT in own.arguments else set()
    for one in own.instructions:
        # FROM alone takes the variable, and it alone takes no number of a stage.
        others = given if one.name == "FROM" else {str(number) for number in range(len(stages))}
        for image in _images_of(one):
            known = image in {"scratch", *others} or image.lower() in set(stages) - {""}
            if not known and not _PINNED.fullmatch(image):
                wanted = f"${BASE_ARGUMENT}, an earlier stage, or NAME@sha256:DIGEST: tags move"
                fix = f"ARG {BASE_ARGUMENT} before the first FROM, and FROM ${BASE_ARGUMENT}"
                yield Problem(own.source.where(one.line), f"image {image!r}", wanted, fix)
        if one.name == "FROM":
            named = len(one.arguments) == 3 and one.arguments[1].upper() == "AS"
            stages.append(one.arguments[2].lower() if named else "")


def _images_of(one: Instruction) -> list[str]:
    """Return the images an instruction takes bytes from."""
    if one.name == "FROM":
        return [(one.arguments or ("",))[0]]
    mounts = [word for word in one.flags if word.startswith("--mount=")]
    found = [re.findall(r"[=,]from=([^,]*)", word, re.IGNORECASE) for word in mounts]
    copies = [w.removeprefix("--from=") for w in one.flags if w.startswith("--from=")]
    return [*(image for images in found for image in images), *copies]


def _secrets(own: OwnDockerfile) -> Iterator[Problem]:
    for one in own.instructions:
        if one.name not in ("ARG", "ENV"):
            continue
        # `ENV NAME some words` is the old form: one variable.
        old = one.name == "ENV" and "=" not in (one.arguments or ("",))[0]
        for word in one.arguments[:1] if old else one.arguments:
            name = word.partition("=")[0].strip("\"'")
            if secret_argument(name):
                seen = f"{one.name} {name}, a secret by its name"
                wanted = "no secret: arguments and variables stay in the image's history"
                yield Problem(own.source.where(one.line), seen, wanted, "remove it")


def _downloads(own: OwnDockerfile) -> Iterator[Problem]:
    """ADD takes URLs and git repositories, also from variables: only files that are here pass."""
    for one in own.instructions:
        if one.name == "ADD" and not all(_is_here(own, word) for word in one.arguments[:-1]):
            wanted = "files of the context, by their plain paths: nothing hashes what ADD downloads"
            fix = "put the file into the repository, and COPY it"
            yield Problem(own.source.where(one.line), f"ADD {one.arguments[0]}", wanted, fix)


def _is_here(own: OwnDockerfile, word: str) -> bool:
    plain = re.fullmatch(r"[A-Za-z0-9._/+-]+", word) and not word.startswith("github.com/")
    return bool(plain) and (own.path.parent / word.lstrip("/")).exists()
