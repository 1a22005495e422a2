"""Section of a site file about the prefill split of the engine plugin."""

from pydantic import Field

from tetraspark.site.section import Section


class PrefillSplit(Section):
    """From where on the ranks share the index scores of a prefill step.

    The floors are the engine plugin's own (`engine.split_env`); it refuses to boot below them.
    """

    min_context: int = Field(
        default=32_768, ge=32_768, le=1_048_576, description="tokens of the longest request"
    )
    min_rows: int = Field(
        default=1024, ge=1024, le=131_072, description="tokens of the prefill step"
    )
