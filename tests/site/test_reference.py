"""Image names: docker's grammar, nothing that a shell or docker would read otherwise."""

import pytest

from tetraspark.site.reference import is_pinned, is_tagged

DIGEST = "@sha256:" + "0a" * 32


@pytest.mark.parametrize(
    "text",
    [
        "x", "x:1", "team/x", "a.b/c__d/e-f:Tag_1.2", "registry:5000/x:1", "localhost/x",
        "Reg.Example/x", f"{'a' * 255}",
    ],
)  # fmt: skip
def test_what_docker_takes(text: str) -> None:
    assert is_tagged(text) and is_pinned(text + DIGEST)
    assert not is_pinned(text) and not is_tagged(text + DIGEST)


@pytest.mark.parametrize(
    "text",
    [
        "", "--evil;$(id)", "a::b//c:", "a//b", "/a", "a/", "a:", "A", "a:b:c", "a b", "-a", "a-",
        "a:-t", "a..b", "a___b", "x:" + "t" * 129, "a" * 256, "https://a/b", "a\n", "u@a", "a/B:1",
        "reg:x/a",
    ],
)  # fmt: skip
def test_what_docker_refuses(text: str) -> None:
    assert not is_tagged(text) and not is_pinned(text + DIGEST)


@pytest.mark.parametrize("digest", ["@sha256:0a", "@sha512:" + "0a" * 32, "@sha256:" + "0A" * 32])
def test_a_digest_is_64_lower_case_digits_of_sha256(digest: str) -> None:
    assert not is_pinned(f"x{digest}")
