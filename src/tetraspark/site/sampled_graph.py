"""`speculative.sampled_in_graph`: which variables it is, for each engine.

The branch folds the *proposal* of sampled requests into the draft graph when
SGLANG_DSPARK_FOLDED_SAMPLING is 2 (FORCE), by free memory when 1 (AUTO), never when 0 (OFF). In
0.5.23 that variable is dead: proposals of sampled requests are in the graph unless
SGLANG_DSPARK_FOLDED_PROPOSAL is off, and SGLANG_OPT_DSV41_SAMPLING_ACCEPT_GRAPH adds their accept
(srt/environ.py; srt/speculative/dspark_components/dspark_worker_v2.py, `_sampling_graph_eligible`).
"""

from collections.abc import Iterator, Mapping

from tetraspark.site.engines import BRANCH, RELEASE
from tetraspark.site.finding import Finding
from tetraspark.site.keypath import KeyPath
from tetraspark.site.lookup import Document, table_at

KEY = "speculative.sampled_in_graph"
FOLDED = "SGLANG_DSPARK_FOLDED_SAMPLING"
ACCEPT = "SGLANG_OPT_DSV41_SAMPLING_ACCEPT_GRAPH"
PROPOSAL = "SGLANG_DSPARK_FOLDED_PROPOSAL"
VERIFY_MODE = "SGLANG_RAGGED_VERIFY_MODE"

OWNED: Mapping[str, str] = {BRANCH: FOLDED, RELEASE: ACCEPT}
"""Engine -> the variable that the key sets there, so that `[env]` must not."""

_PATH: KeyPath = ("speculative", "sampled_in_graph")


def sampled_variables(engine: str, wanted: bool | None) -> dict[str, str]:
    """Return the variables of the key's value; none for an absent key."""
    if wanted is None:
        return {}
    if engine == BRANCH:
        return {FOLDED: "2" if wanted else "0"}
    return {ACCEPT: "1", PROPOSAL: "1"} if wanted else {ACCEPT: "0"}


def sampled_findings(document: Document, engine: str | None) -> Iterator[Finding]:
    """Find what the key cannot stand with, or what undoes it."""
    speculative, env = table_at(document, "speculative"), table_at(document, "env")
    wanted_in = speculative.get("sampled_in_graph")
    algorithm = speculative.get("algorithm")
    if not isinstance(wanted_in, bool):
        return
    if isinstance(algorithm, str) and algorithm != "DSPARK":
        seen = f'sampled_in_graph = {str(wanted_in).lower()} with algorithm = "{algorithm}"'
        yield Finding(_PATH, seen, "DSPARK: no other algorithm has that graph", "remove it")
    if engine != RELEASE or not wanted_in:
        return
    mode = env.get(VERIFY_MODE, "static")
    if mode != "static":
        seen = f'sampled_in_graph = true with {VERIFY_MODE} = "{mode}"'
        wanted = "static: this engine captures the sampled accept in no other mode"
        fix = f"remove {VERIFY_MODE}, or sampled_in_graph"
        yield Finding(_PATH, seen, wanted, fix, (("env", VERIFY_MODE),))
    if PROPOSAL in env:
        seen = f"{PROPOSAL} beside sampled_in_graph = true"
        wanted = "that key alone, which sets it to 1: the accept needs the proposal in the graph"
        yield Finding(("env", PROPOSAL), seen, wanted, "remove one of them", (_PATH,))
