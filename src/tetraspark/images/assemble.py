"""From a site's [image] to its build context: which files, which Dockerfile, which labels."""

import hashlib
import json

import tetraspark
from tetraspark.errors import Problem, UsageError
from tetraspark.images.cache import Cache
from tetraspark.images.context import BuildContext, ContextFile, tree_of
from tetraspark.images.dockerfile import render
from tetraspark.images.manifest import Manifest, load_manifest
from tetraspark.images.own_context import own_arguments, own_files
from tetraspark.images.own_dockerfile import read_own
from tetraspark.images.package import Package, read_package, refuse_dirty
from tetraspark.images.recipe_files import recipe_files
from tetraspark.site.load import LoadedSite
from tetraspark.site.machines import Image


def image_of(loaded: LoadedSite) -> Image:
    """Return the image that a site names. Raises UsageError without one."""
    if loaded.site.image is None:
        where = loaded.origin("kind").where
        raise UsageError(Problem(where, "no [image]", "the image to build", "add [image]"))
    return loaded.site.image


def build_context(
    loaded: LoadedSite, cache: Cache, *, manifest: Manifest | None = None, allow_dirty: bool = False
) -> BuildContext:
    """Return the build context of a site's image; nothing is built or downloaded.

    Files made here (the Dockerfile, tetraspark's wheel) are put into the cache. Raises
    UsageError for a site without an image, a Dockerfile that is not accepted, and changed files
    of tetraspark without `allow_dirty`; RunError naming every file that is not fetched.
    """
    image = image_of(loaded)
    rows = (manifest or load_manifest()).of(image.recipe)
    package = read_package()
    if not allow_dirty:
        refuse_dirty(package)
    base = base_of(loaded, image, rows)
    if image.dockerfile is not None:
        own = read_own(loaded, image.dockerfile)
        extra = recipe_files(image.recipe, rows, package, cache) if own.uses_files else []
        files, name, text = [*own_files(own), *extra], own.name, own.source.text
        arguments = own_arguments(loaded, image, own, base)
    else:
        name, text = "Dockerfile", render(image.recipe, base, next(iter(rows.source), None))
        files = recipe_files(image.recipe, rows, package, cache)
        files, arguments = [*files, ContextFile.made(name, text.encode(), cache)], {}
    build_args = tuple(sorted(arguments.items()))
    return BuildContext(
        recipe=image.recipe,
        tag=image.tag,
        base=base,
        platform=rows.base[0].platform if rows.base else "linux/arm64",
        dockerfile=name,
        dockerfile_text=text,
        files=tuple(sorted(files, key=lambda one: one.path)),
        build_args=build_args,
        labels=_labels(image, base, files, build_args, package),
        network="none" if image.dockerfile is None else "default",
    )


def _labels(
    image: Image,
    base: str,
    files: list[ContextFile],
    build_args: tuple[tuple[str, str], ...],
    package: Package,
) -> tuple[tuple[str, str], ...]:
    """Return what an image says of itself; equal on every node, or it is not the same image."""
    return (
        ("tetraspark.base", base),
        ("tetraspark.build-args", hashlib.sha256(json.dumps(build_args).encode()).hexdigest()),
        ("tetraspark.context", tree_of(files)),
        ("tetraspark.recipe", image.recipe),
        ("tetraspark.revision", package.label),
        ("tetraspark.version", tetraspark.__version__),
    )


def base_of(loaded: LoadedSite, image: Image, rows: Manifest) -> str:
    """Return the image that a site's is built on, by digest; `rows` are those of its recipe.

    Raises UsageError where neither the site nor the manifest names one.
    """
    if image.base is not None:
        return image.base
    if not rows.base:
        seen = f"no base image for recipe {image.recipe!r} in the sources manifest"
        where, fix = loaded.origin("image.recipe").where, 'base = "NAME@sha256:DIGEST"'
        raise UsageError(Problem(where, seen, "`image.base` with its digest", fix))
    return rows.base[0].pinned
