"""The options that say which server a suite measures: the line of a site, or any URL."""

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import httpx
import typer

from tetraspark.cli.line import DEFAULT_SITE, OpenLine, open_line
from tetraspark.cli.report_file import check_out
from tetraspark.errors import Problem, RunError, UsageError
from tetraspark.line.api import Api, api_of
from tetraspark.line.quiet import measuring
from tetraspark.measure.endpoint import Endpoint
from tetraspark.measure.secret import without_key
from tetraspark.site.key_file import read_key

MODEL_SECONDS = 10.0
MeasuredSite = Annotated[
    Path | None,
    typer.Option("--site", envvar="TETRASPARK_SITE", help="Site file of a line that is served."),
]
Url = Annotated[
    str | None, typer.Option("--url", help="Any OpenAI-compatible server, up to and with /v1.")
]
Model = Annotated[
    str | None, typer.Option("--model", help="Model to ask for; the server's only one by default.")
]
KeyFile = Annotated[
    Path | None, typer.Option("--key-file", help="API key of that server, mode 0600.")
]
Hardware = Annotated[
    str | None, typer.Option("--hardware", help="What that server runs on, in your words.")
]
OutFile = Annotated[
    Path | None,
    typer.Option("--out", help="Write the JSON report here too.", callback=check_out),
]
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed", min=0, max=2**63 - 1, help="Repeats a run's prompts; without it they are new."
    ),
]


@dataclass(frozen=True)
class Measured:
    """What a suite measures, and the line behind it where it is one of ours."""

    endpoint: Endpoint
    line: OpenLine | None = None


def open_endpoint(
    context: typer.Context,
    site: Path | None,
    url: str | None,
    model: str | None,
    key_file: Path | None,
    hardware: str | None,
) -> Endpoint:
    """Open the server to measure, and keep watches from looking at its line meanwhile.

    Raises UsageError for options that do not fit together.
    """
    found = open_measured(context, site, url, model, key_file, hardware)
    if found.line is not None:
        context.with_resource(measuring(found.line.store.root))
    return found.endpoint


def open_measured(
    context: typer.Context,
    site: Path | None,
    url: str | None,
    model: str | None,
    key_file: Path | None,
    hardware: str | None,
) -> Measured:
    """Do the same, and return the line too; both stay open until the command ends."""
    if url is not None:
        source = context.get_parameter_source("site")
        # By name: typer has a copy of click's class. A variable may name the site all day long.
        if source is not None and source.name == "COMMANDLINE":
            seen, wanted = "--site beside --url", "the line of a site, or a server at a URL"
            raise UsageError(Problem("options", seen, wanted, "leave one of them out"))
        return Measured(_of_url(url, model, key_file, hardware))
    if key_file or model or hardware:
        seen = "--model, --key-file or --hardware without --url"
        wanted = "them with --url; a line's own are in its site file"
        raise UsageError(Problem("options", seen, wanted, "leave them out, or add --url"))
    line = context.with_resource(open_line(site or DEFAULT_SITE))
    return Measured(_of_line(line), line)


def _of_url(url: str, model: str | None, key_file: Path | None, hardware: str | None) -> Endpoint:
    if not url.startswith(("http://", "https://")):
        fix = f"--url http://{url}"
        raise UsageError(Problem("--url", repr(url), "http://HOST:PORT/v1", fix))
    _require_server(url)
    key = None if key_file is None else read_key(key_file)
    base = url.rstrip("/")
    api = Api(base, model or _only_model(Api(base, "", key)), key)
    return Endpoint(api, "unknown", hardware or "not told (--hardware)")


def _of_line(line: OpenLine) -> Endpoint:
    run, plan = line.run()
    ranks = len(plan["ranks"])
    local = plan["kind"] == "local"
    return Endpoint(
        api=api_of(plan, line.key(), line.runner),
        hardware_class="stand-in" if local else "spark",
        hardware=f"{ranks} ranks on one machine's CPU (a stand-in)"
        if local
        else f"{ranks} nodes of the site",
        line=plan["line"],
        run=run.id,
        site_sha256=plan["site_sha256"],
        effective=run.effective() or (),
    )


def _require_server(url: str) -> None:
    """Raise UsageError for a URL without a host, or with a password: those reach the report."""
    wanted, fix = "http://HOST:PORT/v1", "--url http://127.0.0.1:8000/v1"
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise UsageError(Problem("--url", str(error), wanted, fix)) from error
    if parsed.userinfo:
        seen = "a user's name or password in the URL"
        raise UsageError(Problem("--url", seen, wanted, "--key-file with the key"))
    if not parsed.host or parsed.query or parsed.fragment:
        raise UsageError(Problem("--url", repr(url), wanted, fix))


def _only_model(api: Api) -> str:
    try:
        names = api.models(MODEL_SECONDS)
    except RunError as error:
        raise _foreign(error.problems[0].seen, error.problems[0].wanted, api) from None
    except RecursionError as error:
        raise _foreign("an answer of another shape", "an OpenAI-compatible answer", api) from error
    if not all(isinstance(name, str) for name in names):
        raise _foreign("a model whose name is no text", "an OpenAI-compatible answer", api)
    if len(names) == 1:
        return names[0]
    fix = f"--model {names[0]}" if names else "is this the right --url?"
    seen = without_key(f"{len(names)} models: {', '.join(names)}", api.key)
    raise UsageError(Problem(api.url, seen, "one model, or --model", fix))


def _foreign(seen: str, wanted: str, api: Api) -> RunError:
    """Return what is wrong with a server that is no line of ours, in words without its key."""
    no_path = "HTTP 404" in seen and not api.url.endswith("/v1")
    fix = f"--url {api.url}/v1" if no_path else "look at the server, or --model and another --url"
    return RunError(Problem(api.url, without_key(seen, api.key), wanted, fix))


def seed_of(seed: int | None) -> int:
    """Return the seed of a run: the given one, or one that no run had before."""
    return random.SystemRandom().randrange(10**9) if seed is None else seed
