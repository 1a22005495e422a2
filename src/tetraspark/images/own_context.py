"""The build context of a user's own Dockerfile: the files beside it, and its arguments."""

from tetraspark.errors import Problem, UsageError
from tetraspark.images.context import ContextFile
from tetraspark.images.own_dockerfile import (
    BASE_ARGUMENT,
    INDEX_ARGUMENT,
    PREDEFINED,
    OwnDockerfile,
    repository_of,
)
from tetraspark.images.package import tracked_files
from tetraspark.images.recipe_files import FILES
from tetraspark.images.tree import file_sha256
from tetraspark.site.load import LoadedSite
from tetraspark.site.machines import Image


def own_files(own: OwnDockerfile) -> list[ContextFile]:
    """Return the files of the Dockerfile's folder that git tracks.

    Raises UsageError for links, for a folder of the recipe's name, and for a Dockerfile that is
    not tracked itself.
    """
    folder = own.path.parent
    found = []
    for path in tracked_files(repository_of(own.path) or folder, folder):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink() or not path.is_file():
            fix = "put the file itself there"
            raise UsageError(Problem(str(path), "a link", "files only in a build context", fix))
        if name.split("/")[0] == FILES:
            wanted, fix = "another name: the recipe's files are there", "rename the folder"
            raise UsageError(Problem(str(path), f"{FILES}/ in the context", wanted, fix))
        mode = 0o755 if path.stat().st_mode & 0o100 else 0o644
        found.append(ContextFile(name, path, file_sha256(path), mode))
    if own.name not in {one.path for one in found}:
        fix = f"git add {own.path}"
        raise UsageError(Problem(str(own.path), "not tracked by git", "a tracked file", fix))
    return found


def own_arguments(
    loaded: LoadedSite, image: Image, own: OwnDockerfile, base: str
) -> dict[str, str]:
    """Return the build arguments; raises UsageError for each that the Dockerfile does not declare.

    docker ignores such an argument with a warning, or refuses it, by version.
    """
    given = dict(image.build_args)
    if image.pip_index is not None:
        given[INDEX_ARGUMENT] = image.pip_index
    undeclared = [name for name in given if name not in own.arguments | PREDEFINED]
    if undeclared:
        raise UsageError(*(_undeclared(loaded, name, own) for name in undeclared))
    return given | ({BASE_ARGUMENT: base} if BASE_ARGUMENT in own.arguments else {})


def _undeclared(loaded: LoadedSite, name: str, own: OwnDockerfile) -> Problem:
    key = "image.pip_index" if name == INDEX_ARGUMENT else f"image.build_args.{name}"
    where, wanted = loaded.origin(key).where, f"an argument that {own.path} declares"
    fix = f"add ARG {name} there, or remove it here"
    return Problem(where, f"build argument `{name}`", wanted, fix)
