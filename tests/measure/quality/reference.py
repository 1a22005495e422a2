"""A right answer to every task, and plausible wrong ones for each kind of scorer."""

import json

from tests.measure.quality.reference_code import CODE

NUMBERS = {
    "NUMBER.001": "42",
    "NUMBER.002": "31 - 58 = -27",
    "NUMBER.003": "7 * 8 is 56.",
    "NUMBER.004": "93",
    "NUMBER.005": "71",
    "NUMBER.006": "The smaller one is 38.",
    "NUMBER.007": "Anna has 19 apples now: 12 + 7 = 19.",
    "NUMBER.008": "27",
    "NUMBER.009": "4,387 x 269 = 1,180,103\nAnswer: 1,180,103",
    "NUMBER.010": "2^12 is 1 modulo 13, so 2^50 = 2^2.\n\n**Answer: 4**",
    "NUMBER.011": "1/5 + 1/20 - 1/12 = 1/6\nAnswer: 6",
    "NUMBER.012": "215 - 35 = 180\nAnswer: 180",
    "NUMBER.013": "Answer: 225",
    "NUMBER.014": "Answer: 13",
    "NUMBER.015": "250 + 166 - 2 * 83 = 250\nAnswer: 250",
    "NUMBER.016": "Answer: 97.5",
    "NUMBER.017": "Answer: 0.464",
    "NUMBER.018": "Answer: 36",
    "NUMBER.019": "Answer: 1260",
    "NUMBER.020": "Answer: 60",
}


def _json(value: object) -> str:
    return json.dumps(value)


