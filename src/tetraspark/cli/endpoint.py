"""The options that say which server a suite measures: the line of a site, or any URL."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tetraspark.cli.line import DEFAULT_SITE, OpenLine, open_line
from tetraspark.errors import Problem, UsageError
from tetraspark.line.api import Api, api_of, read_key
from tetraspark.measure.endpoint import Endpoint

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
OutFile = Annotated[Path | None, typer.Option("--out", help="Write the JSON report here too.")]


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
    """Open the server to measure. Raises UsageError for options that do not fit together."""
    return open_measured(context, site, url, model, key_file, hardware).endpoint


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


def _only_model(api: Api) -> str:
    names = api.models(MODEL_SECONDS)
    if len(names) == 1:
        return names[0]
    fix = f"--model {names[0]}" if names else "is this the right --url?"
    seen = f"{len(names)} models: {', '.join(names)}"
    raise UsageError(Problem(api.url, seen, "one model, or --model", fix))
