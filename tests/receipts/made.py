"""A receipt as a start would take it, to be changed by tests."""

from pathlib import Path
from typing import Any

from tests.serving import ROOT
from tetraspark.receipts.receipt import KeptImage, KeptModel, Proof, ServedNode, ServeReceipt

LOCAL = (ROOT / "sites" / "local.toml").read_text()
IMAGE = KeptImage(tag="line:1", id="sha256:" + "a" * 64, digests=("line@sha256:" + "d" * 64,))
MODEL = KeptModel(folder="/srv/model", files=3, bytes=12, sha256="b" * 64)


def node(name: str = "spark1", **changes: Any) -> ServedNode:
    fields: dict[str, Any] = {
        "node": name,
        "kernel": "6.17.0-1026",
        "driver": "580.159.03",
        "board": "1.0",
        "nics": {"rocep1s0f0": "28.45"},
        "error": None,
        "idle_bytes": None,
        "image": IMAGE,
        "model": MODEL,
    }
    return ServedNode.model_validate({**fields, **changes})


def setting(name: str, value: str | None, where: str, **more: Any) -> dict[str, Any]:
    kind = "file" if ".toml:" in where else "derived"
    return {
        "kind": "flag",
        "name": name,
        "value": value,
        "origin": {"kind": kind, "where": where},
        "rank": None,
        **more,
    }


def receipt(id: str = "20261101-000000-000001", **changes: Any) -> ServeReceipt:
    plan = {
        "engine": "0.5.23",
        "settings": [
            setting("--tp-size", "4", "/sites/local.toml:11"),
            setting("--port", "31000", "free on this machine when planned", rank=0),
            setting("--sleep-on-idle", None, "idle ranks leave the cores alone"),
        ],
    }
    fields: dict[str, Any] = {
        "id": id,
        "line": "local",
        "kind": "local",
        "at": "2026-11-01T00:00:00+00:00",
        "rollback_of": None,
        "tetraspark": "0.1.0",
        "revision": "c" * 40,
        "site": str(Path("/sites/local.toml")),
        "site_sha256": "e" * 64,
        "site_text": LOCAL,
        "plan": plan,
        "effective": ({"key": "tp_size", "value": 4, "same": True},),
        "tolerated": (),
        "nodes": (node(),),
        "proof": Proof(prompt="2+2?", answer="4", finish="stop", seconds={"load": 1.0}),
    }
    return ServeReceipt(**{**fields, **changes})
