"""Fetching from a real server with real faults: only the pinned bytes ever get a name."""

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.images.conftest import ARCHIVE, BODIES, ONE, TWO, Sources
from tests.images.web import Page
from tetraspark.errors import RunError, UsageError
from tetraspark.images.fetch import Fetch, Fetched, chosen, look, verify


def fetch(sources: Sources, *names: str, **where: str | Path) -> list[Fetched]:
    rows = chosen(sources.manifest, names) if names else sources.manifest.downloads
    settings = where or {"mirror": sources.web.url}
    fetcher = Fetch(sources.cache, **settings)  # type: ignore[arg-type]  # either key
    return list(fetcher.run(rows, lambda row, have: None, lambda: None))


def refused(sources: Sources, *names: str, **where: str | Path) -> str:
    with pytest.raises(RunError) as caught:
        fetch(sources, *names, **where)
    (problem,) = caught.value.problems
    assert problem.seen and problem.wanted and problem.fix
    return str(problem)


def named(sources: Sources) -> list[str]:
    """Return the names in the cache but that of the lock."""
    return sorted(path.name for path in sources.cache.folder.iterdir() if path.name != "lock")


def test_files_are_fetched_once_and_named_by_their_hash(sources: Sources) -> None:
    assert [one.state for one in fetch(sources)] == ["downloaded"] * 3
    assert [one.state for one in fetch(sources)] == ["present"] * 3
    assert len(sources.web.seen) == 3
    assert named(sources) == sorted(row.sha256 for row in sources.manifest.downloads)
    for row in sources.manifest.downloads:
        assert sources.cache.path(row.sha256).read_bytes() == BODIES[row.url]
        assert sources.cache.path(row.sha256).stat().st_mode & 0o777 == 0o644


def test_a_cut_off_body_goes_on_where_it_stopped(sources: Sources) -> None:
    sources.pages[ONE].cut += [4000, 2000]
    assert [one.state for one in fetch(sources, "kernel-one")] == ["downloaded"]
    assert [wanted for _, wanted in sources.web.seen] == [None, "bytes=4000-", "bytes=6000-"]


def test_a_body_that_is_always_cut_off_is_told_and_kept_for_the_next_try(sources: Sources) -> None:
    sources.pages[ONE].cut += [1000] * 4
    text = refused(sources, "kernel-one")
    assert "4000 bytes are here" in text and "the same command goes on" in text
    row = sources.row("kernel-one-1.2")
    assert named(sources) == [f"{row.sha256}.part"]
    assert not sources.cache.has(row.sha256)
    assert fetch(sources, "kernel-one")[0].state == "downloaded"
    assert named(sources) == [row.sha256]


def test_a_server_without_ranges_starts_again(sources: Sources) -> None:
    page = sources.pages[ONE]
    page.cut.append(4000)
    page.ranges = False
    assert fetch(sources, "kernel-one")[0].state == "downloaded"


def test_a_part_of_other_bytes_is_thrown_away_and_all_fetched_anew(sources: Sources) -> None:
    row = sources.row("kernel-one-1.2")
    sources.cache.folder.mkdir(parents=True)
    part = sources.cache.folder / f"{row.sha256}.part"
    part.write_bytes(b"x" * 5000)
    assert fetch(sources, "kernel-one")[0].state == "downloaded"
    part.write_bytes(b"x" * 9000)
    sources.cache.path(row.sha256).unlink()
    assert fetch(sources, "kernel-one")[0].state == "downloaded"


def test_other_bytes_are_refused_and_nothing_else_is_touched(sources: Sources) -> None:
    fetch(sources, "kernel-two")
    sources.pages[ONE].body = b"y" * 9000
    text = refused(sources, "kernel-one")
    assert sources.row("kernel-one-1.2").sha256 in text and "sha256 9f1" not in text
    assert named(sources) == [sources.row("kernel-two-0.3").sha256]


@pytest.mark.parametrize(("size", "word"), [(8999, "8999 bytes"), (9001, "9001 bytes")])
def test_another_size_is_refused_before_the_body_is_read(
    sources: Sources, size: int, word: str
) -> None:
    sources.pages[ONE].body = b"y" * size
    text = refused(sources, "kernel-one")
    assert word in text and "9000 bytes" in text
    assert named(sources) == []


def test_a_body_without_a_length_stops_at_the_stated_size(sources: Sources) -> None:
    sources.web.serve(ONE, Page(b"y" * 200_000, length=False))
    assert "more than 9000 bytes" in refused(sources, "kernel-one")
    assert named(sources) == []


