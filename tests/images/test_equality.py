"""Whether nodes built the same image, from what their Dockers say."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tetraspark.errors import Problem
from tetraspark.images.built import BuiltImage, Described, parse_contents, parse_inspect
from tetraspark.images.equality import differences

LABELS = {"tetraspark.context": "c0ffee", "tetraspark.recipe": "canary"}
RECEIPT = {"packages": {"torch": "2.9.0", "numpy": "2.4"}, "libraries": {"proxy.c": "aa"}}
INSPECT = [
    {
        "Id": "sha256:427f",
        "RepoDigests": [],
        "Os": "linux",
        "Architecture": "arm64",
        "Config": {
            "Hostname": "f80320c3ab38",
            "Image": "sha256:f9f6",
            "Env": ["PATH=/usr/bin"],
            "Cmd": ["/bin/sh"],
            "Volumes": None,
            "Labels": LABELS,
        },
        "RootFS": {"Type": "layers", "Layers": ["sha256:1", "sha256:2", "sha256:3"]},
    }
]


def described(**change: Any) -> Described:
    return replace(parse_inspect(json.dumps(INSPECT)), **change)


BASE = described(id="sha256:b", layers=("sha256:1", "sha256:2"))


def built(**change: Any) -> BuiltImage:
    return replace(BuiltImage(described(), BASE, RECEIPT), **change)


def found(**changed: BuiltImage) -> list[Problem]:
    nodes = {f"spark{number}": built() for number in range(1, 5)}
    return differences(nodes | changed, LABELS)


def test_ids_own_layers_and_traces_of_the_build_do_not_count() -> None:
    other = described(id="sha256:other", layers=("sha256:1", "sha256:2", "sha256:x", "sha256:y"))
    assert found(spark3=built(image=other)) == []
    assert "Hostname" not in described().config
    assert "Image" not in described().config


def test_a_label_that_is_not_as_planned() -> None:
    config = {**described().config, "Labels": LABELS | {"tetraspark.context": "bad"}}
    problems = found(spark2=built(image=described(config=config)))
    assert [problem.where for problem in problems] == ["spark2 image"]
    assert "label tetraspark.context is 'bad'" in problems[0].seen
    assert problems[0].wanted == "'c0ffee', as planned"


def test_all_nodes_agreeing_on_a_wrong_label_is_no_agreement() -> None:
    nodes = {f"spark{number}": built() for number in range(1, 5)}
    assert len(differences(nodes, LABELS | {"tetraspark.recipe": "release"})) == 4


def test_an_image_that_does_not_stand_on_its_base() -> None:
    layers = ("sha256:other", "sha256:2", "sha256:3")
    problems = found(spark4=built(image=described(layers=layers)))
    assert "does not stand on its base" in problems[0].seen


def test_another_base_under_the_same_digest() -> None:
    base = replace(BASE, layers=("sha256:9",))
    image = described(layers=("sha256:9", "sha256:3"))
    problems = found(spark1=built(image=image, base=base))
    assert [problem.where for problem in problems] == ["spark1 image"]
    assert problems[0].seen.startswith("base layers")
    assert problems[0].wanted == "as on spark2, spark3, spark4"


def test_a_receipt_names_what_differs_and_where() -> None:
    receipt = {"packages": {"torch": "2.9.1", "numpy": "2.4"}, "libraries": {"proxy.c": "bb"}}
    problems = found(spark3=built(receipt=receipt))
    assert [problem.where for problem in problems] == ["spark3 image"]
    assert problems[0].seen == (
        'receipt libraries proxy.c: "bb", elsewhere "aa"; '
        'receipt packages torch: "2.9.1", elsewhere "2.9.0"'
    )
    assert problems[0].fix == "tetraspark build --node spark3 --no-cache"


def test_a_receipt_that_only_one_node_lacks() -> None:
    assert found(spark2=built(receipt=None))[0].seen.startswith("receipt: absent, elsewhere")


def test_a_variable_of_one_nodes_configuration() -> None:
    config = {**described().config, "Env": ["PATH=/usr/bin", "NCCL_ALGO=Tree"]}
    problems = found(spark1=built(image=described(config=config)))
    assert problems[0].seen.startswith("configuration Env")


def test_two_against_two_are_told_as_not_like_the_head() -> None:
    other = built(receipt={})
    problems = found(spark3=other, spark4=other)
    assert [problem.where for problem in problems] == ["spark3 image", "spark4 image"]
    assert problems[0].wanted == "as on spark1, spark2"


@pytest.mark.parametrize("text", ["", "[]", "{}", '[{"Id": 1}]', "Error: No such image"])
def test_what_is_no_description_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not what docker image inspect prints"):
        parse_inspect(text)


@pytest.mark.parametrize("text", ["", "[]", "no", "{}", '{"receipt": {}, "contents": {}}'])
def test_what_is_no_receipt_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no receipt and contents"):
        parse_contents(text)


def test_contents_that_differ_under_equal_receipts() -> None:
    problems = found(
        spark1=built(contents={"/opt/tetraspark": "aa", "torch": "bb"}),
        spark2=built(contents={"/opt/tetraspark": "aa", "torch": "cc"}),
        spark3=built(contents={"/opt/tetraspark": "aa", "torch": "bb"}),
        spark4=built(contents={"/opt/tetraspark": "aa", "torch": "bb"}),
    )
    assert [problem.where for problem in problems] == ["spark2 image"]
    assert problems[0].seen == 'contents torch: "cc", elsewhere "bb"'


def test_nothing_a_node_says_moves_the_terminal() -> None:
    evil = "\x1b[2J\x1b]0;title\x07red"
    (problem,) = found(spark2=built(receipt={**RECEIPT, evil: 1}))
    assert problem.seen == "receipt red: 1, elsewhere absent"
    one = parse_inspect(json.dumps([INSPECT[0] | {"Id": evil, "Os": evil}]))
    assert (one.id, one.platform) == ("red", "red/arm64")
