"""From a site to a build context: recipes, and Dockerfiles of the user's own."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.images.conftest import Sources
from tests.images.test_package import git
from tests.serving import ROOT
from tetraspark.errors import Problem, RunError, TetrasparkError, UsageError
from tetraspark.images.assemble import build_context
from tetraspark.images.context import BuildContext, write_context
from tetraspark.images.manifest import Manifest
from tetraspark.images.recipe import RECIPES
from tetraspark.site.load import load_site

SITE = (ROOT / "sites" / "four-sparks-switch.toml").read_text()
BASE = f"registry.example/base:1@sha256:{'5' * 64}"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    (folder / "image").mkdir(parents=True)
    git(folder, "init", "-q")
    return folder


def site(folder: Path, recipe: str, image: str = "") -> Path:
    path = folder / "site.toml"
    text = SITE.replace('recipe = "release"', f'recipe = "{recipe}"\n{image}')
    path.write_text(text + 'SGLANG_RUST_BUILD_MODE = "never"\n')
    return path


def context(sources: Sources, path: Path, manifest: Manifest | None = None) -> BuildContext:
    found = manifest or sources.manifest
    return build_context(load_site(path), sources.cache, manifest=found, allow_dirty=True)


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_becomes_a_folder_that_checks_itself(
    sources: Sources, tmp_path: Path, recipe: str
) -> None:
    sources.fill()
    made = context(sources, site(tmp_path, recipe))
    folder = tmp_path / "context"
    write_context(made, folder)
    check = ["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"]
    subprocess.run(check, cwd=folder / "files", check=True)
    there = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    wheels = {path for path in there if path.endswith(".whl")}
    pinned = {} if recipe in ("base", "release") else {"kernel_one", "kernel_two"}
    own = {"tetraspark"} if RECIPES[recipe].plugin else set()  # type: ignore[index]  # a key of it
    assert {Path(path).name.split("-")[0] for path in wheels} == {*pinned, *own}
    requirements = (folder / "files" / "requirements.txt").read_text().splitlines()
    assert len(requirements) == len(wheels)
    assert all(re.fullmatch(r"[\w-]+==[\w.]+ --hash=sha256:[0-9a-f]{64}", r) for r in requirements)
    assert made.base == BASE and made.network == "none" and made.build_args == ()
    assert (folder / "Dockerfile").read_text() == made.dockerfile_text
    labels = dict(made.labels)
    assert labels["tetraspark.context"] == made.tree_sha256
    assert labels["tetraspark.recipe"] == recipe and labels["tetraspark.base"] == BASE


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_context_is_the_same_each_time(sources: Sources, tmp_path: Path, recipe: str) -> None:
    sources.fill()
    path = site(tmp_path, recipe)
    assert context(sources, path) == context(sources, path)


def problems(
    sources: Sources, path: Path, kind: type[TetrasparkError] = UsageError
) -> list[Problem]:
    with pytest.raises(kind) as caught:
        context(sources, path)
    return list(caught.value.problems)


def test_files_that_are_not_fetched_are_one_problem(sources: Sources, tmp_path: Path) -> None:
    (found,) = problems(sources, site(tmp_path, "canary"), RunError)
    assert found.seen == "3 of 3 files not fetched: engine, kernel-one-1.2, kernel-two-0.3"
    assert found.fix == f"tetraspark fetch --manifest {sources.path} --recipe canary"


def test_the_sites_base_is_taken_and_one_is_needed(sources: Sources, tmp_path: Path) -> None:
    sources.fill()
    other = f"other.example/cuda:13@sha256:{'6' * 64}"
    path = site(tmp_path, "base", f'base = "{other}"')
    assert context(sources, path).dockerfile_text.count(f"FROM {other}") == 2
    with pytest.raises(UsageError, match=r"`image.base` with its digest"):
        context(sources, site(tmp_path, "base"), Manifest())


def test_a_site_without_an_image(sources: Sources) -> None:
    (problem,) = problems(sources, ROOT / "sites" / "local.toml")
    assert problem.seen == "no [image]" and "local.toml:" in problem.where


OWN = "ARG BASE_IMAGE\nFROM $BASE_IMAGE\nARG JOBS\nARG PIP_INDEX_URL\nCOPY run.sh /\n"


def own(repository: Path, text: str = OWN, image: str = "") -> Path:
    (repository / "image" / "Dockerfile").write_text(text)
    script = repository / "image" / "run.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    git(repository, "add", ".")
    (repository / "image" / "notes").write_text("not tracked")
    return site(repository, "base", f'dockerfile = "image/Dockerfile"\n{image}')


def test_an_own_dockerfile_with_the_tracked_files_beside_it(
    sources: Sources, repository: Path
) -> None:
    image = 'build_args = { JOBS = "4", HTTP_PROXY = "http://p" }\npip_index = "https://i/simple"\n'
    made = context(sources, own(repository, image=image))
    assert {(one.path, one.mode) for one in made.files} == {
        ("Dockerfile", 0o644),
        ("run.sh", 0o755),
    }
    assert made.network == "default" and made.dockerfile == "Dockerfile"
    assert made.build_args == (
        ("BASE_IMAGE", BASE), ("HTTP_PROXY", "http://p"), ("JOBS", "4"),
        ("PIP_INDEX_URL", "https://i/simple"),
    )  # fmt: skip


def test_the_recipes_files_come_along_when_they_are_copied(
    sources: Sources, repository: Path
) -> None:
    made = context(sources, own(repository, OWN + "COPY files/health.py /opt/\n"))
    assert "files/health.py" in {one.path for one in made.files}


REFUSED = [
    ("# syntax=docker/dockerfile:1\n" + OWN, "", 1, "Docker Hub"),
    ("FROM ubuntu:24.04\n", "", 1, "tags move"),
    ("FROM scratch AS a\n\nFROM b\n", "", 3, "an earlier stage"),
    (OWN + "COPY --from=nginx:1 \\\n  /a /b\n", "", 6, "tags move"),
    (OWN + "ADD https://x.example/a /a\n", "", 6, "nothing hashes"),
    (OWN + "ARG HF_TOKEN\n", "", 6, "history"),
    (OWN + "ENV A=1 SSH_KEY=abc\n", "", 6, "history"),
    (OWN + "ENV SSH_KEY abc\n", "", 6, "history"),
    (OWN + "RUN --mount=type=bind,from=nginx,target=/x ls\n", "", 6, "tags move"),
    ("FROM $BASE_IMAGE\n", "", 1, "tags move"),
    (OWN + "RUN --mount=type=cache,target=/c --mount=type=bind,FROM=nginx ls\n", "", 6, "tags"),
    (OWN + 'RUN --mount="type=bind,from=nginx" ls\n', "", 6, "--name=value without"),
    (OWN + "COPY --fr\\\nom=nginx /a /b\n", "", 6, "tags move"),
    ("FROM scratch\nFROM 0\n", "", 2, "tags move"),
    ("FROM scratch\nCOPY --from=1 /a /b\n", "", 2, "tags move"),
    (OWN + 'ADD ["https://x.example/a", "/a"]\n', "", 6, "nothing hashes"),
    (OWN + "ARG U=https://x.example/a\nADD $U /a\n", "", 7, "nothing hashes"),
    (OWN + "ADD github.com/foo/bar.git /a\n", "", 6, "nothing hashes"),
    (OWN + "ADD nothing /a\n", "", 6, "files of the context"),
    (OWN + "ONBUILD ADD https://x.example/a /a\n", "", 6, "a later build"),
    ("# Syntax=docker/dockerfile:1\n" + OWN, "", 1, "Docker Hub"),
    ("\n # escape=`\n" + OWN, "", 2, "backslash"),
    ('{"syntax": "docker/dockerfile:1"}\n' + OWN, "", 1, "one of ADD"),
    (OWN + "RUN true \\\x0b\nFROM nginx\n", "", 6, "blanks and tabs"),
    ("", "", 1, "a Dockerfile"),
    ("\\\n", "", 1, "a Dockerfile"),
    ("ARG BASE_IMAGE\n", "", 1, "a Dockerfile"),
    (OWN + "RUN <<EOF\nFROM the shelf\nEOF\n", "", 6, "heredocs"),
]


@pytest.mark.parametrize(("text", "image", "line", "words"), REFUSED)
def test_an_own_dockerfile_is_refused_at_its_line(
    sources: Sources, repository: Path, text: str, image: str, line: int, words: str
) -> None:
    (problem,) = problems(sources, own(repository, text, image))
    assert problem.where == f"{repository / 'image' / 'Dockerfile'}:{line}"
    assert words in problem.wanted


GOOD = [
    f"FROM {BASE} AS a\nFROM a\nCOPY --from=0 /x /y\nCOPY --from=a /x /y\n",
    "ARG BASE_IMAGE\nFROM --platform=linux/arm64 ${BASE_IMAGE} as Two\nFROM two\n",
    "FROM scratch\nADD run.sh /\nRUN pip --from=x\nRUN echo $((1 << 2)) && cat <<< a\n",
    "FROM scratch\nENV A the key word\n# ADD https://x /y\nRUN true \\\n# a comment\n && true\n",
]


@pytest.mark.parametrize("text", GOOD)
def test_an_own_dockerfile_that_is_fine(sources: Sources, repository: Path, text: str) -> None:
    assert context(sources, own(repository, text)).dockerfile_text == text


def test_an_argument_that_is_not_declared_is_refused_at_the_site(
    sources: Sources, repository: Path
) -> None:
    image = 'build_args = { JOBS = "4", JOBZ = "4" }'
    (problem,) = problems(sources, own(repository, image=image))
    assert problem.where.startswith(str(repository / "site.toml:"))
    assert "ARG JOBZ" in problem.fix


def test_an_own_dockerfile_stays_in_the_repository(sources: Sources, repository: Path) -> None:
    outside = repository.parent / "Dockerfile"
    outside.write_text("FROM scratch\n")
    path = site(repository, "base", 'dockerfile = "../Dockerfile"')
    (problem,) = problems(sources, path)
    assert "outside" in problem.seen and problem.where.startswith(f"{path}:")
    (repository / "image" / "Dockerfile").symlink_to(outside)
    (problem,) = problems(sources, site(repository, "base", 'dockerfile = "image/Dockerfile"'))
    assert f"{outside}, which is outside" in problem.seen


def test_links_untracked_and_clashing_files_are_refused(sources: Sources, repository: Path) -> None:
    path = own(repository)
    (repository / "image" / "link").symlink_to("run.sh")
    git(repository, "add", ".")
    assert problems(sources, path)[0].seen == "a link"
    git(repository, "rm", "-q", "--cached", "image/link", "image/Dockerfile")
    assert problems(sources, path)[0].seen == "not tracked by git"
    (repository / "image" / "files").mkdir()
    (repository / "image" / "files" / "x").write_text("")
    git(repository, "add", "image/Dockerfile", "image/files")
    assert "files/ in the context" in problems(sources, path)[0].seen


def test_an_own_dockerfile_outside_a_checkout_is_refused(sources: Sources, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM scratch\n")
    (tmp_path / ".env").write_text("HF_TOKEN=hush\n")
    (problem,) = problems(sources, site(tmp_path, "base", 'dockerfile = "Dockerfile"'))
    assert "no git checkout" in problem.seen and "git init && git add Dockerfile" in problem.fix


def test_files_copied_as_a_json_list_come_along(sources: Sources, repository: Path) -> None:
    made = context(sources, own(repository, OWN + 'COPY ["files/health.py", "/opt/"]\n'))
    assert "files/health.py" in {one.path for one in made.files}


def test_a_dockerfile_that_is_not_there(sources: Sources, repository: Path) -> None:
    (problem,) = problems(sources, site(repository, "base", 'dockerfile = "image/None"'))
    assert problem.seen == "no such file"
