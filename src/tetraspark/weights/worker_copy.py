"""The copy to one worker: send, hash, put in place.

Files arrive in a hidden folder and get their names when their hashes are the head's, so a file
under its own name is whole at any time. What arrived of a copy that was cut off is kept.
"""

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from tetraspark.errors import Problem, RunError
from tetraspark.fleet.command import NodeRunner
from tetraspark.weights.copy_plan import Transfer
from tetraspark.weights.inside.send import BUSY
from tetraspark.weights.node_program import Observe, Progress, run_program
from tetraspark.weights.tally import Tally, take_tally, tree_sha256

SEND_SECONDS = 12 * 3600.0


@dataclass(frozen=True)
class Copied:
    """A worker whose files have the head's hashes: what was sent, and what that replaced."""

    node: str
    folder: str
    sent: tuple[str, ...]
    replaced: tuple[str, ...]
    bytes: int
    seconds: float
    tree: str


class WorkerCopy:
    """The copy to one worker."""

    def __init__(
        self, transfer: Transfer, source: Tally, runner: NodeRunner, observe: Observe
    ) -> None:
        self.transfer = transfer
        self.sizes = {name: one.size for name, one in source.files.items()}
        self._runner = runner
        self._observe = observe

    def run(self, head: "Future[Tally]") -> Copied:
        """Send, hash, and put in place. The head is hashed meanwhile."""
        begun = time.monotonic()
        sent = set(self.transfer.names)
        left = set(self._partial("prepare")["left"]) - sent
        if left:
            # Of a copy that was cut off, and meanwhile there, or no part of the checkpoint.
            self._partial("drop", left)
        self._send(sent)
        found = self._hash(self.transfer.folder, self.transfer.same)
        found |= self._hash(self.transfer.partial, sent)
        wanted = head.result().sums
        wrong = {name for name in self.sizes if found.get(name) != wanted.get(name)}
        if wrong:
            # A file of the right size with other bytes, or a part that the head's is no more.
            self._partial("drop", wrong & sent)
            self._send(wrong)
            found |= self._hash(self.transfer.partial, wrong)
            self._refuse({name for name in wrong if found.get(name) != wanted.get(name)}, found)
        self._partial("place", sent | wrong)
        self._observe(Progress(self.transfer.node, "done"))
        return Copied(
            node=self.transfer.node,
            folder=self.transfer.folder,
            sent=tuple(sorted(sent | wrong)),
            replaced=tuple(sorted(wrong & set(self.transfer.same))),
            bytes=sum(self.sizes[name] for name in sent | wrong),
            seconds=round(time.monotonic() - begun, 1),
            tree=tree_sha256(found),
        )

    def _send(self, names: Iterable[str]) -> None:
        wanted = sorted(names)
        if not wanted:
            return
        transfer, node = self.transfer, self.transfer.node
        total = sum(self.sizes[name] for name in wanted)

        def tell(line: dict[str, Any]) -> None:
            self._observe(Progress(node, "send", line["done"], total))

        self._observe(Progress(node, "send", 0, total))
        request = {
            "argv": transfer.rsync,
            "names": wanted,
            "total": total,
            "lock": transfer.route.lock(transfer.partial),
        }
        head = transfer.route.head
        end = run_program(self._runner, head, "send", request, SEND_SECONDS, tell)
        if end["rc"] == BUSY:
            where, seen = f"{head} -> {node}:{transfer.folder}", "another copy sends there"
            fix = f"wait for it; on {head}: ps -C rsync -o pid,etime,args"
            raise RunError(Problem(where, seen, "one copy at a time", fix))
        if end["rc"]:
            raise RunError(transfer.route.failure(end["rc"], end["stderr"], transfer.partial))

    def _hash(self, folder: str, names: Iterable[str]) -> dict[str, str]:
        wanted = sorted(names)
        if not wanted:
            return {}
        return take_tally(self._runner, self.transfer.node, folder, self._observe, wanted).sums

    def _partial(self, action: str, names: Iterable[str] = ()) -> dict[str, Any]:
        request = {"action": action, "partial": self.transfer.partial, "names": sorted(names)}
        found = run_program(self._runner, self.transfer.node, "partial", request)
        if "error" in found:
            node, folder = self.transfer.node, self.transfer.folder
            fix = f"on {node}: ls -la {folder}"
            wanted = "a folder that the login can write"
            raise RunError(Problem(f"{node} {folder}", found["error"], wanted, fix))
        return found

    def _refuse(self, names: set[str], found: Mapping[str, str]) -> None:
        """Raise for files that differ also when they were sent again, and drop them."""
        if not names:
            return
        self._partial("drop", names)
        node, head = self.transfer.node, self.transfer.route.head
        fix = f"does something write there? if not, check the disks of {head} and {node}"
        raise RunError(
            *(
                Problem(
                    f"{node} {self.transfer.folder}/{name}",
                    f"sent twice, and its sha256 is {found.get(name, 'none: it is not there')}",
                    f"the sha256 of {head}",
                    fix,
                )
                for name in sorted(names)
            )
        )
