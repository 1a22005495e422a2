"""The sources manifest as a value: base images, archives and wheels, each with its hash."""

import re
from collections.abc import Mapping
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator, Field, ValidationError, model_validator

from tetraspark.errors import UsageError
from tetraspark.site.document import parse_toml
from tetraspark.site.explain import explain
from tetraspark.site.finding import Finding
from tetraspark.site.keypath import KeyPath
from tetraspark.site.load import sorted_problems
from tetraspark.site.section import Section, refusal
from tetraspark.site.source import Source, read_source

Recipe = Literal["base", "canary", "canary-roce", "release"]
SHIPPED = ("sources.toml", "release.toml")


def _pattern(pattern: str, what: str, fix: str) -> AfterValidator:
    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise refusal(f"{text[:100]!r}", what, fix)
        return text

    return AfterValidator(check)


def _url(text: str) -> str:
    parts = urlsplit(text)
    if parts.username or parts.password or parts.query or parts.fragment:
        wanted = "a URL without credentials, query or fragment: it is public"
        raise refusal(f"URL of {parts.hostname} with more in it", wanted, "shorten it")
    if parts.scheme != "https" or not parts.hostname or not file_name(text):
        raise refusal(f"URL {text!r}", "https://HOST/…/FILE", "correct it")
    return text


def file_name(url: str) -> str:
    """Return the last part of a URL's path."""
    return unquote(urlsplit(url).path.rsplit("/", 1)[-1])


Sha256 = Annotated[
    str, _pattern(r"[0-9a-f]{64}", "a sha256: 64 lower-case hex digits", "sha256sum FILE")
]
Digest = Annotated[
    str,
    _pattern(
        r"sha256:[0-9a-f]{64}",
        "`sha256:` and 64 hex digits",
        "docker buildx imagetools inspect REFERENCE",
    ),
]
Commit = Annotated[
    str, _pattern(r"[0-9a-f]{40}", "a whole commit: 40 hex digits", "git rev-parse REF")
]
Word = Annotated[
    str, _pattern(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", "a-z, 0-9, `-` and `.`", "rename it")
]
Url = Annotated[str, AfterValidator(_url)]
Recipes = Annotated[tuple[Recipe, ...], Field(min_length=1)]


class Base(Section):
    """An image to build on, pinned by digest."""

    component: Word = Field(description="name of the row")
    reference: str = Field(description="name and tag, for people: the digest decides")
    digest: Digest = Field(description="digest of the image for the platform")
    platform: Literal["linux/arm64", "linux/amd64"] = Field(description="what it runs on")
    licence: str = Field(description="under which terms")
    recipes: Recipes = Field(description="recipes it is the base of")

    @property
    def pinned(self) -> str:
        """The reference with its digest, as `FROM` takes it."""
        return f"{self.reference}@{self.digest}"


class File(Section):
    """A file to download: where it is, and the hash that decides whether it is the right one."""

    url: Url = Field(description="https URL")
    sha256: Sha256 = Field(description="sha256 of the file")
    size: int | None = Field(default=None, ge=1, description="bytes, where the source states them")
    licence: str = Field(description="under which terms")
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
    """All rows; no two are of the same component, file or hash within a recipe."""

    base: tuple[Base, ...] = Field(default=(), description="images to build on")
    source: tuple[Archive, ...] = Field(default=(), description="archives")
    wheel: tuple[Wheel, ...] = Field(default=(), description="wheels")

    @property
    def downloads(self) -> tuple[Archive | Wheel, ...]:
        """Every file to download, in the order of the manifest."""
        return (*self.source, *self.wheel)

    def of(self, recipe: str) -> "Manifest":
        """Return the rows of one recipe."""
        return Manifest(
            base=tuple(row for row in self.base if recipe in row.recipes),
            source=tuple(row for row in self.source if recipe in row.recipes),
            wheel=tuple(row for row in self.wheel if recipe in row.recipes),
        )


def load_manifest(*paths: Path) -> Manifest:
    """Read manifests and join them; without a path, those of this package.

    Raises UsageError with every problem found, each with its line.
    """
    if not paths:
        with as_file(files("tetraspark.images")) as folder:
            return load_manifest(*(folder / name for name in SHIPPED))
    parts = [_load(read_source(path)) for path in paths]
    return Manifest(
        base=tuple(row for part in parts for row in part.base),
        source=tuple(row for part in parts for row in part.source),
        wheel=tuple(row for part in parts for row in part.wheel),
    )


def _load(source: Source) -> Manifest:
    document, keys = parse_toml(source)
    try:
        manifest = Manifest.model_validate(document)
    except ValidationError as error:
        findings = explain(error, Manifest)
    else:
        findings = list(_repeats(document))
        if not findings:
            return manifest
    raise UsageError(*sorted_problems(source, keys.lines, findings))


def _repeats(document: Mapping[str, Any]) -> list[Finding]:
    """Find two rows of one component."""
    found, first = [], dict[str, KeyPath]()
    for kind in ("base", "source", "wheel"):
        for index, row in enumerate(document.get(kind, ())):
            path: KeyPath = (kind, index)
            name = row.get("component") or f"{row['name']}-{row['version']}"
            if name in first:
                seen, fix = f"component {name!r} again", "delete one, or join their recipes"
                found.append(Finding(path, seen, "each component once", fix, (first[name],)))
            first.setdefault(name, path)
    return found
