"""Orientation: a plan copes with cables between cages of one number, and NCCL may not."""

from collections.abc import Sequence

from tetraspark.errors import Problem
from tetraspark.fabric.cabling_moves import fewest, uniform_rings
from tetraspark.ring.order import Joint


def orientation(names: Sequence[str], joints: Sequence[Joint]) -> list[Problem]:
    """Warn of cables that join cages of the same number, and name the fewest plugs to move."""
    same = [one for one in joints if one.lower.cage.number == one.upper.cage.number]
    if not same:
        return []
    listed = ", ".join(f"cable {one.number} ({one.lower} to {one.upper})" for one in same)
    cables = [(one.lower.cage, one.upper.cage) for one in joints]
    present = {one.number for one in joints}
    rings = [
        [pair for number, pair in enumerate(ring) if number in present]
        for ring in uniform_rings(names)
    ]
    moved = "; ".join(map(str, fewest(cables, rings)))
    seen = f"same-numbered cages are joined: {listed}"
    wanted = "cage 0 to cage 1 on every cable, or NCCL with merged NICs (NCCL_IB_MERGE_NICS=1)"
    return [Problem("cabling", seen, wanted, f"leave it and merge NICs; or {moved}")]
