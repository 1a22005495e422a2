"""The receipt of a line that became ready: what ran, on what, and the proof that it served."""

from typing import Any, Literal

from tetraspark.measure.qualification.receipt import KeptNode
from tetraspark.receipts.sealed import Hash, Kept, Sealed


class KeptImage(Kept):
    """The image that a node's container runs: its tag then, its ID, the digests it was pulled by.

    Builds of one source have an ID of their own on every node.
    """

    tag: str
    id: str
    digests: tuple[str, ...]


class KeptModel(Kept):
    """A checkpoint's folder on a node.

    `sha256` is of every file's name and size, and of the texts of its configuration and index:
    another checkpoint is told from it in a moment, a flipped bit in a shard is not.
    """

    folder: str
    files: int
    bytes: int
    sha256: Hash


class ServedNode(KeptNode):
    """A node of a line that became ready; a fleet's were looked at just before the start.

    `idle_bytes` is its MemAvailable from before the start, None where nobody looked: a line that
    made way for this one was still in memory. `image` is that of the container that ran. Image and
    model are None where a node has none, or could not be seen.
    """

    idle_bytes: int | None
    image: KeptImage | None
    model: KeptModel | None


class Proof(Kept):
    """What the line was asked before it was called ready, its answer, and seconds by phase."""

    prompt: str
    answer: str
    finish: str
    seconds: dict[str, float]


class ServeReceipt(Sealed):
    """One line that became ready; `id` is its run's.

    `site_sha256` is of the site file as it was read, `site_text` its text without the API key,
    which is only ever named. `plan` and `effective` are the run's own. `tolerated` are the checks
    that it was started despite. `rollback_of` is the receipt that it served again.
    """

    receipt: Literal[1] = 1
    id: str
    line: str
    kind: Literal["local", "fleet"]
    at: str
    rollback_of: str | None
    tetraspark: str
    revision: str
    site: str
    site_sha256: Hash
    site_text: str
    plan: dict[str, Any]
    effective: tuple[dict[str, Any], ...]
    tolerated: tuple[str, ...]
    nodes: tuple[ServedNode, ...]
    proof: Proof