def test_a_file_whose_size_nobody_states_has_a_limit(
    sources: Sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tetraspark.images.download.LARGEST_UNSTATED", 49_999)
    assert "more than 49999 bytes" in refused(sources, "engine")


ANSWERS = [
    (Page(b"gone", 404), "HTTP 404", "the source has moved"),
    (Page(b"who", 401), "HTTP 401 Unauthorized", "~/.netrc: machine 127.0.0.1"),
    (Page(b"", 416), "HTTP 416", "answer is broken"),
    (Page(b"", 302, {"Location": "http://a..b/"}), "leads nowhere", "answer is broken"),
    (Page(b"", 302, {"Location": "ftp://127.0.0.1/"}), "not HTTP", "answer is broken"),
    (Page(b"", headers={"Transfer-Encoding": "nonsense"}), "not HTTP", "answer is broken"),
    (Page(b"", 302, {"Location": "http://127.0.0.2:9/"}), "at 127.0.0.2", "the same command"),
    (Page(b"busy", 503), "HTTP 503", "try again later"),
    (Page(b"<html>", headers={"Content-Type": "text/html"}), "an HTML page", "use --from"),
]


@pytest.mark.parametrize(("page", "seen", "fix"), ANSWERS)
def test_an_answer_that_is_not_the_file(sources: Sources, page: Page, seen: str, fix: str) -> None:
    sources.web.serve(ONE, page)
    text = refused(sources, "kernel-one")
    assert seen in text and fix in text
    assert named(sources) == []


def test_a_redirect_is_followed_and_one_to_a_web_page_is_named(sources: Sources) -> None:
    moved = {"Location": "/else?Signature=hush"}
    sources.web.serve(ONE, Page(status=302, headers=moved))
    sources.web.pages["/else?Signature=hush"] = Page(BODIES[ONE])
    assert fetch(sources, "kernel-one")[0].state == "downloaded"
    sources.cache.path(sources.row("kernel-one-1.2").sha256).unlink()
    login = Page(b"<html>", headers={"Content-Type": "text/html; charset=utf-8"})
    sources.web.pages["/else?Signature=hush"] = login
    text = refused(sources, "kernel-one")
    assert "an HTML page at http://127.0.0.1" in text and "/else:" in text and "hush" not in text


def test_a_server_that_is_not_there(sources: Sources) -> None:
    text = refused(sources, "kernel-one", mirror="http://127.0.0.1:9")
    assert "kernel-one-1.2 from http://127.0.0.1:9/files.example/" in text and "--from" in text


def test_a_redirect_that_leads_nowhere(sources: Sources) -> None:
    here = {"Location": ONE.removeprefix("https:/")}
    sources.web.serve(ONE, Page(status=302, headers=here))
    assert "TooManyRedirects" in refused(sources, "kernel-one")


def test_settings_that_cannot_be_used_are_told_without_their_passwords(
    sources: Sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(os.environ["NETRC"]).write_text("machine x login bob\nhush hush\n")
    with pytest.raises(UsageError) as caught:
        fetch(sources)
    assert "netrc:2" in str(caught.value) and "hush" not in str(caught.value)
    Path(os.environ["NETRC"]).unlink()
    monkeypatch.setenv("HTTPS_PROXY", "nonsense://bob:hush@proxy")
    with pytest.raises(UsageError) as caught:
        fetch(sources)
    assert "HTTPS_PROXY: a proxy that is" in str(caught.value) and "hush" not in str(caught.value)
    monkeypatch.setenv("HTTPS_PROXY", "socks5://proxy:1080")
    with pytest.raises(UsageError, match="HTTPS_PROXY"):
        fetch(sources)
    monkeypatch.delenv("HTTPS_PROXY")
    Path(os.environ["NETRC"]).write_bytes(b"machine \xff\n")
    with pytest.raises(UsageError, match="netrc: cannot be read"):
        fetch(sources)
    Path(os.environ["NETRC"]).unlink()
    monkeypatch.setenv("SSL_CERT_FILE", "/no/such")
    with pytest.raises(UsageError, match="SSL_CERT_FILE: certificates that cannot be read"):
        fetch(sources)


MIRRORS = [
    "http://x:port/",
    "http://[::1",
    "https://bob:hush@mirror.example",
    "ftp://mirror.example",
    "mirror.example",
    "file:///x",
    "hush:tok@host",
    "http://mirror.example/?hush",
    "http://mirror.example:hush/",
    "http://mirror.example:99999",
    "http://a..b",
    f"http://{'a' * 80}.example",
    "http://xn--zz zz",
    "http://☃",
]


@pytest.mark.parametrize("mirror", MIRRORS)
def test_a_mirror_is_a_plain_url(sources: Sources, mirror: str) -> None:
    with pytest.raises(UsageError) as caught:
        fetch(sources, mirror=mirror)
    assert "hush" not in str(caught.value) and "--mirror" in str(caught.value)


def test_a_mirrors_password_comes_from_netrc(sources: Sources) -> None:
    netrc = Path(os.environ["NETRC"])
    netrc.write_text("machine 127.0.0.1 login bob password hush\n")
    assert fetch(sources, "kernel-two")[0].state == "downloaded"


def test_a_folder_of_files_stands_for_the_network(sources: Sources, tmp_path: Path) -> None:
    folder = tmp_path / "carried"
    folder.mkdir()
    for row in sources.manifest.downloads:
        (folder / row.file).write_bytes(BODIES[row.url])
    assert [one.state for one in fetch(sources, local=folder)] == ["copied"] * 3
    assert sources.web.seen == []
    sources.cache.path(sources.row("engine").sha256).unlink()
    (folder / sources.row("engine").file).write_bytes(b"other")
    text = refused(sources, "engine", local=folder)
    assert "sha256" in text and ARCHIVE in text
    (folder / sources.row("engine").file).unlink()
    assert "no such file" in refused(sources, "engine", local=folder)
    assert "not a regular file" in refused(sources, "engine", local=Path("/dev/zero"))
    assert not list(sources.cache.folder.glob("*.part"))


def test_a_damaged_file_is_named_and_replaced(sources: Sources) -> None:
    fetch(sources)
    row = sources.row("kernel-two-0.3")
    sources.cache.path(row.sha256).write_bytes(b"twO")
    (problem,) = verify(sources.cache, sources.manifest)
    assert (
        "kernel-two-0.3" in problem.wanted
        and problem.fix == f"{sources.manifest.fetch_command} {row.component}"
    )
    assert look(sources.cache, row).state == "damaged"
    assert [one.state for one in fetch(sources)] == ["present", "present", "downloaded"]
    assert verify(sources.cache, sources.manifest) == []


def test_a_file_nobody_knows_is_verified_too(sources: Sources) -> None:
    sha256 = sources.cache.add(b"made here")
    assert verify(sources.cache, sources.manifest) == []
    sources.cache.path(sha256).write_bytes(b"changed")
    (problem,) = verify(sources.cache, sources.manifest)
    assert problem.fix == f"rm {sources.cache.path(sha256)}"


def test_a_disk_that_takes_no_more_is_told(sources: Sources) -> None:
    # A limit on a file's size ends a write as a full disk does, and needs no root.
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16_000, hard))
    try:
        text = refused(sources, "engine")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "File too large" in text and "df -h" in text
    assert not sources.cache.has(sources.row("engine").sha256)
    assert fetch(sources, "engine")[0].state == "downloaded"


