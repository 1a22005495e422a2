"""Launches of four modelled Sparks, from what a probe finds on them."""

from collections.abc import Mapping
from dataclasses import replace

from tests.fabric.model import NAMES
from tests.fabric.sparks import Sparks
from tests.line.launch_facts import facts, links
from tetraspark.line.launch import Launch, resolve
from tetraspark.site.load import LoadedSite


def launched(
    sparks: Sparks, loaded: LoadedSite, sizes: Mapping[str, Mapping[str, int]] | None = None
) -> Launch:
    """Resolve a launch; `sizes` are those of the library files of each node, by path."""
    found = {
        name: replace(
            facts(name, links(enP7s7=f"192.168.1.1{name[-1]}/24"), home=f"/home/{name}"),
            sizes=(sizes or {}).get(name, {}),
        )
        for name in NAMES
    }
    return resolve(loaded, found, {name: sparks.fabric(name) for name in NAMES})
