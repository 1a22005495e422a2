"""What every refusal says: where, what was seen, what was wanted, and what to type next."""

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Problem:
    """One finding a person can act on.

    `where` is `file:line`, or `node device`; `fix` is the next command or edit.
    """

    where: str
    seen: str
    wanted: str
    fix: str = ""

    def __str__(self) -> str:
        text = f"{self.where}: {self.seen}; wanted: {self.wanted}"
        return f"{text}; fix: {self.fix}" if self.fix else text

    def as_dict(self) -> dict[str, str]:
        """Return the four fields, for `--json`."""
        return asdict(self)


class TetrasparkError(Exception):
    """Base of every error shown to a user; carries the problems and the process exit code."""

    exit_code = 1

    def __init__(self, *problems: Problem) -> None:
        if not problems:
            raise ValueError("an error needs at least one problem")
        self.problems = problems
        super().__init__("\n".join(str(problem) for problem in problems))


class UsageError(TetrasparkError):
    """Bad usage or configuration (exit code 2)."""

    exit_code = 2


class RunError(TetrasparkError):
    """A check or a run failed (exit code 1)."""
