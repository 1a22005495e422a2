"""The second half of a two-shot all-reduce, as a request of its own."""

from tetraspark.collectives import native
from tetraspark.collectives.flags import Op


def gather_of(reduced: native.Request, rank: int) -> native.Request:
    """Return the gather that follows the reduction of chunks.

    It reads this rank's chunk where the reduction wrote it, and puts all of them together around
    it. `reduced.output` is the place of that chunk in the result.
    """
    gathered = native.Request.from_buffer_copy(reduced)
    gathered.op = Op.TWO_SHOT_GATHER
    gathered.bytes = reduced.row_bytes
    gathered.input = reduced.output
    gathered.output = (reduced.output or 0) - reduced.out_offset[rank]
    return gathered
