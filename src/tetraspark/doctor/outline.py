"""What a doctor would do on each node, as a value: what is read, what is run."""

import shlex
from collections.abc import Collection
from dataclasses import asdict, dataclass

from tetraspark.doctor.burn import burn_command
from tetraspark.doctor.choice import chosen
from tetraspark.doctor.examine import chosen_ranks, request
from tetraspark.site.load import LoadedSite


@dataclass(frozen=True)
class Outline:
    """One step on a node, and its lines: commands, or paths that are read."""

    node: str
    words: str
    lines: tuple[str, ...]

    def as_dict(self) -> dict[str, object]:
        """Return the fields, for `--json`."""
        return asdict(self)


def outline(
    loaded: LoadedSite, only: Collection[str] = (), nodes: Collection[str] = (), burn: bool = False
) -> tuple[Outline, ...]:
    """Return the steps of `examine` with the same arguments; raises UsageError as it does."""
    definitions = chosen(only, loaded.site.kind, burn)
    ranks = chosen_ranks(loaded, nodes)
    steps = []
    for node, wanted in request(loaded, definitions, ranks).items():
        commands = tuple(map(shlex.join, wanted.commands.values()))
        paths = (*wanted.files, *wanted.links, *wanted.sizes, *wanted.space, *wanted.shards)
        ports = tuple(f"TCP port {port}" for port in wanted.ports)
        steps += [
            Outline(node, "commands of the probe, all of which only read", commands),
            Outline(node, "read by the probe", tuple(dict.fromkeys((*paths, *ports)))),
        ]
        if burn and loaded.site.image is not None:
            command = str(burn_command(loaded.site.image, loaded.site.name))
            steps.append(Outline(node, "burn, unless a GPU is in use", (command,)))
    return tuple(steps)
