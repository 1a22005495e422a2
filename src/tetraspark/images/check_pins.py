"""Are the pins still good: do the files exist as pinned, and do our hooks know that engine?"""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass

from tetraspark.engine.drift import Finding, inspect_all
from tetraspark.engine.hooks import TARGETS
from tetraspark.engine.tree import TreeError, WheelTree
from tetraspark.errors import Problem, RunError
from tetraspark.images.cache import Cache
from tetraspark.images.fetch import Fetched, Row
from tetraspark.images.manifest import Manifest, Wheel

ENGINE = "sglang"


@dataclass(frozen=True)
class PinCheck:
    """What was found: each file of the recipe, hashed anew, and each place the plugin touches.

    `findings` is empty for a recipe without a wheel of the engine.
    """

    files: tuple[Fetched, ...]
    findings: tuple[Finding, ...]

    @property
    def drifted(self) -> tuple[Finding, ...]:
        """The places that are not as the hooks know them."""
        return tuple(one for one in self.findings if one.verdict != "found")

    def as_dict(self) -> dict[str, object]:
        """Return JSON-able values."""
        return {
            "ok": not self.drifted,
            "files": [one.as_dict() for one in self.files],
            "hooks": [asdict(one) for one in self.findings],
        }


def check_pins(
    cache: Cache,
    manifest: Manifest,
    recipe: str,
    bring: Callable[[Iterable[Row]], list[Fetched]],
) -> PinCheck:
    """Have a recipe's files fetched and hashed, then look into the engine's wheel.

    `bring` fetches what is missing, hashes all, and raises RunError for a file that is not as
    pinned.
    """
    rows = manifest.of(recipe).downloads
    files = tuple(bring(rows))
    wheels = [row for row in rows if isinstance(row, Wheel) and row.name == ENGINE]
    findings = tuple(one for row in wheels for one in inspect_wheel(cache, row))
    return PinCheck(files, findings)


def inspect_wheel(cache: Cache, row: Wheel) -> list[Finding]:
    """Look at every place the plugin touches in a wheel of the engine; nothing of it is run."""
    path = cache.path(row.sha256)
    try:
        return inspect_all(WheelTree(path), TARGETS)
    except TreeError as error:
        fix = f"pin another file for {row.component}"
        raise RunError(Problem(str(path), error.seen, error.wanted, fix)) from error


def drift_problems(check: PinCheck) -> list[Problem]:
    """Return one problem for each place that is not as the hooks know it."""
    fix = "re-check the adapter, or pin the engine it was written for"
    return [Problem(one.target.path, str(one), "known source", fix) for one in check.drifted]
