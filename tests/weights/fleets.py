"""Fleet sites with other weights, and facts of their nodes, without a node."""

import re
from collections.abc import Mapping
from pathlib import Path

from tests.serving import ROOT
from tetraspark.fleet.facts import Facts, Said, Space
from tetraspark.site.load import LoadedSite, load_source
from tetraspark.site.source import decode_source

NO_VOLUME = Said(1, "[]\n", "Error: No such volume: it\n")


def fleet_site(weights: str, *swaps: tuple[str, str]) -> LoadedSite:
    """Return the example of four nodes with another section [weights]."""
    text = (ROOT / "sites/four-sparks-switch.toml").read_text()
    text = re.sub(r"(?ms)^\[weights\]\n.*?(?=^\[)", f"[weights]\n{weights}\n", text)
    for old, new in swaps:
        assert old in text
        text = text.replace(old, new)
    return load_source(decode_source(Path("mine.toml"), text.encode()))


def facts(
    node: str,
    commands: Mapping[str, Said],
    files: Mapping[str, str] | None = None,
    sizes: Mapping[str, int] | None = None,
    uid: int = 1000,
    space: Mapping[str, Space] | None = None,
) -> Facts:
    """Return facts of a node whose login is alice."""
    return Facts(
        node=node,
        home="/home/alice",
        uid=uid,
        time=0.0,
        files=files or {},
        links={},
        sizes=sizes or {},
        globs={},
        space=space or {},
        listeners={},
        commands=commands,
    )
