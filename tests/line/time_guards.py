"""Time streams of two lines of one rank, with guards and without, request by request in turn.

By hand: `python -m tests.line.time_guards --rounds 200`. Prints medians and their ratio, and
whether the events are the same. How many tokens share an event depends on the time they took, so
texts and shapes are compared: every key and value but the id, the time and the piece of text.
"""

import argparse
import json
import statistics
import tempfile
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import httpx

from tests.serving import Command, write_site

OFF = {'transport = "shm"': 'transport = "off"'}
ON = {'transport = "shm"': 'transport = "off"\n\n[guards]'}
BODY = {
    "model": "tiny",
    "messages": [{"role": "user", "content": "Count the ranks."}],
    "max_tokens": 48,
    "temperature": 0,
    "stream": True,
}
OWN = {"id", "created"}


@dataclass(frozen=True)
class Stream:
    """Seconds to the first piece and between pieces, the text, and the shapes of its events."""

    first: float
    between: float
    text: str
    shapes: frozenset[str]


def stream(client: httpx.Client, url: str) -> Stream:
    """Follow one stream to its end."""
    begun, at, data = time.perf_counter(), list[float](), b""
    with client.stream("POST", f"{url}/chat/completions", json=BODY) as response:
        for chunk in response.iter_raw():
            at.append(time.perf_counter())
            data += chunk
    gaps = [later - sooner for sooner, later in pairwise(at)]
    events = [json.loads(line[6:]) for line in data.splitlines() if line.startswith(b"data: {")]
    pieces = [
        choice["delta"].pop("content", None) or "" for one in events for choice in one["choices"]
    ]
    shapes = {json.dumps({k: v for k, v in one.items() if k not in OWN}) for one in events}
    return Stream(at[0] - begun, statistics.median(gaps), "".join(pieces), frozenset(shapes))


def compare(urls: dict[str, str], rounds: int) -> None:
    """Ask both lines in turn and print what was measured."""
    seen: dict[str, list[Stream]] = {name: [] for name in urls}
    with httpx.Client(timeout=300) as client:
        for number in range(rounds + 3):
            order = list(urls) if number % 2 else list(urls)[::-1]
            for name in order:
                one = stream(client, urls[name])
                if number >= 3:
                    seen[name].append(one)
    for what in ("first", "between"):
        on, off = (
            statistics.median(getattr(one, what) for one in seen[name]) for name in ("on", "off")
        )
        print(f"{what}: on {on * 1e3:.2f} ms, off {off * 1e3:.2f} ms, ratio {on / off:.3f}")
    for what in ("text", "shapes"):
        found = [{getattr(one, what) for one in streams} for streams in seen.values()]
        print(f"{what}: {len(found[0])} and {len(found[1])}, the same: {found[0] == found[1]}")


def main() -> None:
    """Start both lines, compare them, stop them."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=200)
    rounds = options.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        lines = {
            name: Command(write_site(Path(folder), name, swaps, ranks=1), Path(folder) / name)
            for name, swaps in (("on", ON), ("off", OFF))
        }
        try:
            urls = {}
            for name, line in lines.items():
                served = line.run("serve", "--json", timeout=1200)
                urls[name] = json.loads(served.stdout)["url"]
            compare(urls, rounds)
        finally:
            for line in lines.values():
                line.run("stop")


if __name__ == "__main__":
    main()
