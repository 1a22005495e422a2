"""Which rank a standing line waits for. Pure."""

from tetraspark.watch.look import Look
from tetraspark.watch.observation import RankSample


def blamed(look: Look) -> tuple[int | None, str]:
    """Return the rank to blame for a line that stands, and why; None where none stands out.

    In this order: what the communicators agreed on, a rank that does not run, the one that is not
    in the operation all others wait in, the one that has completed fewer.
    """
    if look.root is not None:
        rank, text = look.root
        return rank, f"{_named(look, rank)}: {text}"
    if look.rank is not None:
        return look.rank, look.reason
    absent = [rank for rank in look.ranks if rank.collective == "ready"]
    waiting = [rank for rank in look.ranks if rank.collective == "waiting"]
    if len(absent) == 1 and len(waiting) == len(look.ranks) - 1 and waiting:
        (one,) = absent
        return one.rank, f"{_where(one)} is not in the collective that all others wait in"
    return _behind(look)


def _behind(look: Look) -> tuple[int | None, str]:
    told = [(rank.operations, rank) for rank in look.ranks if rank.operations is not None]
    least = min((operations for operations, _ in told), default=0)
    behind = [rank for operations, rank in told if operations == least]
    if len(told) > 1 and len(behind) == 1:
        most = max(operations for operations, _ in told)
        why = f"{_where(behind[0])} has completed {least} collectives, others {most}"
        return behind[0].rank, why
    return None, "no rank stands out: its stacks tell where each one is"


def _named(look: Look, rank: int) -> str:
    return next((_where(one) for one in look.ranks if one.rank == rank), f"rank {rank}")


def _where(rank: RankSample) -> str:
    return f"rank {rank.rank} ({rank.node})"
