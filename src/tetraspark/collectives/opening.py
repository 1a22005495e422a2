"""Bring a group up: vote, connect, prove. Written as steps, so that tests can drive W ranks."""

import hashlib
import os
import secrets
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tetraspark.collectives import native
from tetraspark.collectives.build import PROXY
from tetraspark.collectives.endpoint import Endpoint, configure
from tetraspark.collectives.failure import BuildError, CollectiveError
from tetraspark.collectives.flags import REDUCIBLE
from tetraspark.collectives.layout import Layout
from tetraspark.collectives.library import proxy
from tetraspark.collectives.proof import prove
from tetraspark.collectives.settings import Settings
from tetraspark.collectives.supervisor import Supervisor
from tetraspark.collectives.transport import Phase, Transport
from tetraspark.collectives.vote import Ballot, count, unanimous

PROTOCOL = 1
DEFAULT_YIELDS = 100

OPENING_PAUSE_S = 0.0005

Exchange = Callable[[bytes], Sequence[bytes]]
"""All-gathers bytes among the ranks, in rank order; used only while a group opens."""

Opening = Generator[bytes | None, Sequence[bytes] | None, "Link"]
"""Yields bytes to be all-gathered, or None to be resumed a little later."""


Opened = TypeVar("Opened")


def drive(
    steps: Generator[bytes | None, Sequence[bytes] | None, Opened],
    exchange: Exchange,
    transport: Transport,
) -> Opened:
    """Run the steps of an opening to their end, and return what they opened."""
    try:
        wanted = next(steps)
        while True:
            if wanted is None:
                transport.pause(OPENING_PAUSE_S)
                wanted = next(steps)
            else:
                wanted = steps.send(exchange(wanted))
    except StopIteration as done:
        opened: Opened = done.value
        return opened
    finally:
        steps.close()


@dataclass(frozen=True)
class Link:
    """An open, proven group as one rank holds it."""

    rank: int
    settings: Settings
    layout: Layout
    transport: Transport
    endpoint: Endpoint
    supervisor: Supervisor


def ballot(rank: int, world: int, settings: Settings, transport: Transport) -> Ballot:
    """Return this rank's vote, with the reason if it cannot take part."""
    refusal = ""
    try:
        proxy()
        settings.routes_for(world)
        if settings.delivery == "pull" and not transport.pull and transport.direct:
            raise ValueError("the transport was made for push, the settings say pull")
    except (BuildError, ValueError, OSError) as error:
        refusal = str(error)
    return Ballot(
        rank=rank,
        world=world,
        protocol=PROTOCOL,
        abi=native.ABI,
        proxy=hashlib.sha256(PROXY.source()).hexdigest(),
        transport=transport.name,
        dtypes=tuple(sorted(dtype.name for dtype in REDUCIBLE)),
        settings=settings.shared(),
        settings_digest=settings.digest(),
        refusal=refusal,
    )


def patience(settings: Settings, world: int, *, direct: bool) -> tuple[int, int]:
    """Return (spins, yields) of this rank.

    With a core a rank a look is cheaper than a switch; with fewer, a spin keeps the peer from
    the core it needs. Over a NIC every rank has a machine of its own, and a thread beside it.
    """
    spare = len(os.sched_getaffinity(0)) >= (world if direct else 2)
    spins = settings.spins if settings.spins is not None else (2000 if spare else 0)
    yields = settings.yields if settings.yields is not None else DEFAULT_YIELDS
    return spins, yields


def opening(rank: int, world: int, settings: Settings, transport: Transport) -> Opening:
    """Open one rank's end. Raises RefusedError on every rank, naming the ones that cannot.

    A peer that dies while the lanes are proven is such a reason too. Whatever is raised, the
    transport is closed first.
    """
    link: Link | None = None
    try:
        count(_exchanged((yield ballot(rank, world, settings, transport).to_bytes())))
        link = yield from _connect(rank, world, settings, transport)
        yield from _prove(link)
    except BaseException:
        if link is not None:
            link.endpoint.close()
        transport.close()
        raise
    link.endpoint.set_phase(Phase.SERVING)
    return link


def _exchanged(answer: Sequence[bytes] | None) -> Sequence[bytes]:
    if answer is None:
        raise TypeError("an exchange must be answered with every rank's bytes")
    return answer


def _connect(
    rank: int, world: int, settings: Settings, transport: Transport
) -> Generator[bytes | None, Sequence[bytes] | None, Link]:
    layout = Layout(
        world,
        settings.lanes,
        settings.max_reduce_bytes,
        settings.max_gather_bytes,
        settings.max_two_shot_bytes,
    )
    card, reason = b"", ""
    try:
        card = transport.open(layout)
    except (OSError, ValueError, BuildError) as error:
        reason = f"cannot set up its end ({layout.total} bytes): {error}"
    unanimous(_exchanged((yield reason.encode())))
    cards = _exchanged((yield card))
    link = None
    try:
        link = _link(rank, settings, layout, transport, transport.connect(cards))
    except (OSError, ValueError, MemoryError) as error:
        reason = f"cannot reach its peers: {error}"
    unanimous(_exchanged((yield reason.encode())))
    transport.seal()
    assert link is not None
    return link


def _link(
    rank: int, settings: Settings, layout: Layout, transport: Transport, bases: list[int]
) -> Link:
    spins, yields = patience(settings, layout.world, direct=transport.direct)
    config = configure(
        layout,
        settings.routes_for(layout.world),
        rank,
        bases,
        direct=transport.direct,
        pull=transport.pull,
        start_sequence=settings.start_sequence,
        spins=spins,
        yields=yields,
    )
    endpoint = Endpoint(layout, config)
    transport.attach(endpoint)
    supervisor = Supervisor(rank, settings, layout, transport, endpoint)
    return Link(rank, settings, layout, transport, endpoint, supervisor)


def _prove(link: Link) -> Generator[bytes | None, Sequence[bytes] | None, None]:
    shares = _exchanged((yield secrets.token_bytes(16)))
    nonce = hashlib.sha256(b"".join(shares)).digest()
    reason = ""
    try:
        reason = yield from prove(link.endpoint, link.supervisor, link.layout, link.rank, nonce)
    except CollectiveError as error:
        reason = str(error.root)
    unanimous(_exchanged((yield reason.encode())))
