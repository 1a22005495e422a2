"""The checks of a checkpoint's folder on a node, from the facts of a probe. Pure."""

import shlex

from tetraspark.doctor.check import Check
from tetraspark.fleet.facts import Facts
from tetraspark.weights.chat_template import JINJA, PROCESSOR, TOKENIZER_CONFIG
from tetraspark.weights.folder import CONFIG, Checkpoint, read_checkpoint, wanted
from tetraspark.weights.index import INDEX, Index

__all__ = ["checkpoint_checks", "wanted"]

TOKENIZERS = ("tokenizer.json", "tokenizer.model", "tiktoken.model")


def checkpoint_checks(node: str, path: str, facts: Facts) -> list[Check]:
    """Return what is to be said of the checkpoint on one node, `CHECKPOINT.*`."""
    found = read_checkpoint(path, facts)
    if not found.exists:
        return [_folder(node, path, found)]
    return [
        _folder(node, path, found),
        _config(node, found),
        _shards(node, found),
        _size(node, found),
        _tokenizer(node, found),
        _template(node, found),
        _links(node, found),
    ]


def _folder(node: str, path: str, found: Checkpoint) -> Check:
    wanted = f"the folder {found.folder} on {node}: `model.path` is {path}"
    if not found.exists:
        seen = "no such folder"
        fix = (
            "put it there (with weights.mode copy: tetraspark weights copy), or correct model.path"
        )
        return Check("CHECKPOINT.FOLDER", node, "failed", f"{found.folder}: {seen}", wanted, fix)
    if not found.sizes:
        seen = f"{found.folder}: no file, or none that this login may see"
        fix = f"on {node}: ls -la {shlex.quote(found.folder)}"
        return Check("CHECKPOINT.FOLDER", node, "failed", seen, wanted, fix)
    files, size = len(found.sizes), sum(found.sizes.values())
    seen = f"{found.folder}: {files} files, {size} bytes"
    return Check("CHECKPOINT.FOLDER", node, "ok", seen, wanted)


def _config(node: str, found: Checkpoint) -> Check:
    wanted = "config.json, an object with `architectures`"
    if found.config is None:
        seen = "not a JSON object" if CONFIG in found.sizes else "missing"
    elif not found.config.get("architectures"):
        seen = "without `architectures`"
    else:
        seen = f"architectures {found.config['architectures']}"
        return Check("CHECKPOINT.CONFIG", node, "ok", seen, wanted)
    return _failed("CHECKPOINT.CONFIG", node, f"config.json: {seen}", wanted)


def _shards(node: str, found: Checkpoint) -> Check:
    name, index = "CHECKPOINT.SHARDS", found.index
    if isinstance(index, str):
        return _failed(name, node, f"{INDEX}: {index}", "an index of the shards")
    wanted = f"the {len(found.shards)} shards that {INDEX} names, each whole"
    faults = [f"{shard} missing" for shard in found.missing]
    faults += [f"{shard} {fault}" for shard, fault in found.damaged.items()]
    if faults:
        return _failed(name, node, "; ".join(faults), wanted)
    if not found.present:
        return _failed(name, node, "no *.safetensors", "weights")
    if index is None and len(found.present) > 1:
        seen = f"{len(found.present)} shards and no {INDEX}"
        return _failed(name, node, seen, "an index of the shards")
    if index is not None and index.shards is None:
        fix = "tetraspark weights verify compares the files with those of the other nodes"
        seen = f"{INDEX} is too long for a probe, and its shards are not numbered"
        return Check(name, node, "unknown", seen, "shards that can be told", fix)
    extra = sorted(set(found.present) - set(found.shards))
    if extra:
        seen = f"{', '.join(extra)} not in {INDEX}"
        fix = "move them away if they are left over: a loader may read what it finds"
        return Check(name, node, "warning", seen, wanted, fix)
    return Check(name, node, "ok", f"{len(found.present)} shards, each whole", wanted)


def _size(node: str, found: Checkpoint) -> Check:
    """Compare what the shards hold with the index; headers come on top of the tensors."""
    name, index = "CHECKPOINT.SIZE", found.index
    size = sum(found.sizes.get(shard, 0) for shard in found.shards)
    total = index.total_size if isinstance(index, Index) else None
    wanted = "shards as large as the tensors that the index counts"
    if not size:
        return _failed(name, node, "0 bytes in the shards", wanted)
    if total is None:
        return Check(name, node, "ok", f"{size} bytes; no `total_size` to compare with", wanted)
    seen = f"{size} bytes in the shards, `total_size` {total}"
    if size < total:
        return _failed(name, node, seen, wanted)
    return Check(name, node, "ok", seen, wanted)


def _tokenizer(node: str, found: Checkpoint) -> Check:
    name, wanted = "CHECKPOINT.TOKENIZER", f"{TOKENIZER_CONFIG} and {' or '.join(TOKENIZERS)}"
    there = [one for one in TOKENIZERS if found.sizes.get(one)]
    if found.sizes.get(TOKENIZER_CONFIG) and there:
        return Check(name, node, "ok", f"{TOKENIZER_CONFIG}, {', '.join(there)}", wanted)
    missing = [] if found.sizes.get(TOKENIZER_CONFIG) else [TOKENIZER_CONFIG]
    missing += [] if there else [" or ".join(TOKENIZERS)]
    return _failed(name, node, f"missing or empty: {', '.join(missing)}", wanted)


def _template(node: str, found: Checkpoint) -> Check:
    name, template = "CHECKPOINT.CHAT_TEMPLATE", found.template
    wanted = "a chat template, or chat requests fail"
    if template.verdict == "found":
        return Check(name, node, "ok", f"from {template.source}", wanted)
    if template.verdict == "unknown":
        seen = f"{TOKENIZER_CONFIG} is too long for a probe, and its beginning has none"
        fix = f"on {node}: grep -c chat_template {found.folder}/{TOKENIZER_CONFIG}"
        return Check(name, node, "unknown", seen, wanted, fix)
    seen = f"neither {JINJA} nor `chat_template` in {TOKENIZER_CONFIG}"
    if PROCESSOR in found.sizes:
        seen += f"; {PROCESSOR} is not read for text"
    fix = f"put {JINJA} into {found.folder} on {node}"
    return Check(name, node, "failed", seen, wanted, fix)


def _links(node: str, found: Checkpoint) -> Check:
    """A container sees the folder alone: a link out of it, as in a download cache, is broken."""
    name, wanted = "CHECKPOINT.LINKS", "files in the folder itself: a container sees nothing else"
    if not found.outside:
        return Check(name, node, "ok", "no link leads out of the folder", wanted)
    first, target = next(iter(found.outside.items()))
    seen = f"{len(found.outside)} links lead out of {found.folder}: {first} -> {target}"
    fix = f"on {node}: cp -rL {found.folder} ELSEWHERE, and set model.path to it"
    return Check(name, node, "failed", seen, wanted, fix)


def _failed(name: str, node: str, seen: str, wanted: str) -> Check:
    fix = f"download it on {node} again, or with weights.mode copy: tetraspark weights copy"
    return Check(name, node, "failed", seen, wanted, fix)
