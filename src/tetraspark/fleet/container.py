"""A container of a line as `docker inspect` describes it, and the rank's state in it. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tetraspark.fleet.rank import Exit, RankState, State

LINE = "tetraspark.line"
RUN = "tetraspark.run"
RANK = "tetraspark.rank"
SITE = "tetraspark.site"
DEAD = ("exited", "dead", "created", "removing")
"""Docker's words for a container without processes."""


def container_name(line: str, rank: int) -> str:
    """Return the name of a rank's container, for people; programs go by its labels."""
    return f"tetraspark-{line}-r{rank}"


@dataclass(frozen=True)
class Container:
    """What of a container counts here; times are Unix seconds of the node's clock.

    `image` is the ID of the image that it was made of. `processes` are (pid inside the container,
    state letter of the kernel), none where they could not be seen.
    """

    id: str
    name: str
    image: str
    run: str
    rank: int
    status: str
    exit_code: int
    out_of_memory: bool
    restarts: int
    finished: float
    error: str = ""
    processes: tuple[tuple[int, str], ...] = ()

    @property
    def running(self) -> bool:
        """Whether it has processes, or is about to get them again."""
        return self.status not in DEAD

    def state(self, ahead: float) -> RankState:
        """Return the state of its rank; `ahead` is added to times of the node's clock."""
        pids = tuple(pid for pid, letter in self.processes if letter != "Z")
        name, end = self._name(), None
        if name == "exited":
            end = Exit(self.exit_code, self.finished + ahead)
        return RankState(
            self.rank, name, pids, end, self.restarts, self.out_of_memory, image=self.image
        )

    def _name(self) -> State:
        if self.restarts or self.status == "restarting":
            return "restarted"
        if not self.running:
            return "exited"
        stopped = any(letter in "Tt" for _, letter in self.processes)
        return "frozen" if stopped or self.status == "paused" else "running"


def read_container(found: Mapping[str, Any], processes: Sequence[Sequence[Any]] = ()) -> Container:
    """Read an element of `docker inspect`. Raises ValueError where it is none of ours."""
    try:
        labels, state = found["Config"]["Labels"] or {}, found["State"]
        return Container(
            id=found["Id"],
            name=found["Name"].removeprefix("/"),
            image=str(found["Image"]),
            run=labels.get(RUN, ""),
            rank=int(labels.get(RANK, "-1")),
            status=state["Status"],
            exit_code=int(state["ExitCode"]),
            out_of_memory=bool(state["OOMKilled"]),
            restarts=int(found["RestartCount"]),
            finished=read_time(state["FinishedAt"]),
            error=state.get("Error", ""),
            processes=tuple((int(pid), str(letter)) for pid, letter in processes),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not what docker inspect prints: {error!r}") from error


def read_time(text: str) -> float:
    """Return the Unix time of Docker's text; 0 for its year 1, which means never."""
    if text.startswith("0001-"):
        return 0.0
    head, _, fraction = text.removesuffix("Z").partition(".")
    zone = "+00:00" if text.endswith("Z") else ""
    for sign in "+-":
        digits, cut, offset = fraction.partition(sign)
        if cut:
            fraction, zone = digits, sign + offset
    return datetime.fromisoformat(head + zone).timestamp() + float(f"0.{fraction or 0}")
