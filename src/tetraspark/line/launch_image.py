"""Variables of the network that an image brings along, which no launch asked for. Pure.

A variable that is left out of `docker run` still has the value that the image was built with.
"""

import json
from fnmatch import fnmatchcase

from tetraspark.errors import Problem
from tetraspark.fleet.facts import Facts, Wanted
from tetraspark.site.load import LoadedSite

IMAGE = "launch image"
FORBIDDEN = ("NCCL_IB_GID_INDEX", "B12X_ROCE_GID_INDEX")
"""An index is right for one device at one moment: in an image it is wrong sooner or later."""
DOUBTFUL = ("*_SOCKET_IFNAME", "NCCL_IB_HCA", "NCCL_NET", "UCX_NET_DEVICES", "LD_PRELOAD")
"""Names that are of one machine, or that change which NCCL is loaded."""


def image_wanted(loaded: LoadedSite) -> Wanted:
    """Return what to ask a node about the site's image."""
    if loaded.site.image is None:
        return Wanted()
    return Wanted(commands={IMAGE: ("docker", "image", "inspect", loaded.site.image.tag)})


def baked(facts: Facts, given: set[str]) -> tuple[list[Problem], list[Problem]]:
    """Return what in the image's variables ends a launch, and what to warn of.

    `given` are the variables that the launch sets, which win over the image's. An image that
    could not be looked at is a warning: Docker itself refuses one that is not there.
    """
    said = facts.commands.get(IMAGE)
    try:
        pairs = json.loads(said.stdout if said else "")[0]["Config"]["Env"] or []
        variables = dict(str(pair).split("=", 1) for pair in pairs)
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        reason = "not asked" if said is None else said.stderr.strip()[-200:] or "another answer"
        seen = f"the image's own variables cannot be seen: {reason}"
        wanted = "an image without network settings of its own"
        fix = f"on {facts.node}: docker image inspect IMAGE"
        return [], [Problem(facts.node, seen, wanted, fix)]
    left = {name: value for name, value in variables.items() if value and name not in given}
    errors = [_told(facts.node, n, v, "error") for n, v in left.items() if n in FORBIDDEN]
    doubts = [
        _told(facts.node, name, value, "doubt")
        for name, value in left.items()
        if any(fnmatchcase(name, pattern) for pattern in DOUBTFUL)
    ]
    return errors, doubts


def _told(node: str, name: str, value: str, kind: str) -> Problem:
    seen = f"the image sets {name}={value}"
    if kind == "error":
        wanted = "no index in an image: entries move, and each device has its own"
        fix = f"build the image without it: a base whose ENV has no {name}"
        return Problem(node, seen, wanted, fix)
    wanted = "nothing of one machine's network in an image"
    fix = f"set {name} in [env] if it is meant; else build on a base without it"
    return Problem(node, seen, wanted, fix)
