"""A site file from disk to a checked value, every key with the line it came from."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from tetraspark.errors import Problem, UsageError
from tetraspark.site.document import parse_toml
from tetraspark.site.experts import expert_findings, model_folder, read_experts
from tetraspark.site.explain import explain
from tetraspark.site.finding import Finding
from tetraspark.site.keypath import KeyPath, dotted
from tetraspark.site.origin import DEFAULT, Origin
from tetraspark.site.rules import cross_check, cross_warnings
from tetraspark.site.schema import Site
from tetraspark.site.secret import hide
from tetraspark.site.source import Source, read_source

__all__ = ["LoadedSite", "Origin", "Site", "examine", "load_site", "load_source"]

ABSENT = "name a site file: --site FILE; there are examples in sites/ of the repository"


@dataclass(frozen=True)
class LoadedSite:
    """A site and its provenance.

    `sha256` is the hex digest of the file's bytes as they were read, before a byte order mark or
    CRLF is taken out; `text` is what was read after it. `origins` has every key of the file,
    tables and list elements included.
    """

    site: Site
    path: Path
    sha256: str
    origins: Mapping[str, Origin] = field(default_factory=dict)
    warnings: tuple[Problem, ...] = ()
    text: str = field(default="", repr=False)

    def resolve(self, path: str, key: str) -> Path:
        """Return a path of the site as it is on this machine; relative ones start at the file.

        Raises UsageError for the home folder of a user this machine does not have.
        """
        try:
            return (self.path.parent / Path(path).expanduser()).resolve()
        except RuntimeError as error:
            seen = f"`{key}` is {path!r}: {error}"
            wanted = "a path, with `~` for your own home folder"
            raise UsageError(Problem(self.origin(key).where, seen, wanted)) from error

    def origin(self, key: str) -> Origin:
        """Return where a value came from, by dotted key (`engine.tp`, `nodes[0].name`)."""
        return self.origins.get(key, DEFAULT)


def load_site(path: Path) -> LoadedSite:
    """Read and check a site file; raises UsageError with every problem found, each with its line.

    Byte and TOML syntax errors stop the reading, so they come alone. A file in memory may be of
    another machine, so that the Dockerfile is there is asked of one on disk alone.
    """
    source = read_source(path, ABSENT)
    loaded = load_source(source)
    key = "image.dockerfile"
    image = loaded.site.image
    if image is not None and image.dockerfile is not None:
        dockerfile = loaded.resolve(image.dockerfile, key)
        if not dockerfile.is_file():
            wanted, fix = f"a Dockerfile at {dockerfile}", "correct the path: it starts at the site"
            raise UsageError(Problem(loaded.origin(key).where, "no such file", wanted, fix))
    return loaded


def load_source(source: Source) -> LoadedSite:
    """Check a site file that is already in memory; raises UsageError as `load_site` does."""
    document, keys = parse_toml(source)
    site, findings = examine(document)
    experts = read_experts(model_folder(source.path.parent, document))
    divided = list(expert_findings(document, experts))
    # these know the model, so they suggest only what passes
    findings = [one for one in findings if one.path not in {it.path for it in divided}] + divided
    if site is None or findings:
        raise UsageError(*sorted_problems(source, keys.lines, findings))
    origins = {dotted(path): Origin("file", source.where(n)) for path, n in keys.lines.items()}
    warnings = sorted_problems(source, keys.lines, cross_warnings(document))
    told = (*source.warnings, *warnings)
    return LoadedSite(
        site, source.path, source.sha256, MappingProxyType(origins), told, source.text
    )


def examine(document: Mapping[str, Any]) -> tuple[Site | None, list[Finding]]:
    """Return the site, or None and everything wrong with the document (lists as tuples)."""
    found = cross_check(document)
    try:
        site = Site.model_validate(document)
    except ValidationError as error:
        told = {finding.path for finding in found}
        found += [finding for finding in explain(error) if finding.path not in told]
        return None, found
    return site, []


def sorted_problems(
    source: Source, lines: Mapping[KeyPath, int], findings: Iterable[Finding]
) -> list[Problem]:
    """Give each finding its line, nearest enclosing table for an absent key, in file order."""
    placed = [(_line(lines, item.path), item) for item in findings]
    placed.sort(key=lambda pair: pair[0])
    return [_problem(source, lines, line, item) for line, item in placed]


def _problem(source: Source, lines: Mapping[KeyPath, int], line: int, item: Finding) -> Problem:
    others = [source.where(lines[path]) for path in item.related if path in lines]
    seen = f"{hide(item.seen)} (see {', '.join(others)})" if others else hide(item.seen)
    return Problem(source.where(line), seen, hide(item.wanted), hide(item.fix))


def _line(lines: Mapping[KeyPath, int], path: KeyPath) -> int:
    while path:
        if path in lines:
            return lines[path]
        path = path[:-1]
    return 1
