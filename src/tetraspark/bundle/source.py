"""What goes into a bundle: texts by name, and what could not be had."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from tetraspark.fleet.facts import Said

HEAD_BYTES = 64 << 10
TAIL_BYTES = 256 << 10
CUT = "[... {bytes} bytes left out ...]"


@dataclass(frozen=True)
class Source:
    """A text under its name in the bundle, as it was found: secrets are taken out on the way in."""

    name: str
    text: str = field(repr=False)


@dataclass(frozen=True)
class Missing:
    """What the bundle lacks, by the name it would have, and why."""

    name: str
    why: str

    def as_dict(self) -> dict[str, str]:
        """Return the fields, for the index."""
        return asdict(self)


def ends(data: bytes, size: int | None = None) -> str:
    """Return the beginning and the end of a long text, in whole lines.

    `data` is all of it, or its first HEAD_BYTES and last TAIL_BYTES, when `size` is what it is in
    all. Lines that a cut goes through are left out: half a secret is not recognised as one.
    """
    size = len(data) if size is None else size
    if size <= HEAD_BYTES + TAIL_BYTES:
        return data.decode(errors="replace")
    head, tail = data[:HEAD_BYTES], data[-TAIL_BYTES:]
    head = head[: head.rfind(b"\n") + 1]
    tail = tail[tail.find(b"\n") + 1 :] if b"\n" in tail else b""
    cut = CUT.format(bytes=size - len(head) - len(tail)).encode() + b"\n"
    return (head + cut + tail).decode(errors="replace")


def why(said: Said) -> str:
    """Return why a command of a probe gave nothing, or not all."""
    reasons: Mapping[int, str] = {127: "no such program", 124: "it took too long"}
    text = (said.stderr.strip().splitlines() or [""])[-1][-300:]
    known = reasons.get(said.rc, f"it ended with {said.rc}" if said.rc else "it printed nothing")
    return f"{known}: {text}" if text else known
