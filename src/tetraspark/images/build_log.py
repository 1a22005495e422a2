"""What `docker build` prints, line by line: which step it is at, and which one failed.

Both builders are read: the legacy one ("Step 2/5 : RUN ...") and BuildKit's plain progress
("#7 [2/5] RUN ...", "#7 0.413 output"), whichever the node's Docker uses.
"""

import re
from collections import deque
from dataclasses import dataclass, field

KEPT_LINES = 12

LEGACY_STEP = re.compile(r"Step (\d{1,9})/(\d{1,9}) : (.*)")
KIT_STEP = re.compile(r"#(\d+) \[(?:\S+ )?\s*(\d{1,9})/(\d{1,9})\] (.*)")
KIT_ERROR = re.compile(r"#(\d+) ERROR: (.*)")
KIT_OUTPUT = re.compile(r"#(\d+) [\d.]+ (.*)")
NOISE = re.compile(
    r"\s*$| ---> |Removing intermediate container|Sending build context|#\d+ |-{5,}| > \["
    r"|DEPRECATED: The legacy builder|\s+Install the buildx|\s+https://docs\.docker\.com"
)


@dataclass(frozen=True)
class Step:
    """A step of a Dockerfile: its number, how many there are, and the instruction."""

    number: int
    total: int
    text: str

    def __str__(self) -> str:
        return f"step {self.number}/{self.total}: {self.text}"


@dataclass
class _Output:
    step: Step | None = None
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=KEPT_LINES))


class BuildLog:
    """Reads a build's output as it comes."""

    def __init__(self) -> None:
        self._outputs: dict[str, _Output] = {}
        self._current = ""
        self._failed: str | None = None

    def feed(self, line: str) -> Step | None:
        """Take in one line, without terminal codes; returns the step when a new one has begun."""
        if match := LEGACY_STEP.match(line):
            return self._begin(match[1], Step(int(match[1]), int(match[2]), match[3]))
        if match := KIT_STEP.match(line):
            return self._begin(f"#{match[1]}", Step(int(match[2]), int(match[3]), match[4]))
        if match := KIT_ERROR.match(line):
            self._failed = f"#{match[1]}"
            self._output(self._failed).lines.append(match[2])
        elif match := KIT_OUTPUT.match(line):
            self._output(f"#{match[1]}").lines.append(match[2])
        elif not NOISE.match(line):
            self._output(self._current).lines.append(line)
        return None

    def _begin(self, name: str, step: Step) -> Step | None:
        output = self._output(name)
        if output.step is not None:
            return None
        output.step = step
        self._current = name
        return step

    def _output(self, name: str) -> _Output:
        return self._outputs.setdefault(name, _Output())

    @property
    def step(self) -> Step | None:
        """The step that failed, or else the one that began last; None before the first."""
        return self._output(self._failed or self._current).step

    @property
    def last_lines(self) -> tuple[str, ...]:
        """The last lines that this step printed."""
        return tuple(self._output(self._failed or self._current).lines)
