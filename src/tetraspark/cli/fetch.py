"""`tetraspark fetch`: bring the files that images are made of, each checked by its hash."""

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
from rich.table import Column, Table
from rich.text import Text

from tetraspark.cli.line import DEFAULT_SITE, Json, SitePath
from tetraspark.cli.output import err, out, print_json
from tetraspark.cli.sources import Manifests
from tetraspark.errors import Problem, RunError, UsageError
from tetraspark.images.cache import Cache, default_cache
from tetraspark.images.fetch import Fetch, Fetched, Row, look, rows_of, verify
from tetraspark.images.manifest import Manifest, Recipe, load_manifest
from tetraspark.site.load import load_site


def fetch(
    context: typer.Context,
    components: Annotated[
        list[str] | None, typer.Argument(metavar="[COMPONENT]...", help="Default: a recipe's.")
    ] = None,
    site: SitePath = DEFAULT_SITE,
    recipe: Annotated[
        Recipe | None, typer.Option("--recipe", help="Files of this recipe; default: the site's.")
    ] = None,
    mirror: Annotated[
        str | None,
        typer.Option(envvar="TETRASPARK_MIRROR", help="URL that has the files as HOST/PATH."),
    ] = None,
    local: Annotated[
        Path | None, typer.Option("--from", help="File, or folder of files, on this machine.")
    ] = None,
    show: Annotated[bool, typer.Option("--list", help="Show what there is, and stop.")] = False,
    check: Annotated[
        bool, typer.Option("--verify", help="Hash all that is in the cache, and stop.")
    ] = False,
    manifest: Manifests = None,
    json: Json = False,
) -> None:
    """Download the pinned files of an image; nothing with another hash is ever kept."""
    _check_options(context, show=show, check=check)
    sources, cache = load_manifest(*(manifest or ())), Cache(default_cache())
    if check:
        _verify(cache, sources, json)
        return
    if recipe is None and not components and not show:
        recipe = _recipe_of(site, sources)
    rows = rows_of(sources, recipe, components or ())
    if show:
        _report([look(cache, row) for row in rows], json)
        return
    _check_local(local, rows)
    try:
        _report(fetch_files(Fetch(cache, mirror, local), rows), json)
    except KeyboardInterrupt:
        err.print("interrupted: what arrived is kept, and the same command goes on from there")
        raise typer.Exit(130) from None


def _check_options(context: typer.Context, *, show: bool, check: bool) -> None:
    """Refuse options that would be ignored; those from the environment may be."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    typed = {name for name, one in sources.items() if one and one.name == "COMMANDLINE"}
    if check:
        verb, ignored = "--verify", {"components", "recipe", "mirror", "local", "show"}
    elif show:
        verb, ignored = "--list", {"mirror", "local"}
    else:
        verb, ignored = "--from", {"mirror"} if "local" in typed else set()
    names = {"components": "COMPONENT", "local": "--from", "show": "--list"}
    wrong = ", ".join(sorted(names.get(name, f"--{name}") for name in typed & ignored))
    if wrong:
        fix = f"leave out {verb}, or {wrong}"
        raise UsageError(Problem(verb, f"{wrong} beside it", f"{verb} without it", fix))


def _recipe_of(path: Path, sources: Manifest) -> Recipe:
    loaded = load_site(path)
    if loaded.site.image is None:
        where, fix = loaded.origin("kind").where, f"{sources.fetch_command} --recipe release"
        raise UsageError(Problem(where, "a site without [image]", "a recipe to fetch for", fix))
    return loaded.site.image.recipe


def _check_local(local: Path | None, rows: tuple[Row, ...]) -> None:
    if local is not None and not local.exists():
        problem = Problem("--from", f"{local}: no such file or folder", "one", f"ls {local.parent}")
        raise UsageError(problem)
    if local is not None and not local.is_dir() and len(rows) != 1:
        seen = f"one file for {len(rows)} components"
        fix = "name the component, or the folder of the files"
        raise UsageError(Problem("--from", seen, "a folder, or one component", fix))


def fetch_files(fetcher: Fetch, rows: Iterable[Row]) -> list[Fetched]:
    """Fetch files, showing how far each is."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    bar = Progress(*columns, TransferSpeedColumn(), console=err, transient=True)
    shown: AbstractContextManager[object] = bar if err.is_terminal else nullcontext()
    tasks = {row.sha256: bar.add_task(row.component, total=row.size, visible=False) for row in rows}

    def arrived(row: Row, have: int) -> None:
        bar.update(tasks[row.sha256], completed=have, visible=have != row.size)

    def waiting() -> None:
        err.print(f"another fetch is at work in {fetcher.cache.folder}: waiting for it")

    found = []
    with shown:
        for one in fetcher.run(rows, arrived, waiting):
            found.append(one)
            if not err.is_terminal:
                err.print(f"{one.component}: {one.state}", markup=False)
    return found


def _verify(cache: Cache, sources: Manifest, json: bool) -> None:
    with err.status("hashing"):
        problems = verify(cache, sources)
    if problems:
        raise RunError(*problems)
    report = {"ok": True, "cache": str(cache.folder), "files": len(cache.files())}
    if json:
        print_json(report)
        return
    out.print(f"{report['files']} files in {cache.folder}, each as its name says", markup=False)


def _report(found: list[Fetched], json: bool) -> None:
    damaged = any(one.state == "damaged" for one in found)
    if json:
        print_json({"ok": not damaged, "files": [one.as_dict() for one in found]})
    elif found:
        names = ("component", "bytes", "sha256", "licence", "state")
        columns = (Column(name, overflow="fold") for name in names)
        table = Table(*columns, box=None, pad_edge=False)
        for one in found:
            size = "not stated" if one.size is None else f"{one.size}"
            cells = (one.component, size, one.sha256[:12], one.licence, one.state)
            table.add_row(*(Text(cell) for cell in cells))
        out.print(table)
    else:
        out.print("no files: the base image is all that is needed")
    if damaged:
        raise typer.Exit(1)
