"""Tetraspark itself as a wheel whose bytes follow from its files alone.

A build back-end would need a network or its own packages, and writes the time into the archive.
Format: Python packaging user guide, "Binary distribution format".
"""

import base64
import hashlib
import io
import zipfile
from collections.abc import Mapping

TIME = (1980, 1, 1, 0, 0, 0)
ENTRY_POINTS = """\
[console_scripts]
tetraspark = tetraspark.cli.main:run

[sglang.srt.plugins]
tetraspark = tetraspark.engine.plugin:register
"""
WHEEL = "Wheel-Version: 1.0\nGenerator: tetraspark\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def wheel_name(version: str) -> str:
    """Return the file name of the wheel."""
    return f"tetraspark-{version}-py3-none-any.whl"


def make_wheel(files: Mapping[str, bytes], version: str) -> bytes:
    """Return the wheel of some files (`tetraspark/...` -> content).

    It names no dependencies: in an image the engine's environment decides what is there.
    """
    info = f"tetraspark-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: tetraspark\nVersion: {version}\n"
    content = dict(sorted(files.items())) | {
        f"{info}/METADATA": metadata.encode(),
        f"{info}/WHEEL": WHEEL.encode(),
        f"{info}/entry_points.txt": ENTRY_POINTS.encode(),
    }
    record = "".join(
        f"{path},sha256={record_digest(data)},{len(data)}\n" for path, data in content.items()
    )
    content[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    archive = io.BytesIO()
    # Stored, not compressed: what a compressor writes depends on its version.
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as made:
        for path, data in content.items():
            entry = zipfile.ZipInfo(path, TIME)
            entry.external_attr = 0o100644 << 16
            entry.create_system = 3
            made.writestr(entry, data)
    return archive.getvalue()


def record_digest(data: bytes) -> str:
    """Return the sha256 of a file as RECORD has it: URL-safe base64 without padding (PEP 376)."""
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
