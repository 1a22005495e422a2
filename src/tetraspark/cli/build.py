"""`tetraspark build`: the same image on every node, and the proof that it is the same."""

from contextlib import nullcontext
from dataclasses import replace
from typing import Annotated

import typer

from tetraspark.cli.build_view import BuildView, print_build_plan, print_report
from tetraspark.cli.fetch import fetch_files
from tetraspark.cli.line import DEFAULT_SITE, DryRun, Json, SitePath
from tetraspark.cli.output import err, out, print_json, print_problems
from tetraspark.cli.sources import Manifests
from tetraspark.errors import Problem, UsageError
from tetraspark.fleet.login import Login, logins
from tetraspark.fleet.ssh import SshRunner
from tetraspark.fleet.state_home import state_home
from tetraspark.images.assemble import build_context, image_of
from tetraspark.images.build import BuildReport
from tetraspark.images.build import build as build_on_nodes
from tetraspark.images.build_folder import context_folder, thrown_away, written
from tetraspark.images.build_plan import BuildPlan, build_plan
from tetraspark.images.cache import Cache, default_cache
from tetraspark.images.check_pins import check_pins as check
from tetraspark.images.check_pins import drift_problems
from tetraspark.images.context import BuildContext
from tetraspark.images.fetch import Fetch
from tetraspark.images.manifest import Manifest, Recipe, load_manifest
from tetraspark.site.load import LoadedSite, load_site
from tetraspark.site.machines import Image


def build(
    context: typer.Context,
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
    manifest: Manifests = None,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Build the image on the head and every worker, and prove that all built the same."""
    _refuse_idle_options(context, check_pins)
    loaded = _chosen(load_site(site), recipe)
    image = _image(loaded)
    print_problems(loaded.warnings, "warning", "yellow")
    sources, cache = load_manifest(*(manifest or ())), Cache(default_cache())
    if check_pins:
        _check_pins(Fetch(cache, mirror), sources, image.recipe, json)
        return
    nodes = _nodes(loaded, node)
    folder = context_folder(cache, loaded.site.name)
    with thrown_away(cache) if dry_run else nullcontext(cache) as used:
        files = build_context(loaded, used, manifest=sources, allow_dirty=allow_dirty)
    planned = build_plan(loaded.site.name, files, nodes, image, folder, use_cache=not no_cache)
    if dry_run:
        print_json(planned.as_dict()) if json else print_build_plan(planned)
        return
    report = _build(planned, files, cache, json)
    print_json(report.as_dict()) if json else print_report(report)
    if not report.ok:
        raise typer.Exit(1)


def _build(plan: BuildPlan, context: BuildContext, cache: Cache, json: bool) -> BuildReport:
    """Build; an interrupt and SIGTERM, which `main` makes a SystemExit, are told and end it."""
    logs = state_home() / plan.line / "build"
    view = BuildView([login.node for login in plan.nodes])
    try:
        with written(context, cache, plan.line), SshRunner(plan.nodes) as runner, view.shown():
            return build_on_nodes(plan, runner, logs, view.observe)
    except (KeyboardInterrupt, SystemExit) as end:
        err.print("interrupted: no node builds any more, and no image was compared")
        if json:
            print_json({"ok": False, "interrupted": True, "problems": []})
        code = 130 if isinstance(end, KeyboardInterrupt) else end.code
        raise SystemExit(code) from None


def _refuse_idle_options(context: typer.Context, check_pins: bool) -> None:
    """Refuse what has no effect: the options of a build to --check-pins, and --mirror to a build.

    A mirror from the environment is for `fetch` as well, and stays without effect here.
    """
    idle = ("node", "no_cache", "allow_dirty", "dry_run") if check_pins else ("mirror",)
    given = [
        f"--{name.replace('_', '-')}"
        for name in idle
        if (source := context.get_parameter_source(name)) and source.name == "COMMANDLINE"
    ]
    if given and check_pins:
        wanted = "--check-pins without it: it touches no node, and may fetch"
        fix = "tetraspark fetch --list shows what is fetched, and fetches nothing"
        raise UsageError(*(Problem(one, "given with --check-pins", wanted, fix) for one in given))
    if given:
        wanted = "--check-pins with it: a build takes what is fetched"
        fix = "tetraspark fetch --mirror URL, then tetraspark build"
        raise UsageError(Problem("--mirror", "given without --check-pins", wanted, fix))


def _image(loaded: LoadedSite) -> Image:
    if loaded.site.kind == "local":
        where, wanted = loaded.origin("kind").where, "a fleet: a local line needs no image"
        fix = f"tetraspark serve --site {loaded.path}"
        raise UsageError(Problem(where, 'kind = "local"', wanted, fix))
    return image_of(loaded)


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
        fix = f"tetraspark plan --site {loaded.path} shows them"
        raise UsageError(*(Problem("--node", repr(name), wanted, fix) for name in unknown))
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
