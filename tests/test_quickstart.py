"""docs/quickstart.md, command by command, in a fresh copy of the repository."""

import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serving import ROOT, of_ranks, without_make
from tetraspark.fleet.port import free_ports
from tetraspark.fleet.process import labelled

pytestmark = pytest.mark.engine
PORT, PAGE_PORT = "30000", "9400"
OF_TWO = ("bench start", "--replace")
"""Done with two ranks, in half the time; `make serve` has started four."""
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(text: str) -> list[tuple[str, str]]:
    return [(match[1], match[2]) for match in BLOCK.finditer(text)]


DOCUMENT = (ROOT / "docs" / "quickstart.md").read_text()


class Clone:
    """A fresh copy whose environment borrows the installed packages, so set-up is short."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "clone"
        self.state = folder / "state"
        self.port, self.page_port = map(str, free_ports(2))
        listed = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        for name in listed.stdout.splitlines():
            if (ROOT / name).is_file():
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.root / name)
        site = self.root / "sites" / "local.toml"
        text = site.read_text().replace(PORT, self.port)
        text += f"\n[watch]\nport = {self.page_port}\n"
        site.write_text(text)
        site.with_name("two.toml").write_text(of_ranks(text, 2))
        venv.create(self.root / ".venv", with_pip=True)
        packages = Path(sysconfig.get_paths()["purelib"])
        own = self.root / ".venv" / packages.relative_to(sys.prefix)
        (own / "borrowed.pth").write_text(f"{packages}\n")

    def run(self, kind: str, code: str) -> subprocess.CompletedProcess[str]:
        """Run a block of the page as its reader would, with the ports of this copy."""
        text = code.replace(PORT, self.port).replace(PAGE_PORT, self.page_port)
        shell = ["bash", "-euc", text]
        argv = shell if kind == "sh" else [str(self.root / ".venv/bin/python"), "-c", text]
        env = without_make() | {
            "TETRASPARK_STATE": str(self.state),
            "TETRASPARK_SITE": f"sites/{'two' if any(map(code.count, OF_TWO)) else 'local'}.toml",
            "PATH": f"{self.root}/.venv/bin:/usr/local/bin:/usr/bin:/bin",
            "COLUMNS": "200",
            "MAKEFLAGS": f"PYTHON={sys.executable}",
        }
        return subprocess.run(
            argv,
            cwd=self.root,
            env=env,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clone]:
    made = Clone(tmp_path_factory.mktemp("quickstart"))
    yield made
    made.run("sh", "make stop")
    assert labelled(made.state) == []


SAYS = {
    "make serve": [
        "ready: tiny at http://127.0.0.1:",
        "answered: '42'",
        "page:     http://127.0.0.1:",
        "set-up: tetraspark: done",
    ],
    "chat/completions": ['"completion_tokens":16', "Hello! I am a tiny model"],
    "openai": ["Hello! I am a tiny model"],
    "tetraspark status\n": ["ready - every rank", "CHAT.STREAM", "--node-rank", "TP2"],
    "healthz": ["ready: every rank is up", 'tetraspark_line_state{state="ready"} 1.0'],
    "kill -KILL": ["rank 2 (node2)", "exit code 1"],
    "make stop": ["line local: "],
    "--replace": ["ready: tiny", "stopped 2 ranks"],
    "bench start": ["over imports, s", "median"],
}


def test_the_page_has_a_block_for_each_expectation() -> None:
    codes = [code for _, code in blocks(DOCUMENT)]
    assert len(codes) == len(SAYS)
    assert all(any(mark in code for code in codes) for mark in SAYS)


@pytest.mark.parametrize(("kind", "code"), blocks(DOCUMENT))
def test_a_block_of_the_page_does_what_it_says(clone: Clone, kind: str, code: str) -> None:
    result = clone.run(kind, code)
    assert result.returncode == 0, f"{result.stdout}\n{result.stderr}"
    mark = next(mark for mark in SAYS if mark in code)
    for text in SAYS[mark]:
        assert text in result.stdout, result.stdout


def test_the_site_of_the_key_section_loads(clone: Clone) -> None:
    from tetraspark.site.load import load_site

    site = clone.root / "sites" / "local.toml"
    text = site.read_text().replace(f"port = {clone.port}", 'port = 30000\nkey_file = "local.key"')
    keyed = clone.root / "sites" / "keyed.toml"
    keyed.write_text(text)
    assert load_site(keyed).site.api.key_file == "local.key"


def test_a_second_make_finds_all_in_place(clone: Clone) -> None:
    result = clone.run("sh", "make environment")
    assert (result.returncode, result.stdout) == (0, "")
