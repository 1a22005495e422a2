"""The option that names a manifest of pinned sources, for each verb that reads them."""

from pathlib import Path
from typing import Annotated

import typer

Manifests = Annotated[
    list[Path] | None,
    typer.Option(
        "--manifest", envvar="TETRASPARK_MANIFEST", help="A sources manifest of your own."
    ),
]
