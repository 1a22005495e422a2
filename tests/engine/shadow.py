"""An engine that differs from the installed one in one place."""

from pathlib import Path

from tetraspark.engine.tree import package_root


def shadow_engine(folder: Path, file: str, old: str, new: str) -> Path:
    """Lay a copy of the installed engine over `folder` in links, with one edited file."""
    root = package_root("sglang")
    assert root is not None
    source, target = root, folder / "sglang"
    for part in [*Path(file).parts, None]:
        target.mkdir(parents=True)
        for entry in source.iterdir():
            if entry.name != part:
                (target / entry.name).symlink_to(entry)
        if part is None or part == Path(file).name:
            break
        source, target = source / part, target / part
    text = (root / file).read_text()
    assert text.count(old) == 1
    (folder / "sglang" / file).write_text(text.replace(old, new))
    return folder
