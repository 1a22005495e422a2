"""What a history of looks amounts to: a state, the reason, the rank to blame. Pure.

One lost canary is no wedge, and neither is a long prefill, during which `/health` fails
(sglang #22511): a line is wedged when for `stall_seconds` nothing grew at all, neither tokens nor
prefilled tokens nor collectives, though canaries asked for it.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from tetraspark.line.ranks import Verdict
from tetraspark.watch.blame import blamed
from tetraspark.watch.look import Look

LOST_CANARIES = 2
"""So many in a row are no accident."""
UNSURE = ("frozen", "unreachable")
"""States of a rank that count when two looks in a row have seen them."""
ENDED = ("exited", "restarted", "broken")
"""States of a rank that ended by itself. One that is absent may have been taken away: a container
removed by a `stop` on another machine, whose record is not here.
"""


@dataclass(frozen=True)
class Limits:
    """Seconds without any progress that are a wedge, and the longest time between two looks.

    What is beyond that between two looks is not counted: the watch itself was not running then.
    """

    stall_seconds: float
    longest_step: float


@dataclass(frozen=True)
class Judgement:
    """The state of a line, why, and the rank to blame."""

    state: Verdict
    reason: str
    rank: int | None = None


def judge(history: Sequence[Look], limits: Limits) -> Judgement:
    """Judge a line by its looks, the newest last; there is at least one.

    Looks at other runs than the newest one's say nothing of it.
    """
    now = history[-1]
    looks = [look for look in history if look.run == now.run]
    if now.verdict in ("down", "starting"):
        return Judgement(now.verdict, now.reason, now.rank)
    if now.verdict == "unknown":
        return Judgement("degraded", now.reason)
    span = standing(looks)
    seconds = stalled(span, limits)
    if seconds >= limits.stall_seconds and _asked_in_vain(span):
        rank, why = blamed(now)
        return Judgement("wedged", f"{_told(span, seconds)}; {why}", rank)
    if now.verdict == "degraded" and _sure(looks):
        return Judgement("degraded", now.reason, now.rank)
    return _by_canaries(looks, seconds)


def standing(looks: Sequence[Look]) -> Sequence[Look]:
    """Return the looks since which the engine has shown no sign of life, though asked for one.

    They begin with requests that run, or a canary that is lost: an idle engine does nothing.
    """
    since = next(
        (at for at in range(len(looks) - 1, 0, -1) if looks[at].lives_after(looks[at - 1])), 0
    )
    return list(itertools.dropwhile(lambda look: not _asked(look), looks[since:]))


def ended(history: Sequence[Look]) -> bool:
    """Tell whether a rank has ended, as the last two looks at this run saw."""
    looks = [look for look in history[-2:] if look.run == history[-1].run]
    gone = [{one.rank for one in look.ranks if one.state in ENDED} for look in looks]
    return len(gone) == 2 and bool(gone[0] & gone[1])


def stalled(span: Sequence[Look], limits: Limits) -> float:
    """Return the seconds from the first to the last of some looks, as far as was looked."""
    steps = (after.at - before.at for before, after in itertools.pairwise(span))
    return sum(min(step, limits.longest_step) for step in steps)


def doubtful(looks: Sequence[Look]) -> bool:
    """Tell whether another canary is worth asking at once: a rank is not well, the last canary
    failed, or nothing moves while requests run.

    A head that waits for a peer counts no request that came since as running.
    """
    if not looks:
        return False
    last = next((look for look in reversed(looks) if look.canary is not None), None)
    failed = last is not None and not _canary_ok(last)
    return failed or looks[-1].verdict == "degraded" or len(standing(looks)) > 1


def _asked(look: Look) -> bool:
    return look.silent or (look.engine.running or 0) > 0


def _asked_in_vain(span: Sequence[Look]) -> bool:
    """Tell whether canaries were lost: a count of running requests alone may be an old one."""
    lost = sum(look.silent for look in span)
    return lost >= LOST_CANARIES or (lost > 0 and all(look.engine.running for look in span))


def _told(span: Sequence[Look], seconds: float) -> str:
    text = f"no token and no collective for {seconds:.0f} s"
    if running := span[-1].engine.running:
        text += f" while {running} requests run"
    return f"{text}, {sum(look.silent for look in span)} canaries lost"


def _sure(looks: Sequence[Look]) -> bool:
    """Tell whether a rank is gone for certain: a session that hiccups, a short stop are not."""
    now = looks[-1]
    found = {rank.rank: rank.state for rank in now.ranks if rank.state != "running"}
    if len(looks) < 2 or not found or any(state not in UNSURE for state in found.values()):
        return True
    before = {rank.rank: rank.state for rank in looks[-2].ranks}
    return any(before.get(rank) == state for rank, state in found.items())


def _by_canaries(looks: Sequence[Look], seconds: float) -> Judgement:
    """Judge a line whose ranks all run, by its last canaries."""
    asked = [look for look in looks if look.canary is not None]
    failed = list(itertools.takewhile(lambda look: not _canary_ok(look), reversed(asked)))
    if not failed:
        how = "the canary answered" if asked else "no canary yet"
        return Judgement("ready", f"every rank is up, {how}")
    last = failed[0].canary
    assert last is not None
    lost = [look for look in failed if look.silent]
    wrong = len(failed) - len(lost)
    if wrong >= LOST_CANARIES or (wrong and len(asked) == 1):
        return Judgement("degraded", f"canary: {last.reason}")
    if len(lost) >= LOST_CANARIES and seconds:
        rank, why = blamed(looks[-1])
        reason = f"{len(lost)} canaries lost, and no progress for {seconds:.0f} s; {why}"
        return Judgement("degraded", reason, rank)
    busy = "" if seconds else ", and the engine works"
    return Judgement("ready", f"every rank is up{busy}; canary: {last.reason}")


def _canary_ok(look: Look) -> bool:
    return look.canary is not None and look.canary.ok
