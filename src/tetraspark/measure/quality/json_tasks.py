"""Tasks whose answer is JSON. The first five the bundled tiny model knows, too."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from tetraspark.measure.quality.task import Json, Task

ALONE = " Answer with the JSON alone."
MAX_TOKENS = 768


def exact(value: Any) -> dict[str, Any]:
    """Return the schema of one value."""
    return {"const": value}


def closed(**properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def listed(items: Mapping[str, Any], least: int, most: int) -> dict[str, Any]:
    """Return the schema of an array."""
    return {"type": "array", "items": items, "minItems": least, "maxItems": most}


def _task(number: int, prompt: str, schema: Mapping[str, Any]) -> Task:
    return Task(f"JSON.{number:03}", prompt, Json(schema), MAX_TOKENS)


def _by_schema(
    number: int,
    prompt: str,
    shown: Mapping[str, Any],
    more: Mapping[str, Any] = MappingProxyType({}),
) -> Task:
    """Return a task that shows a schema; `more` are keywords for what else the prompt says."""
    text = f"{prompt} It must be valid by this JSON Schema: {json.dumps(shown)}{ALONE}"
    return _task(number, text, {**shown, **more})


TEXT: Mapping[str, Any] = {"type": "string", "minLength": 1}
PORT: Mapping[str, Any] = {"type": "integer", "minimum": 1024, "maximum": 65535}
HEX: Mapping[str, Any] = {"type": "string", "pattern": "^#[0-9a-f]{6}$"}
DAY: Mapping[str, Any] = {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}
NODE = closed(name={"type": "string", "pattern": "^node[0-9]$"}, port=PORT, peers={"type": "array"})
TREE: Mapping[str, Any] = {
    "$defs": {
        "tree": closed(
            value={"type": "integer"}, children={"type": "array", "items": {"$ref": "#/$defs/tree"}}
        )
    },
    "$ref": "#/$defs/tree",
}

SIMPLE = (
    _task(
        1,
        "Write a JSON object with name Ada, age 36 and city London.",
        exact({"name": "Ada", "age": 36, "city": "London"}),
    ),
    _task(
        2,
        "Write a JSON object with animal fox and count 17.",
        exact({"animal": "fox", "count": 17}),
    ),
    _task(
        3,
        "Write a JSON object with thing lamp, colour green, count 204 and city Oslo.",
        exact({"thing": "lamp", "colour": "green", "count": 204, "city": "Oslo"}),
    ),
    _task(
        4,
        "As JSON: city Vienna, name Karin and age 58.",
        exact({"city": "Vienna", "name": "Karin", "age": 58}),
    ),
    _task(5, "Write a JSON list of 3 lamps.", listed({"type": "object", "minProperties": 1}, 3, 3)),
)

EXTRACTION = (
    _task(
        6,
        "Read this note: 'Order 5512 of 3 May 2024: two kettles at 31.50 each and one tray at 8.'"
        " Write a JSON object with the keys order (a number), date (YYYY-MM-DD), lines (a list of"
        " objects with item in the singular, count and price, in the order of the note) and total"
        " (a number)." + ALONE,
        exact(
            {
                "order": 5512,
                "date": "2024-05-03",
                "lines": [
                    {"item": "kettle", "count": 2, "price": 31.5},
                    {"item": "tray", "count": 1, "price": 8},
                ],
                "total": 71,
            }
        ),
    ),
    _task(
        7,
        "Turn these lines into a JSON object from names to numbers, without the lines that begin"
        " with #; a name that stands twice has its last number.\nlanes = 2\n# lanes = 4\n"
        "ranks = 4\ndepth = 16\nlanes = 3\n" + ALONE.strip(),
        exact({"lanes": 3, "ranks": 4, "depth": 16}),
    ),
    _task(
        8,
        "Write the people of this sentence as a JSON list of objects with name and born (a number,"
        " or null when it is not told), in the order in which they are named: 'Ines, born in 1971,"
        " is the mother of Tomas (1998) and the sister of Rui.'" + ALONE,
        exact(
            [
                {"name": "Ines", "born": 1971},
                {"name": "Tomas", "born": 1998},
                {"name": "Rui", "born": None},
            ]
        ),
    ),
    _task(
        9,
        "Group these words by their length as a JSON object: each key is a length as text, each"
        " value the list of the words of that length in the order given. Words: oak, pine, elm,"
        " larch, fir, beech." + ALONE,
        exact({"3": ["oak", "elm", "fir"], "4": ["pine"], "5": ["larch", "beech"]}),
    ),
    _task(
        10,
        'This JSON is broken: {"name": "ring", "sizes": [1, 2, 3,], "open": True, \'note\': null'
        " Write it with every mistake of form mended and nothing else changed." + ALONE,
        exact({"name": "ring", "sizes": [1, 2, 3], "open": True, "note": None}),
    ),
)

SCHEMAS = (
    _by_schema(
        11,
        "Write a JSON object that describes a made-up server.",
        closed(
            host={"type": "string", "pattern": "^[a-z]+(\\.[a-z]+)+$"},
            port=PORT,
            tls={"type": "boolean"},
            tags={**listed(TEXT, 2, 4), "uniqueItems": True},
        ),
    ),
    _by_schema(
        12,
        "Write a JSON list of the colours red, lime and blue of the web, in this order.",
        listed(closed(name=TEXT, hex=HEX), 3, 3),
        exact(
            [
                {"name": "red", "hex": "#ff0000"},
                {"name": "lime", "hex": "#00ff00"},
                {"name": "blue", "hex": "#0000ff"},
            ]
        ),
    ),
    _by_schema(
        13,
        "Four nodes node0 to node3 form a ring in the order of their numbers. Write them as a JSON"
        " list in that order. node0 has port 9000, each next one the next port. peers are the names"
        " of the two neighbours in alphabetical order.",
        listed(NODE, 4, 4),
        exact(
            [
                {"name": "node0", "port": 9000, "peers": ["node1", "node3"]},
                {"name": "node1", "port": 9001, "peers": ["node0", "node2"]},
                {"name": "node2", "port": 9002, "peers": ["node1", "node3"]},
                {"name": "node3", "port": 9003, "peers": ["node0", "node2"]},
            ]
        ),
    ),
    _by_schema(
        14,
        "Write a tree in which 1 has the children 2 and 3, and 3 has the child 4.",
        TREE,
        exact(
            {
                "value": 1,
                "children": [
                    {"value": 2, "children": []},
                    {"value": 3, "children": [{"value": 4, "children": []}]},
                ],
            }
        ),
    ),
    _by_schema(
        15,
        "Write the first and the last day of each of the first three months of 2024 as a JSON list"
        " in that order.",
        listed(closed(first=DAY, last=DAY), 3, 3),
        exact(
            [
                {"first": "2024-01-01", "last": "2024-01-31"},
                {"first": "2024-02-01", "last": "2024-02-29"},
                {"first": "2024-03-01", "last": "2024-03-31"},
            ]
        ),
    ),
)

JSON_TASKS = SIMPLE + EXTRACTION + SCHEMAS
