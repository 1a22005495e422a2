"""An engine of a few files in memory, most of them the installed engine's own."""

from dataclasses import dataclass

from tetraspark.engine.drift import Target
from tetraspark.engine.tree import open_tree

INSTALLED = open_tree(None)


@dataclass
class MemoryTree:
    """A tree whose files are a dictionary: path below the package -> text."""

    texts: dict[str, str]
    where: str = "memory"

    def read(self, file: str) -> str | None:
        return self.texts.get(file)

    def files(self) -> list[str]:
        return sorted(self.texts)

    def metadata(self) -> str | None:
        return None


def file_of(target: Target) -> str:
    """Return the file that a target is in, in the installed engine."""
    module = target.path.split(".")[1 : -len(target.names)]
    stem = "/".join(module)
    return f"{stem}.py" if INSTALLED.read(f"{stem}.py") is not None else f"{stem}/__init__.py"


def file_text(target: Target) -> str:
    """Return the text of that file."""
    text = INSTALLED.read(file_of(target))
    assert text is not None
    return text
