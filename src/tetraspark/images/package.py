"""The files of tetraspark as it runs here: what goes into images, and where they came from."""

import importlib.metadata
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import tetraspark
from tetraspark.errors import Problem, UsageError
from tetraspark.images.wheel import record_digest

FOLDER = Path(tetraspark.__file__).resolve().parent


@dataclass(frozen=True)
class Package:
    """The package's files by path (`tetraspark/...`), with where they came from.

    `revision` is the commit of a checkout, `VERSION-wheel` of an installed wheel, or
    `VERSION-copy` of a folder that nothing vouches for; `changed` are the files that are not
    as the commit or the wheel has them.
    """

    files: dict[str, bytes]
    revision: str
    changed: tuple[str, ...]

    @property
    def label(self) -> str:
        """The revision, with `-dirty` when there are changes."""
        return self.revision + ("-dirty" if self.changed else "")


def read_package(folder: Path = FOLDER) -> Package:
    """Read the package; raises UsageError where git is needed and does not answer."""
    root = next((one for one in folder.parents if (one / ".git").exists()), None)
    if root is not None and _tracked(root, folder):
        return _from_checkout(root, folder)
    installed = _installed(folder)
    if installed is not None:
        return installed
    found = (path for path in folder.rglob("*") if path.is_file())
    paths = sorted(path for path in found if "__pycache__" not in path.parts)
    return Package(_read(folder, paths), f"{tetraspark.__version__}-copy", ())


def refuse_dirty(package: Package) -> None:
    """Raise UsageError for a package with changes: no commit says what such an image holds."""
    if package.changed:
        names = ", ".join(package.changed[:5]) + (", …" if len(package.changed) > 5 else "")
        wanted = f"the files of {package.revision}"
        fix = "commit them, or --allow-dirty: the image is labelled so"
        raise UsageError(Problem(str(FOLDER), f"changed: {names}", wanted, fix))


def _from_checkout(root: Path, folder: Path) -> Package:
    paths = tracked_files(root, folder)
    status = _git(root, "status", "--porcelain", "-z", "--no-renames", "--", str(folder))
    changed = tuple(entry[3:] for entry in status.split("\0") if entry)
    revision = _git(root, "rev-parse", "HEAD").strip()
    return Package(_read(folder, paths), revision, changed)


def tracked_files(root: Path, folder: Path) -> list[Path]:
    """Return the files below a folder of the checkout `root` that git tracks and that are there."""
    found = [root / name for name in _tracked(root, folder)]
    return [path for path in found if path.exists() or path.is_symlink()]


def _tracked(root: Path, folder: Path) -> list[str]:
    return [name for name in _git(root, "ls-files", "-z", "--", str(folder)).split("\0") if name]


def _git(root: Path, *words: str) -> str:
    command = ["git", "-C", str(root), *words]
    # A hook of git sets GIT_DIR and the like, and git would then answer for another checkout.
    environment = {name: text for name, text in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    except OSError as error:
        reason = f"git: {error.strerror}"
        raise UsageError(Problem(str(root), reason, "git", "apt-get install git")) from error
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"git ended with {done.returncode}"]
        fix = f"git -C {root} status"
        raise UsageError(Problem(str(root), lines[0], "a checkout git can read", fix))
    return done.stdout


def _installed(folder: Path) -> Package | None:
    """Return the package as a wheel installed it, judged by the hashes of its RECORD."""
    try:
        distribution = importlib.metadata.distribution("tetraspark")
    except importlib.metadata.PackageNotFoundError:
        return None
    recorded = {
        Path(str(one.locate())).resolve(): one.hash
        for one in distribution.files or ()
        if one.parts[0] == "tetraspark" and one.hash is not None
    }
    if folder / "__init__.py" not in recorded:
        return None
    paths = sorted(path for path in recorded if path.is_file())
    files = _read(folder, paths)
    changed = tuple(
        str(path)
        for path, known in sorted(recorded.items())
        if not path.is_file() or record_digest(path.read_bytes()) != known.value
    )
    return Package(files, f"{distribution.version}-wheel", changed)


def _read(folder: Path, paths: list[Path]) -> dict[str, bytes]:
    return {path.relative_to(folder.parent).as_posix(): path.read_bytes() for path in paths}
