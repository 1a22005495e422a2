"""Section of a site file about what ends a start that is still under way."""

from pydantic import Field

from tetraspark.site.section import Section


class Startup(Section):
    """What is watched on every node of a fleet while a line starts."""

    min_available_gib: float = Field(
        default=2.0, ge=0, le=128, description="MemAvailable a node keeps, GiB; below it, the end"
    )
    low_free_gib: float = Field(
        default=8.0, ge=0, le=128, description="MemFree below which the page cache is warned of"
    )
    poll_seconds: int = Field(
        default=5, ge=1, le=600, description="between two looks at each node's memory"
    )