def test_a_full_disk_leaves_nothing_of_what_is_made_here(sources: Sources) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16_000, hard))
    try:
        with pytest.raises(RunError, match=f"{sources.cache.folder}.*df -h"):
            sources.cache.add(b"x" * 20_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert named(sources) == []


def test_a_folder_in_the_place_of_a_file_is_told(sources: Sources) -> None:
    row = sources.row("kernel-one-1.2")
    for name in (f"{row.sha256}.part", row.sha256):
        path = sources.cache.folder / name
        path.mkdir(parents=True)
        assert f"rm -r {path}" in refused(sources, "kernel-one")
        if name == row.sha256:
            (problem,) = verify(sources.cache, sources.manifest)
            assert problem.seen == "not a regular file"
        path.rmdir()


def test_unknown_components_are_named_with_the_nearest(sources: Sources) -> None:
    with pytest.raises(UsageError) as caught:
        chosen(sources.manifest, ["kernel-on", "what"])
    first, second = caught.value.problems
    assert first.fix == "did you mean kernel-one?"
    assert second.fix == f"tetraspark fetch --manifest {sources.path} --list"


CHILD = """
import sys
from pathlib import Path
from tetraspark.images.cache import Cache
from tetraspark.images.fetch import Fetch, chosen
from tetraspark.images.manifest import load_manifest
rows = chosen(load_manifest(Path(sys.argv[1])), ["engine"])
fetcher = Fetch(Cache(Path(sys.argv[2])), mirror=sys.argv[3])
print([one.state for one in fetcher.run(rows, lambda *_: None, lambda: print("waiting"))])
"""


def child(sources: Sources) -> subprocess.Popen[str]:
    words = [str(sources.path), str(sources.cache.folder), sources.web.url]
    command = [sys.executable, "-c", CHILD, *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_two_fetches_at_once_take_turns(sources: Sources) -> None:
    sources.pages[ARCHIVE].pause = 0.02
    said = sorted(one.communicate()[0] for one in [child(sources), child(sources)])
    assert said == ["['downloaded']\n", "waiting\n['present']\n"]
    assert [path for path, _ in sources.web.seen] == [ARCHIVE.removeprefix("https:/")]


def test_a_killed_fetch_leaves_no_name_and_the_next_goes_on(sources: Sources) -> None:
    sources.pages[ARCHIVE].pause = 0.05
    process = child(sources)
    part = sources.cache.folder / f"{sources.row('engine').sha256}.part"
    end = time.monotonic() + 20
    while not (part.exists() and part.stat().st_size) and time.monotonic() < end:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert named(sources) == [part.name]
    sources.pages[ARCHIVE].pause = 0
    assert fetch(sources, "engine")[0].state == "downloaded"
    assert sources.web.seen[-1][1] is not None
    assert named(sources) == [sources.row("engine").sha256]
    assert TWO not in [path for path, _ in sources.web.seen]
