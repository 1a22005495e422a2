"""Section of a site file about the watch beside a served line."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from tetraspark.site.finding import Finding
from tetraspark.site.keypath import KeyPath
from tetraspark.site.lookup import Document, table_at
from tetraspark.site.section import Section

OnWedge = Literal["nothing", "stop", "restart-once", "restart-without-transport"]


class Watch(Section):
    """How a served line is watched, and what is done when it is wedged."""

    enabled: bool = Field(default=True, description="`serve` starts a watch beside the line")
    on_wedge: OnWedge = Field(
        default="nothing",
        description="what is done about a wedge or ended ranks, once evidence is kept",
    )
    interval_seconds: float = Field(
        default=15.0, ge=0.2, le=600, description="between two looks at the line"
    )
    canary_seconds: float = Field(
        default=60.0, ge=0.2, le=86_400, description="between two canary completions"
    )
    canary_deadline_seconds: float = Field(
        default=30.0, ge=0.2, le=3600, description="a canary without an answer for so long is lost"
    )
    stall_seconds: float = Field(
        default=120.0, ge=1, le=3600, description="without any progress for so long, it is a wedge"
    )
    page: bool = Field(default=True, description="the watch serves its page and its metrics")
    port: int = Field(
        default=9400, ge=0, le=65_535, description="loopback port of the page; 0 a free one"
    )


def watch_findings(document: Document) -> Iterator[Finding]:
    """Find a page on the API's port, and a fall-back that has nothing to fall back from."""
    yield from _ports(document)
    if table_at(document, "watch").get("on_wedge") != "restart-without-transport":
        return
    if table_at(document, "collectives").get("transport", "off") == "off":
        path: KeyPath = ("watch", "on_wedge")
        seen = 'on_wedge = "restart-without-transport" without a transport in [collectives]'
        fix = 'set on_wedge = "restart-once"'
        yield Finding(path, seen, "a transport that a restart can leave out", fix)


def _ports(document: Document) -> Iterator[Finding]:
    section, api = table_at(document, "watch"), table_at(document, "api").get("port")
    if section.get("enabled") is False or section.get("page") is False:
        return
    port = section.get("port", Watch.model_fields["port"].default)
    if port and port == api:
        path: KeyPath = ("watch", "port") if "port" in section else ("api", "port")
        seen, wanted = f"port = {port} for the API and for the watch's page", "a port for each"
        yield Finding(path, seen, wanted, "set another port, or [watch] port = 0 for a free one")