_RING = [
    {"name": f"node{one}", "port": 9000 + one, "peers": sorted([f"node{a}", f"node{b}"])}
    for one, a, b in ((0, 3, 1), (1, 0, 2), (2, 1, 3), (3, 2, 0))
]
JSONS = {
    "JSON.001": _json({"name": "Ada", "age": 36, "city": "London"}),
    "JSON.002": f"Here it is:\n```json\n{_json({'count': 17, 'animal': 'fox'})}\n```\nDone.",
    "JSON.003": _json({"thing": "lamp", "colour": "green", "count": 204, "city": "Oslo"}),
    "JSON.004": "Sure: " + _json({"city": "Vienna", "name": "Karin", "age": 58}) + " (see above)",
    "JSON.005": _json([{"name": f"lamp-{one}"} for one in range(3)]),
    "JSON.006": _json(
        {
            "order": 5512,
            "date": "2024-05-03",
            "lines": [
                {"item": "kettle", "count": 2, "price": 31.50},
                {"item": "tray", "count": 1, "price": 8.0},
            ],
            "total": 71.0,
        }
    ),
    "JSON.007": _json({"lanes": 3, "ranks": 4, "depth": 16}),
    "JSON.008": _json(
        [
            {"name": "Ines", "born": 1971},
            {"name": "Tomas", "born": 1998},
            {"name": "Rui", "born": None},
        ]
    ),
    "JSON.009": _json({"3": ["oak", "elm", "fir"], "4": ["pine"], "5": ["larch", "beech"]}),
    "JSON.010": _json({"name": "ring", "sizes": [1, 2, 3], "open": True, "note": None}),
    "JSON.011": _json({"host": "www.example.org", "port": 8443, "tls": True, "tags": ["a", "b"]}),
    "JSON.012": _json(
        [
            {"name": "red", "hex": "#ff0000"},
            {"name": "lime", "hex": "#00ff00"},
            {"name": "blue", "hex": "#0000ff"},
        ]
    ),
    "JSON.013": _json(_RING),
    "JSON.014": _json(
        {
            "value": 1,
            "children": [
                {"value": 2, "children": []},
                {"value": 3, "children": [{"value": 4, "children": []}]},
            ],
        }
    ),
    "JSON.015": _json(
        [
            {"first": f"2024-0{month}-01", "last": f"2024-0{month}-{last}"}
            for month, last in ((1, 31), (2, 29), (3, 31))
        ]
    ),
}
FORMATS = {
    "FORMAT.001": "four small machines answer as one",
    "FORMAT.002": "7, 23, 42, 99",
    "FORMAT.003": "\n".join(str(number) for number in range(1, 21)),
    "FORMAT.004": "- red\n- Green\n- blue",
    "FORMAT.005": "lantern, otter",
    "FORMAT.006": "31, 30, 29, 28, 27, 26, 25, 24",
    "FORMAT.007": "THE SEAL'S 3 BOATS LEFT AT 6 A.M.",
    "FORMAT.008": "apple\ndate\nfig\nPear\nplum",
    "FORMAT.009": 'name,note,count\nLea,"small, red",4\nJan,"he said ""no""",12\n',
    "FORMAT.010": "1) Wipe\n2) Sweep the floor\n3) Rinse\n4) Dry it\n5) Air the room",
    "FORMAT.011": "The grey sea rolls over the old stones every single night.",
    "FORMAT.012": "Rain falls softly on our dark roofs.",
    "FORMAT.013": "Round we go\nIn the night\nNever alone\nGoing on and on",
    "FORMAT.014": "2019-12-30\n2021-03-01\n2021-03-07",
    "FORMAT.015": ("| n | square |\n|---|--------|\n| 1 | 1 |\n| 2 | 4 |\n| 3 | 9 |\n| 4 | 16 |"),
}
RIGHT = {**CODE, **JSONS, **NUMBERS, **FORMATS}
WRONG = {
    "NUMBER.001": ["41", "19 + 23", "It is 41 or 42.", "42 or 43", "I do not know", "-42", "4 2"],
    "NUMBER.002": ["27", "31 - 58", "31 - 58 = 27"],
    "NUMBER.005": ["17", "17, 71", "71 is larger than 17", "1771"],
    "NUMBER.009": ["1180103", "Answer: 1180130", "Answer: 4,387", "Answer: 1180103\nAnswer: 7"],
    "NUMBER.017": ["Answer: 0.5", "Answer: 13/28", "Answer: 0.46"],
    "JSON.001": [
        '{"name": "Ada", "age": "36", "city": "London"}',
        '{"name": "Ada", "age": 36}',
        '{"name": "Ada", "age": 36, "city": "London"',
        '{"name": "Bob", "name": "Ada", "age": 36, "city": "London"}',
        '[{"name": "Ada", "age": 36, "city": "London"}]',
        "name Ada, age 36 and city London",
    ],
    "JSON.005": ['[{"a": 1}, {"a": 2}]', "[{}, {}, {}]", '["lamp", "lamp", "lamp"]', '{"a": [{}]}'],
    "JSON.010": [
        '{"name": "ring", "sizes": [1, 2, 3,], "open": True, \'note\': null',
        '{"name": "ring", "sizes": [1, 2, 3], "open": 1, "note": null}',
    ],
    "JSON.011": [
        '{"host": "localhost", "port": 8443, "tls": true, "tags": ["a", "b"]}',
        '{"host": "a.b", "port": 80, "tls": true, "tags": ["a", "b"]}',
        '{"host": "a.b", "port": 8443, "tls": true, "tags": ["a", "a"]}',
        '{"host": "a.b", "port": NaN, "tls": true, "tags": ["a", "b"]}',
        '{"host": "a.b", "port": 8443, "tls": true, "tags": ["a", "b"], "more": 1}',
    ],
    "FORMAT.001": ["Four small machines answer as one", '"four small machines answer as one"'],
    "FORMAT.002": ["42, 7, 99, 23", "7, 23, 42", "99, 42, 23, 7", "1) 7, 23, 42, 99"],
    "FORMAT.004": ["red, green", "red, green, red", "red, green, table", "Sure: red, green, blue"],
    "FORMAT.005": ["lantern", "otter, lantern", "lantern, otter, bridge"],
    "FORMAT.009": [
        "name,note,count\nLea,small, red,4\nJan,he said no,12",
        'name,note,count\nLea,"small, red",4',
        '```\nname,note,count\nLea,"small, red",4\nJan,"he said ""no""",12\n```',
    ],
    "FORMAT.010": ["1) a\n2) b\n3) c\n4) d", "1) a\n2) b\n3) c\n4) d\n5) e.", "1. a\n2. b"],
    "FORMAT.011": [
        "The sea is deep.",
        "the grey sea rolls over the old stones every single night.",
    ],
    "FORMAT.012": ["Rain is the water of the sky.", "Rain falls."],
    "FORMAT.013": ["Round we go\nIn the night\nAlone again\nGoing on", "Ring"],
    "FORMAT.015": ["| n | square |\n|---|---|\n| 1 | 1 |\n| 2 | 4 |\n| 3 | 9 |\n| 4 | 15 |"],
}
