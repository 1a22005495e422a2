"""One look at a line, before it is judged: facts, and the monotonic time they are of."""

from dataclasses import dataclass

from tetraspark.errors import Problem
from tetraspark.line.ranks import Verdict
from tetraspark.watch.observation import CanarySample, EngineSample, RankSample

NOTHING_TOLD = EngineSample(None, None, None, None, None, None, None, None)


@dataclass(frozen=True)
class Look:
    """What was found at `at`, seconds of a clock that nobody sets.

    `verdict`, `reason` and `rank` are of the ranks alone. `canary` is the one of this look, None
    where none was due; `silent` says that it brought no answer at all. `root` is the rank that the
    communicators agreed on as the cause of their failure, and their words. `damaged` are records
    of the run that could not be read.
    """

    at: float
    run: str | None
    verdict: Verdict
    reason: str
    rank: int | None = None
    ranks: tuple[RankSample, ...] = ()
    engine: EngineSample = NOTHING_TOLD
    canary: CanarySample | None = None
    silent: bool = False
    root: tuple[int, str] | None = None
    damaged: tuple[Problem, ...] = ()

    @property
    def operations(self) -> tuple[int | None, ...]:
        """The collectives that each rank has completed."""
        return tuple(rank.operations for rank in self.ranks)

    def lives_after(self, before: "Look") -> bool:
        """Tell whether the engine has done anything since another look at the same run.

        A counter that fell is news too: its process is a new one.
        """
        if self.canary is not None and self.canary.ok:
            return True
        mine = (self.engine.generated_tokens, self.engine.prefilled_tokens, *self.operations)
        theirs = (
            before.engine.generated_tokens,
            before.engine.prefilled_tokens,
            *before.operations,
        )
        pairs = zip(mine, theirs, strict=False)
        return any(None not in pair and pair[0] != pair[1] for pair in pairs)
