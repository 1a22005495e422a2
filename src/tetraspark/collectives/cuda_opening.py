"""Bring a CUDA group up: the host's opening, then pinning, kernels, and a proof by the GPU."""

import hashlib
import secrets
from collections.abc import Generator, Sequence
from contextlib import ExitStack, suppress

import torch

from tetraspark.collectives import native
from tetraspark.collectives.cuda_driver import MappedHost
from tetraspark.collectives.cuda_endpoint import CudaEndpoint
from tetraspark.collectives.cuda_error import CudaError
from tetraspark.collectives.cuda_launch import Launcher
from tetraspark.collectives.cuda_link import CudaLink
from tetraspark.collectives.cuda_probe import Prober
from tetraspark.collectives.cuda_source import Shape, kernel_source
from tetraspark.collectives.endpoint import configure
from tetraspark.collectives.failure import CollectiveError, RefusedError
from tetraspark.collectives.layout import Layout
from tetraspark.collectives.opening import Link, opening
from tetraspark.collectives.proof import CHUNK_ROUNDS, ROUNDS
from tetraspark.collectives.relay import Relay
from tetraspark.collectives.settings import Settings
from tetraspark.collectives.supervisor import Supervisor
from tetraspark.collectives.transport import Transport
from tetraspark.collectives.vote import unanimous

DEADLINE_MARGIN_S = 5.0
"""The device's own clock ends a wait this long after the host's limit should have."""

Opening = Generator[bytes | None, Sequence[bytes] | None, CudaLink]
"""Yields bytes to be all-gathered, or None to be resumed a little later."""


def mapped_bytes(layout: Layout, *, pull: bool) -> int:
    """Return the bytes of each region that kernels touch: with pull no receive slots."""
    return layout.recv if pull else layout.total


def touched(link: Link) -> list[int]:
    """Return the ranks whose regions kernels touch: the own one where a relay posts for them."""
    return list(range(link.layout.world)) if link.transport.direct else [link.rank]


def check_routes(config: native.Config) -> None:
    """Raise ValueError unless every pair of ranks has all lanes.

    A kernel's grid is one row a stripe, so the stripes of all peers must be the same.
    """
    for peer in range(config.world):
        if peer != config.rank and config.route_count[peer] != config.lanes:
            raise ValueError(
                f"the route to rank {peer} has {config.route_count[peer]} of {config.lanes} lanes, "
                "kernels want all of them"
            )


def device_config(link: Link, bases: Sequence[int]) -> native.Config:
    """Return the configuration of the kernels: the proxy's, with the device's addresses."""
    return configure(
        link.layout,
        link.settings.routes_for(link.layout.world),
        link.rank,
        list(bases),
        direct=link.transport.direct,
        pull=link.transport.pull,
        start_sequence=link.endpoint.sequence,
        spins=0,
        yields=0,
    )


def cuda_opening(
    rank: int, world: int, settings: Settings, transport: Transport, device: torch.device
) -> Opening:
    """Open one rank's end. Raises RefusedError on every rank, naming the ones that cannot."""
    link = yield from opening(rank, world, settings, transport)
    found, reason = None, ""
    try:
        found = _attach(link, device)
    except (CudaError, OSError, ValueError, RuntimeError) as error:
        reason = f"cannot use {device}: {error}"
    try:
        unanimous(_exchanged((yield reason.encode())))
        source = hashlib.sha256(kernel_source(Shape(world)).encode()).digest()
        _same_source(_exchanged((yield source)))
        assert found is not None
        yield from _prove(found)
    except BaseException:
        _give_up(link, found)
        raise
    return found


def _exchanged(answer: Sequence[bytes] | None) -> Sequence[bytes]:
    if answer is None:
        raise TypeError("an exchange must be answered with every rank's bytes")
    return answer


def _same_source(answers: Sequence[bytes]) -> None:
    odd = [rank for rank, answer in enumerate(answers) if answer != answers[0]]
    if odd:
        raise RefusedError([(rank, "its kernels differ from those of rank 0") for rank in odd])


def _give_up(link: Link, found: CudaLink | None) -> None:
    if found is not None:
        found.endpoint.abort_own()
        with suppress(RuntimeError):
            torch.cuda.synchronize(found.device)
            found.release()
    link.endpoint.close()
    link.transport.close()


def _attach(link: Link, device: torch.device) -> CudaLink:
    check_routes(link.endpoint.state.config)
    if not torch.cuda.is_available():
        raise CudaError("torch sees no CUDA device")
    with ExitStack() as undo:
        bases = [0] * link.layout.world
        with torch.cuda.device(device):
            torch.cuda.current_stream().synchronize()
            nbytes = mapped_bytes(link.layout, pull=link.transport.pull)
            for rank in touched(link):
                memory = MappedHost(link.endpoint.state.config.base[rank], nbytes)
                undo.callback(memory.close)
                bases[rank] = memory.device
        config = device_config(link, bases)
        deadline_s = link.settings.late_limit_s + DEADLINE_MARGIN_S
        launcher = Launcher(config, device, link.endpoint.sequence, deadline_s)
        undo.callback(launcher.close)
        endpoint = CudaEndpoint(link.endpoint, link.layout, launcher.report)
        link.transport.attach(endpoint)
        relay = None
        if not link.transport.direct:
            relay = Relay(endpoint)
            undo.callback(relay.close)
            relay.start()
        supervisor = Supervisor(link.rank, link.settings, link.layout, link.transport, endpoint)
        own = Link(link.rank, link.settings, link.layout, link.transport, endpoint, supervisor)
        return CudaLink(own, launcher, endpoint, device, relay, undo.pop_all())


def _prove(found: CudaLink) -> Generator[bytes | None, Sequence[bytes] | None, None]:
    prober = Prober(found)
    shares = _exchanged((yield secrets.token_bytes(16)))
    nonce = hashlib.sha256(b"".join(shares)).digest()
    reason = ""
    for op in ROUNDS + (CHUNK_ROUNDS if found.link.layout.two_shot_bytes else ()):
        try:
            damage = yield from prober.run(op, nonce)
        except CollectiveError as error:
            reason = reason or str(error.root)
            break
        reason = reason or damage
    unanimous(_exchanged((yield reason.encode())))
