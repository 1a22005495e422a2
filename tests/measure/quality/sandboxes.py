"""The sandbox that tests need: in CI it must be there, elsewhere its lack skips them."""

import functools
import os

import pytest

from tetraspark.errors import RunError
from tetraspark.measure.quality.proof import Proven, prove


@functools.cache
def needed() -> Proven:
    """Return a proven sandbox."""
    try:
        return prove()
    except RunError as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))
