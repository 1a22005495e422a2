"""Reading a document that may be of the wrong shape: absent and mistyped parts read as empty."""

from collections.abc import Iterator, Mapping
from typing import Any

from tetraspark.site.keypath import KeyPath

Document = Mapping[str, Any]


def table_at(document: Document, *keys: str) -> Mapping[str, Any]:
    """Return the table under these keys; an empty one where there is none."""
    value: Any = document
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def is_list(value: object) -> bool:
    """Say whether a value is a TOML list."""
    return isinstance(value, (list, tuple))


def nodes_of(document: Document) -> list[tuple[int, Mapping[str, Any]]]:
    """Return the well-formed nodes with their indexes."""
    nodes = document.get("nodes", ())
    if not is_list(nodes):
        return []
    return [(index, node) for index, node in enumerate(nodes) if isinstance(node, Mapping)]


def value_at(document: object, path: KeyPath) -> object:
    """Return the value under a key path, or None."""
    value: Any = document
    for part in path:
        if isinstance(part, int):
            value = value[part] if is_list(value) and part < len(value) else None
        else:
            value = value.get(part) if isinstance(value, Mapping) else None
    return value


def walk(value: object, path: KeyPath = ()) -> Iterator[tuple[KeyPath, object]]:
    """Yield every key and leaf, without recursion: TOML nests as deep as its author likes."""
    stack: list[tuple[KeyPath, object]] = [(path, value)]
    while stack:
        here, item = stack.pop()
        yield here, item
        if isinstance(item, Mapping):
            stack += [((*here, key), inner) for key, inner in item.items()]
        elif isinstance(item, (list, tuple)):
            stack += [((*here, index), inner) for index, inner in enumerate(item)]
