"""The sources manifest as a value: base images, archives and wheels, each with its hash."""

import os
import re
import shlex
from collections.abc import Iterator
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, PrivateAttr, ValidationError, model_validator

from tetraspark.errors import Problem, UsageError
from tetraspark.images.fields import Commit, Digest, Line, Reference, Sha256, Url, Word, file_name
from tetraspark.site.document import parse_toml
from tetraspark.site.explain import explain
from tetraspark.site.load import sorted_problems
from tetraspark.site.section import Section, refusal
from tetraspark.site.source import Source, read_source

Recipe = Literal["base", "canary", "canary-roce", "release"]
SHIPPED = ("sources.toml", "release.toml")
LARGEST = 1 << 40
"""Bytes of a file, at most."""


Recipes = Annotated[tuple[Recipe, ...], Field(min_length=1)]


class Base(Section):
    """An image to build on, pinned by digest."""

    component: Word = Field(description="name of the row")
    reference: Reference = Field(description="name and tag, for people: the digest decides")
    digest: Digest = Field(description="digest of the image for the platform")
    platform: Literal["linux/arm64", "linux/amd64"] = Field(description="what it runs on")
    licence: Line = Field(description="under which terms")
    recipes: Recipes = Field(description="recipes it is the base of")

    @property
    def pinned(self) -> str:
        """The reference with its digest, as `FROM` takes it."""
        return f"{self.reference}@{self.digest}"


class File(Section):
    """A file to download: where it is, and the hash that decides whether it is the right one."""

    url: Url = Field(description="https URL")
    sha256: Sha256 = Field(description="sha256 of the file")
    size: int | None = Field(
        default=None, ge=1, le=LARGEST, description="bytes, where the source states them"
    )
    licence: Line = Field(description="under which terms")
    recipes: Recipes = Field(description="recipes that use it")

    @property
    def file(self) -> str:
        """Name of the file."""
        return file_name(self.url)


class Archive(File):
    """A tar.gz of one commit."""

    component: Word = Field(description="name of the row")
    commit: Commit = Field(description="the commit it is of")

    @model_validator(mode="after")
    def _url_names_commit(self) -> Self:
        if self.commit not in self.url:
            wanted = f"a URL that names the commit {self.commit}: a branch or tag moves"
            raise refusal(f"URL {self.url!r}", wanted, "use the archive of the commit itself")
        return self


class Wheel(File):
    """A wheel of the package index."""

    name: Word = Field(description="project")
    version: str = Field(pattern=r"^[0-9][A-Za-z0-9.+!]*$", description="version")

    @property
    def component(self) -> str:
        """Name of the row."""
        return f"{self.name}-{self.version}"

    @model_validator(mode="after")
    def _url_names_version(self) -> Self:
        parts = self.file.removesuffix(".whl").split("-")
        project = re.sub(r"[-_.]+", "-", parts[0]).lower()
        wanted = re.sub(r"[-_.]+", "-", self.name)
        if len(parts) < 5 or (project, parts[1]) != (wanted, self.version):
            seen = f"file {self.file!r}"
            raise refusal(seen, f"a wheel of {self.name} {self.version}", "correct url or version")
        return self


class Manifest(Section):
    """All rows; no two are of the same component, file name or hash."""

    _paths: tuple[Path, ...] = PrivateAttr(())

    base: tuple[Base, ...] = Field(default=(), description="images to build on")
    source: tuple[Archive, ...] = Field(default=(), description="archives")
    wheel: tuple[Wheel, ...] = Field(default=(), description="wheels")

    @property
    def downloads(self) -> tuple[Archive | Wheel, ...]:
        """Every file to download, in the order of the manifest."""
        return (*self.source, *self.wheel)

    @property
    def fetch_command(self) -> str:
        """`tetraspark fetch` as a fix has it: with the files this was read from, if not ours."""
        own = (f"--manifest {shlex.quote(str(path))}" for path in self._paths)
        return " ".join(("tetraspark fetch", *own))

    def of(self, recipe: str) -> "Manifest":
        """Return the rows of one recipe."""
        found = Manifest(
            base=tuple(row for row in self.base if recipe in row.recipes),
            source=tuple(row for row in self.source if recipe in row.recipes),
            wheel=tuple(row for row in self.wheel if recipe in row.recipes),
        )
        found._paths = self._paths
        return found


def load_manifest(*paths: Path) -> Manifest:
    """Read manifests and join them; without a path, those of this package.

    Raises UsageError with every problem found, each with its line.
    """
    if not paths:
        with as_file(files("tetraspark.images")) as folder:
            return _joined(tuple(folder / name for name in SHIPPED))
    found = _joined(paths)
    found._paths = paths
    return found


def _joined(paths: tuple[Path, ...]) -> Manifest:
    resolved = [os.path.realpath(path) for path in paths]
    again = next((one for at, one in enumerate(resolved) if one in resolved[:at]), None)
    if again is not None:
        raise UsageError(Problem("--manifest", f"{again} twice", "each once", "name it once"))
    first: dict[str, str] = {}
    parts = [_load(read_source(path), first) for path in paths]
    return Manifest(
        base=tuple(row for part in parts for row in part.base),
        source=tuple(row for part in parts for row in part.source),
        wheel=tuple(row for part in parts for row in part.wheel),
    )


def _load(source: Source, first: dict[str, str]) -> Manifest:
    """Read one manifest; `first` has where each name and hash was seen before."""
    document, keys = parse_toml(source)
    try:
        manifest = Manifest.model_validate(document)
    except ValidationError as error:
        problems = sorted_problems(source, keys.lines, explain(error, Manifest))
        raise UsageError(*problems) from None
    problems = []
    for kind, index, row in _rows(manifest):
        where = source.where(keys.lines[(kind, index)])
        for seen in _marks(kind, row):
            if seen in first:
                fix = "delete one, or join their recipes"
                text = f"{seen} again (see {first[seen]})"
                problems.append(Problem(where, text, "each component, file and hash once", fix))
                break
            first[seen] = where
    if problems:
        raise UsageError(*problems)
    return manifest


def _rows(manifest: Manifest) -> Iterator[tuple[str, int, Base | Archive | Wheel]]:
    yield from (("base", index, row) for index, row in enumerate(manifest.base))
    yield from (("source", index, row) for index, row in enumerate(manifest.source))
    yield from (("wheel", index, row) for index, row in enumerate(manifest.wheel))


def _marks(kind: str, row: Base | Archive | Wheel) -> Iterator[str]:
    """Yield what no other row may have."""
    yield f"component {row.component!r}"
    if not isinstance(row, Base):
        yield f"{kind} file {row.file!r}"
        yield f"sha256 {row.sha256}"
