"""What a recipe puts below `files/` of a context: fetched files, our wheel, scripts, lists."""

from collections.abc import Iterable
from pathlib import Path

import tetraspark
from tetraspark.errors import Problem, RunError
from tetraspark.images.cache import Cache
from tetraspark.images.context import ContextFile
from tetraspark.images.manifest import Archive, Manifest, Recipe, Wheel
from tetraspark.images.package import Package
from tetraspark.images.recipe import RECIPES
from tetraspark.images.wheel import make_wheel, wheel_name

FILES = "files"
INSIDE = Path(__file__).parent / "inside"
SCRIPTS = ("base_check.py", "health.py", "receipt.py")


def recipe_files(
    recipe: Recipe, manifest: Manifest, package: Package, cache: Cache
) -> list[ContextFile]:
    """Return the files of a recipe, whose rows `manifest` holds.

    Raises RunError saying how many files are not fetched, with the first of them.
    """
    missing = [row for row in manifest.downloads if not cache.has(row.sha256)]
    if missing:
        names = ", ".join(row.component for row in missing[:5]) + ", …" * (len(missing) > 5)
        seen = f"{len(missing)} of {len(manifest.downloads)} files not fetched: {names}"
        fix = f"{manifest.fetch_command} --recipe {recipe}"
        raise RunError(Problem(f"recipe {recipe}", seen, "all of them", fix))
    found = [
        ContextFile(f"{FILES}/{_place(row)}", cache.path(row.sha256), row.sha256)
        for row in manifest.downloads
    ]
    pins = [(row.name, row.version, row.sha256) for row in manifest.wheel]
    if RECIPES[recipe].plugin:
        version = tetraspark.__version__
        path = f"{FILES}/wheels/{wheel_name(version)}"
        found.append(ContextFile.made(path, make_wheel(package.files, version), cache))
        pins.append(("tetraspark", version, found[-1].sha256))
    for name in SCRIPTS:
        found.append(ContextFile.made(f"{FILES}/{name}", (INSIDE / name).read_bytes(), cache))
    found.append(ContextFile.made(f"{FILES}/requirements.txt", _requirements(pins), cache))
    return [*found, ContextFile.made(f"{FILES}/SHA256SUMS", _sums(found), cache)]


def _place(row: Archive | Wheel) -> str:
    return f"{'wheels' if isinstance(row, Wheel) else 'sources'}/{row.file}"


def _requirements(pins: Iterable[tuple[str, str, str]]) -> bytes:
    """Return the requirements file of (name, version, sha256), as `--require-hashes` wants it."""
    lines = (f"{name}=={version} --hash=sha256:{sha256}\n" for name, version, sha256 in pins)
    return "".join(lines).encode()


def _sums(files: Iterable[ContextFile]) -> bytes:
    """Return the list that `sha256sum --check` reads below `files/`."""
    lines = sorted((one.path.removeprefix(f"{FILES}/"), one.sha256) for one in files)
    return "".join(f"{sha256}  {path}\n" for path, sha256 in lines).encode()
