"""A JSON record in the folder of a line or a run: read whole and of its shape, or refused.

Another program wrote it, at another time, perhaps while its disk was full: nothing in it is taken
for granted, and a record that cannot be read is never written over.
"""

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from tetraspark.errors import Problem, RunError, UsageError
from tetraspark.site.keypath import dotted
from tetraspark.site.source import read_bytes

_ANY: TypeAdapter[Any] = TypeAdapter(Any)


class Shape(BaseModel):
    """The fields of a record that somebody reads; it may have others."""

    model_config = ConfigDict(extra="allow", strict=True)


def read_record(path: Path, shape: type[Shape] | TypeAdapter[Any], wanted: str, fix: str) -> Any:
    """Return the value of a record, None where there is no such file.

    Raises RunError, with `wanted` and `fix`, for one of another shape: no regular file, larger
    than `LARGEST_FILE` of site/source.py, no JSON, nested too deeply, fields of other types.
    """
    if not path.exists() and not path.is_symlink():
        return None
    try:
        return parse_record(read_bytes(path), shape)
    except UsageError as error:
        seen = error.problems[0].seen
    except ValueError as error:
        seen = str(error)
    raise RunError(Problem(str(path), seen, wanted, fix))


def parse_record(data: bytes, shape: type[Shape] | TypeAdapter[Any]) -> Any:
    """Return the value of a record's bytes, as plain JSON. Raises ValueError. Pure."""
    try:
        value = _ANY.validate_json(data)
    except ValidationError as error:
        raise _damaged(error) from None
    return of_shape(value, shape)


def of_shape(value: Any, shape: type[Shape] | TypeAdapter[Any]) -> Any:
    """Return a value of JSON that is of a shape. Raises ValueError for another. Pure."""
    checked = shape if isinstance(shape, TypeAdapter) else TypeAdapter(shape)
    try:
        checked.validate_python(value)
    except ValidationError as error:
        raise _damaged(error) from None
    return value


def _damaged(error: ValidationError) -> ValueError:
    first = error.errors(include_url=False, include_input=False)[0]
    where = f"{dotted(first['loc'])}: " if first["loc"] else ""
    return ValueError(f"damaged: {where}{first['msg']}")


def set_aside(path: Path) -> Path:
    """Give a damaged record another name in its folder, where none is lost; returns that.

    Raises OSError.
    """
    number = 1
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    return path.rename(aside)
