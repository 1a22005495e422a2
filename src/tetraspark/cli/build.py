"""`tetraspark build`: the same image on every node, and the proof that it is the same."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from tetraspark.cli.build_view import BuildView, print_build_plan, print_report
from tetraspark.cli.fetch import fetch_files
from tetraspark.cli.line import DEFAULT_SITE, DryRun, Json, SitePath
from tetraspark.cli.output import err, out, print_json, print_problems
from tetraspark.errors import Problem, UsageError
from tetraspark.fleet.login import Login, logins
from tetraspark.fleet.ssh import SshRunner
from tetraspark.images.assemble import build_context
from tetraspark.images.build import BuildReport
from tetraspark.images.build import build as build_on_nodes
from tetraspark.images.build_folder import written
from tetraspark.images.build_plan import BuildPlan, build_plan
from tetraspark.images.cache import Cache, default_cache
from tetraspark.images.check_pins import check_pins as check
from tetraspark.images.check_pins import drift_problems
from tetraspark.images.context import BuildContext
from tetraspark.images.fetch import Fetch
from tetraspark.images.manifest import Manifest, Recipe, load_manifest
from tetraspark.line.run import state_home
from tetraspark.site.load import LoadedSite, load_site
from tetraspark.site.machines import Image


def build(
    site: SitePath = DEFAULT_SITE,
    recipe: Annotated[
        Recipe | None, typer.Option("--recipe", help="Build this recipe, not the site's.")
    ] = None,
    node: Annotated[
        list[str] | None, typer.Option("--node", help="Only this node; may be repeated.")
    ] = None,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Run every step again on the nodes.")
    ] = False,
    check_pins: Annotated[
        bool,
        typer.Option("--check-pins", help="Fetch, hash, look for drift; build nothing."),
    ] = False,
    allow_dirty: Annotated[
        bool, typer.Option("--allow-dirty", help="Accept changed files; the image says so.")
    ] = False,
    mirror: Annotated[
        str | None,
        typer.Option(envvar="TETRASPARK_MIRROR", help="For --check-pins: has files as HOST/PATH."),
    ] = None,
    manifest: Annotated[
        list[Path] | None, typer.Option(help="Another sources manifest, for tests and forks.")
    ] = None,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Build the image on the head and every worker, and prove that all built the same."""
    loaded = _chosen(load_site(site), recipe)
    print_problems(loaded.warnings, "warning", "yellow")
    sources, cache = load_manifest(*(manifest or ())), Cache(default_cache())
    if check_pins:
        _check_pins(Fetch(cache, mirror), sources, _image(loaded).recipe, json)
        return
    context = build_context(loaded, cache, manifest=sources, allow_dirty=allow_dirty)
    planned = build_plan(
        loaded.site.name,
        context,
        _nodes(loaded, node),
        _image(loaded),
        use_cache=not no_cache,
    )
    if dry_run:
        print_json(planned.as_dict()) if json else print_build_plan(planned)
        return
    try:
        report = _build(planned, context, cache)
    except KeyboardInterrupt:
        err.print("interrupted: no node builds any more, and no image was compared")
        raise typer.Exit(130) from None
    print_json(report.as_dict()) if json else print_report(report)
    if not report.ok:
        raise typer.Exit(1)


def _build(plan: BuildPlan, context: BuildContext, cache: Cache) -> BuildReport:
    logs = state_home() / plan.line / "build"
    view = BuildView([login.node for login in plan.nodes])
    with (
        written(context, cache, plan.line) as folder,
        SshRunner(plan.nodes) as runner,
        view.shown(),
    ):
        return build_on_nodes(plan, folder, runner, logs, view.observe)


def _image(loaded: LoadedSite) -> Image:
    if loaded.site.image is None:
        where = loaded.origin("kind").where
        raise UsageError(Problem(where, "no [image]", "the image to build", "add [image]"))
    return loaded.site.image


def _chosen(loaded: LoadedSite, recipe: Recipe | None) -> LoadedSite:
    """Return the site with another recipe: of the line itself, only its image is looked at."""
    if recipe is None:
        return loaded
    image = _image(loaded).model_copy(update={"recipe": recipe})
    return replace(loaded, site=loaded.site.model_copy(update={"image": image}))


def _nodes(loaded: LoadedSite, names: list[str] | None) -> tuple[Login, ...]:
    known = logins(loaded)
    unknown = [name for name in names or () if name not in {login.node for login in known}]
    if unknown:
        wanted = "one of " + ", ".join(login.node for login in known)
        raise UsageError(*(Problem("--node", repr(name), wanted) for name in unknown))
    return tuple(login for login in known if not names or login.node in names)


def _check_pins(fetch: Fetch, sources: Manifest, recipe: str, json: bool) -> None:
    found = check(fetch.cache, sources, recipe, lambda rows: fetch_files(fetch, rows))
    if json:
        print_json(found.as_dict())
    else:
        hooks = f", {len(found.findings) - len(found.drifted)} of {len(found.findings)} places"
        tail = f"{hooks} of the engine as known" if found.findings else ""
        out.print(f"{recipe}: {len(found.files)} files as pinned{tail}", markup=False)
    if found.drifted:
        print_problems(drift_problems(found))
        raise typer.Exit(1)
