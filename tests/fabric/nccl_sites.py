"""Sites and fabrics to choose an NCCL profile for."""

from pathlib import Path
from typing import Any

from tests.fabric.model import NAMES
from tests.fabric.sparks import Sparks
from tetraspark.fabric.cabling import Cabling
from tetraspark.fabric.cabling_read import read_cabling
from tetraspark.fabric.nccl_choose import choose
from tetraspark.fabric.nccl_port import functions_of
from tetraspark.fabric.nccl_profile import NcclProfile
from tetraspark.fabric.nccl_route import Patch
from tetraspark.fabric.survey import chosen
from tetraspark.site.load import LoadedSite, load_source
from tetraspark.site.source import Source

FOUR = ("rocep1s0f0", "roceP2p1s0f0", "rocep1s0f1", "roceP2p1s0f1")
TWO = ("rocep1s0f0", "rocep1s0f1")
SITE = """\
name = "ring"
kind = "fleet"
nodes = [
{nodes}
]
model = {{ path = "~/v41", served_name = "v41", canary = {{ prompt = "hello" }} }}
engine = {{ tp = {tp}, ep = {tp}, extra_args = [{words}] }}
api = {{ port = 8888 }}
image = {{ recipe = "{recipe}", tag = "line:one" }}
weights = {{ mode = "local" }}
[fabric]
topology = "{topology}"
devices = {devices}
{nccl}{ring}
[env]
{env}
"""


def site_text(
    topology: str = "ring",
    devices: tuple[str, ...] = FOUR,
    ring: str = "",
    env: str = "",
    words: str = "",
    nodes: tuple[str, ...] = NAMES,
    recipe: str = "release",
    nccl: str = "",
) -> str:
    rows = "\n".join(f'  {{ name = "{name}", host = "192.168.1.1{name[-1]}" }},' for name in nodes)
    section = f"[fabric.ring]\n{ring}" if ring else ""
    versions = f"[fabric.nccl]\n{nccl}\n" if nccl else ""
    return SITE.format(
        nodes=rows, tp=len(nodes), words=words, recipe=recipe, topology=topology,
        devices=list(devices), nccl=versions, ring=section, env=env,
    ).replace("'", '"')  # fmt: skip


def site(**choices: Any) -> LoadedSite:
    """Load a site; the keywords are those of `site_text`."""
    return load_source(Source(Path("ring.toml"), site_text(**choices), "0" * 64, ()))


def cabling_of(sparks: Sparks, nodes: tuple[str, ...] = NAMES, absent: str = "") -> Cabling:
    return read_cabling(nodes, {name: sparks.fabric(name) for name in nodes if name != absent})


def profile(
    sparks: Sparks,
    loaded: LoadedSite,
    version: str | None = "2.30.7",
    patch: Patch = "advertise-2",
    absent: str = "",
) -> NcclProfile:
    nodes = tuple(node.name for node in loaded.site.nodes)
    fabrics = {name: sparks.fabric(name) for name in nodes if name != absent}
    _, devices = chosen(loaded)
    cabling = cabling_of(sparks, nodes, absent)
    return choose(cabling, functions_of(devices, fabrics), version, loaded, patch)
