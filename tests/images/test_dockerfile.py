"""The rendered Dockerfiles: plain, pinned, complete."""

import re

import pytest

from tetraspark.images.dockerfile import render
from tetraspark.images.instruction import Instruction, parse
from tetraspark.images.manifest import Recipe, load_manifest
from tetraspark.images.recipe import RECIPES

MANIFEST = load_manifest()
BASE = MANIFEST.base[0].pinned


def rendered(recipe: Recipe) -> str:
    return render(recipe, BASE, next(iter(MANIFEST.of(recipe).source), None))


def instructions(recipe: Recipe) -> list[Instruction]:
    return list(parse(rendered(recipe)))


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_stage_is_pinned_and_in_order(recipe: Recipe) -> None:
    stages = {BASE}
    for one in instructions(recipe):
        if one.name == "FROM":
            assert one.words[0] in stages
            stages |= set(one.words[2:])
        source = one.flag("from")
        assert source is None or source in stages
    assert rendered(recipe) == rendered(recipe)


@pytest.mark.parametrize("recipe", RECIPES)
def test_it_is_plain_enough_for_the_legacy_builder_and_offline(recipe: Recipe) -> None:
    text = rendered(recipe)
    assert not re.search(r"(?im)^#\s*syntax|--mount|<<|--link|--chmod|https?://", text)
    assert not re.search(r"apt|curl|wget|\bgit\b", text.replace("wants", ""))
    for one in instructions(recipe):
        assert one.name != "RUN" or not {"|", "||", ";"} & set(one.words)
        if "install" in one.words:
            assert {"--no-index", "--no-deps", "--require-hashes"} <= set(one.words)
    assert all(len(line) <= 140 for line in text.splitlines())


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_image_has_the_rust_setting_a_receipt_and_a_health_check(recipe: Recipe) -> None:
    last = "\n".join(rendered(recipe).split("# The image.")[1:])
    assert "ENV SGLANG_RUST_BUILD_MODE=never\n" in last
    assert f"receipt.py {recipe} /opt/tetraspark" in last
    assert "HEALTHCHECK" in last and "health.py" in last
    # So that BuildKit, which leaves out stages nobody needs, runs the checks of the first.
    assert "COPY --from=verified" in last


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_plugin_is_checked_where_it_is(recipe: Recipe) -> None:
    text, plugin = rendered(recipe), RECIPES[recipe].plugin
    for check in ("tetraspark.engine.check", "tetraspark.measure.selftest", "--proxy"):
        assert (check in text) == plugin


def test_the_release_has_an_environment_of_its_own() -> None:
    text = rendered("release")
    assert "ENV PATH=/opt/tetraspark/venv/bin:$PATH PYTHONPATH=\n" in text
    assert "--machine=aarch64" in text and "--python=3.12" in text
    assert "/sgl-workspace" not in text and "/sgl-workspace" in rendered("canary")
