"""`tetraspark status`: every rank, the API, and a canary; exit code 1 unless ready."""

import time
from typing import Annotated, Any

import typer
from rich.table import Table

from tetraspark.cli.line import DEFAULT_SITE, Json, OpenLine, SitePath, open_line
from tetraspark.cli.number import number
from tetraspark.cli.output import out, print_json, print_problems, shown
from tetraspark.errors import Problem, UsageError
from tetraspark.line.ranks import RankStatus
from tetraspark.line.status import Status, read_status
from tetraspark.watch.told import told_of

COLOURS = {
    "ready": "green",
    "starting": "yellow",
    "degraded": "red",
    "wedged": "red",
    "down": "red",
    "unknown": "yellow",
}


def status(
    site: SitePath = DEFAULT_SITE,
    deadline: Annotated[float, number("--deadline", "Seconds the canary may take.", 0.1)] = 3.0,
    json: Json = False,
) -> None:
    """Show whether the line serves, and which rank is to blame when it does not."""
    with open_line(site) as line:
        found = read_status(
            line.loaded.site.name,
            line.runner,
            line.store,
            _key(line),
            line.loaded.site.model.canary,
            deadline,
        )
        said = told_of(line.store.root)
    print_problems(
        (*found.damaged, *(Problem(**one) for one in said["damaged"])), "warning", "yellow"
    )
    if json:
        print_json({**found.as_dict(), "watch": said})
    else:
        _print(found)
        out.print(watch_line(said), markup=False)
    if found.verdict != "ready":
        raise typer.Exit(1)


def watch_line(said: dict[str, Any]) -> str:
    """Say whether somebody watches the line, what they last said, and what they have done."""
    page = said["page"] or {}
    if said["pid"] is None:
        text = "watch: none"
    else:
        text = f"watch: process {said['pid']}"
        text += ", quiet while a suite measures" if said["quiet"] else ""
        text += f", page {page['url']}" if page.get("url") else ""
    if said["state"] is not None:
        ago = max(0.0, time.time() - said["at"])
        text += f"; said {said['state']} {ago:.0f} s ago: {said['reason']}"
    if page.get("problem"):
        text += f"\nno page: {Problem(**page['problem'])}"
    for one in said["acts"]:
        text += f"\nwatch, run {one['run']}: {one['reason']}; done: {one['done']}, {one['why']}"
        text += f"; evidence: {one['folder']}"
        if one.get("unread"):
            text += f"; key not known: {one['unread']['name']}: {one['unread']['why']}"
    return shown(text)


def _key(line: OpenLine) -> str | None:
    """Return the API key; one that is no use is told, and the ranks are looked at all the same."""
    try:
        return line.key()
    except UsageError as error:
        print_problems(error.problems)
        return None


def _print(found: Status) -> None:
    colour = COLOURS[found.verdict]
    out.print(f"line {found.line}: [bold {colour}]{found.verdict}[/]", end="")
    out.print(f" - {found.reason}", markup=False)
    if found.url is None:
        return
    table = Table("rank", "node", "state", "processes", "receipts", "collectives", box=None)
    for rank in found.ranks:
        state = f"{rank.state}: {rank.detail}" if rank.detail else rank.state
        table.add_row(
            str(rank.rank),
            rank.node,
            state,
            str(len(rank.pids)),
            " ".join(rank.receipts),
            _collectives(rank),
        )
    out.print(table)
    for rank in found.ranks:
        if rank.state != "running" and found.phase != "stopped":
            out.print(f"rank {rank.rank} said last: {shown(rank.last_line)}", markup=False)
    for rank in found.ranks:
        if rank.usage is not None:
            out.print(f"kv pool of rank {rank.rank}: {rank.usage}", markup=False)
    for check in found.tolerated:
        where = f"{check['node']} {check['id']}" if check["node"] else check["id"]
        out.print(f"started despite {where}: {check['observed']}", markup=False)
    canary = "" if found.canary_seconds is None else f", canary in {found.canary_seconds:.2f} s"
    answers = f"model list {_http(found.api)}, /health {_http(found.health)}{canary}"
    out.print(f"api {found.url}: {answers}", markup=False)
    if found.effective is not None:
        same = sum(one["same"] for one in found.effective)
        out.print(f"engine: {same} of {len(found.effective)} values in /server_info as planned")


def _collectives(rank: RankStatus) -> str:
    found = rank.collectives
    if rank.state == "exited":
        return ""
    if found is None:
        return "not known" if rank.problem is not None else "engine's own"
    return f"{found['transport']} {found['verdict']}, {found.get('operations', 0)} done"


def _http(status: int | None) -> str:
    return "no answer" if status is None else f"HTTP {status}"
