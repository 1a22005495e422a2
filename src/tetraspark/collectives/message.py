"""What ranks tell each other while a group opens or fails: JSON with a name and a checksum.

A message that was cut, changed, or written by something else is refused when it is read. The
checksum is for accidents: whoever may send to a rank is trusted.
"""

import json
import zlib
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar, get_origin

MAX_BYTES = 1 << 20
"""The largest message that is read: what ranks say fits a thousandth of it."""

SHOWN = 40

Value = TypeVar("Value")


def seal(name: str, values: Mapping[str, Any]) -> bytes:
    """Encode values as a message of this name."""
    body = json.dumps(values, separators=(",", ":")).encode()
    return b"%s %08x " % (name.encode(), _checksum(name, body)) + body


def unseal(name: str, data: bytes) -> dict[str, Any]:
    """Decode a message of this name. Raises ValueError, saying what is wrong with it."""
    if len(data) > MAX_BYTES:
        raise ValueError(f"a {name} of {len(data)} bytes: wanted at most {MAX_BYTES}")
    head, _, rest = data.partition(b" ")
    checksum, _, body = rest.partition(b" ")
    if head != name.encode():
        raise ValueError(f"not a {name}: {data[:SHOWN]!r}")
    if checksum != b"%08x" % _checksum(name, body):
        raise ValueError(f"a damaged {name}: its checksum is not that of its {len(body)} bytes")
    try:
        values = json.loads(body)
    except RecursionError as error:
        raise ValueError(f"a {name} that is nested too deeply") from error
    if not isinstance(values, dict):
        raise ValueError(f"a {name} that is no object")
    return values


def built(kind: type[Value], name: str, values: Mapping[str, Any]) -> Value:
    """Construct a flat dataclass from values of exactly its fields and their types.

    Raises ValueError, naming the field.
    """
    wanted = {field.name: field.type for field in fields(kind)}  # type: ignore[arg-type]  # one is
    if set(values) != set(wanted):
        off = sorted(set(values) ^ set(wanted))
        raise ValueError(f"a {name} of another version: {', '.join(off)[:SHOWN]}")
    for field, type_of in wanted.items():
        plain: Any = get_origin(type_of) or type_of
        value = values[field]
        # bool is an int to Python and none to C.
        odd = not isinstance(value, plain) or (isinstance(value, bool) and plain is not bool)
        if odd:
            raise ValueError(f"a {name} with {field} {str(value)[:SHOWN]!r}")
    return kind(**values)


def _checksum(name: str, body: bytes) -> int:
    return zlib.crc32(body, zlib.crc32(name.encode()))
