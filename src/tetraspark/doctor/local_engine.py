"""The engine of a local line, in the environment that would run it."""

import sysconfig
from collections.abc import Iterator
from pathlib import PurePosixPath

from tetraspark.doctor.finding import Finding
from tetraspark.doctor.node_view import NodeView
from tetraspark.fleet.facts import Wanted
from tetraspark.site.engines import RELEASE

DISTRIBUTION = f"{sysconfig.get_paths()['purelib']}/sglang-*.dist-info"
WANTED = Wanted(links=(DISTRIBUTION,))


def version(view: NodeView) -> Iterator[Finding]:
    """Judge which SGLang is installed beside tetraspark."""
    wanted = f"sglang {RELEASE} beside tetraspark"
    names = [PurePosixPath(path).name.removesuffix(".dist-info") for path in view.facts.links]
    found = [name.split("-")[1] for name in names if name.startswith("sglang-")]
    fix = "docs/quickstart.md says how to install it"
    if RELEASE in found:
        yield Finding("ok", f"sglang {RELEASE}", wanted)
    else:
        yield Finding("failed", f"sglang {', '.join(found)}" if found else "none", wanted, fix)
