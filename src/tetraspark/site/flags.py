"""Engine flags a site may pass through, and those that a typed key or the plan already owns."""

import shlex
from collections.abc import Collection, Mapping, Sequence

from tetraspark.site.finding import Finding
from tetraspark.site.keypath import KeyPath
from tetraspark.site.secret import names_secret

OWNED_FLAGS: Mapping[str, str] = {
    "--api-key": "api.key_file",
    "--chunked-prefill-size": "engine.chunked_prefill_size",
    "--context-length": "engine.context_length",
    "--dist-init-addr": "engine.dist_port",
    "--ep": "engine.ep",
    "--ep-size": "engine.ep",
    "--expert-parallel-size": "engine.ep",
    "--host": "api.host",
    "--max-running-requests": "engine.max_running_requests",
    "--max-total-tokens": "engine.kv_tokens",
    "--mem-fraction-static": "engine.mem_fraction",
    "--model": "model.path",
    "--model-path": "model.path",
    "--nccl-init-addr": "engine.dist_port",
    "--nnodes": "nodes",
    "--node-rank": "nodes",
    "--port": "api.port",
    "--served-model-name": "model.served_name",
    "--speculative-algo": "speculative.algorithm",
    "--speculative-algorithm": "speculative.algorithm",
    "--speculative-dspark-block-size": "speculative.block_size",
    "--speculative-dspark-confidence-sts-path": "speculative.sts_table",
    "--speculative-dspark-sps-table-path": "speculative.sps_table",
    "--tensor-parallel-size": "engine.tp",
    "--tp": "engine.tp",
    "--tp-size": "engine.tp",
    "--watchdog-timeout": "engine.watchdog_seconds",
}
"""Flag of sglang 0.5.23 -> the site key that sets it."""

_PLANNED = "it left to the plan, which sets it"
_OTHER_SERVER = "the server that the plan starts, waits for and asks"
_NO_SERVER = "an engine that serves"

REFUSED_FLAGS: Mapping[str, str] = {
    "--config": "every argument in this file: nothing checks what another one holds",
    "--enable-cache-report": _PLANNED,
    "--enable-metrics": _PLANNED,
    "--encoder-only": _OTHER_SERVER,
    "--grpc-mode": _OTHER_SERVER,
    "--help": _NO_SERVER,
    "-h": _NO_SERVER,
    "--skip-server-warmup": _PLANNED,
    "--smg-grpc-mode": _OTHER_SERVER,
    "--use-ray": _OTHER_SERVER,
}
"""Flag of sglang 0.5.23 that no site may pass -> what is wanted in its place."""

LOCAL_FLAGS: Mapping[str, str] = dict.fromkeys(
    ("--attention-backend", "--device", "--disable-custom-all-reduce", "--sleep-on-idle"), _PLANNED
)
"""The same where `kind` is "local": what several ranks on one CPU need."""

_SHORTEST = 3
_LIST = "a list with one word an element"


def meant(flag: str, flags: Collection[str]) -> list[str]:
    """Return those of `flags` that argparse can take a flag for: itself, or all it begins.

    argparse accepts any unambiguous beginning, so `--model-pa` is `--model-path`.
    """
    if flag in flags:
        return [flag]
    if not flag.startswith("--") or len(flag) < _SHORTEST:
        return []
    return [name for name in flags if name.startswith(flag)]


def owner(flag: str) -> str | None:
    """Return the site key that owns a flag, in any spelling argparse takes, or None."""
    keys = {OWNED_FLAGS[name] for name in meant(flag, OWNED_FLAGS)}
    return keys.pop() if len(keys) == 1 else None


def refused(flag: str, kind: object) -> str | None:
    """Return what is wanted in place of a flag that a site of this kind may not pass, or None."""
    flags = {**REFUSED_FLAGS, **(LOCAL_FLAGS if kind == "local" else {})}
    return next((flags[name] for name in meant(flag, flags)), None)


def split_words(text: str) -> list[str]:
    """Split a string of flags as a shell would; at blanks where its quotes do not match."""
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def list_text(words: Sequence[str]) -> str:
    """Write words as a TOML list to paste, with the value of a secret flag taken out."""
    shown, hide = [], False
    for word in words:
        flag, equals, _ = word.partition("=")
        secret = flag.startswith("-") and names_secret(flag)
        shown.append(f"{flag}=[hidden]" if secret and equals else "[hidden]" if hide else word)
        hide = secret and not equals
    return "[" + ", ".join(_quoted(word) for word in shown) + "]"


def flag_findings(path: KeyPath, words: Sequence[object], kind: object) -> list[Finding]:
    """Check `extra_args`: one word an element, no flag that a key, a plan or a secret owns."""
    found = []
    for index, word in enumerate(words):
        if isinstance(word, str):
            finding = _word_finding((*path, index), word, kind)
            found += [finding] if finding else []
    return found


def _word_finding(path: KeyPath, word: str, kind: object) -> Finding | None:
    if not word.startswith("-"):
        return None
    flag = word.split("=", 1)[0].split(" ", 1)[0]
    key, wanted = owner(flag), refused(flag, kind)
    if names_secret(flag):
        wanted = "no secret among arguments: they show in `ps`, logs and plans"
        fix = "remove it and its value, and name a file of mode 0600 in `api.key_file`"
        return Finding(path, f"secret flag `{flag}`", wanted, fix)
    every = meant(flag, {*OWNED_FLAGS, *REFUSED_FLAGS, *LOCAL_FLAGS})
    if len(every) > 1 and (key is None or wanted is not None):
        seen = f"`{flag}`, the beginning of {' and '.join(sorted(every)[:2])}"
        return Finding(path, seen, "a flag in full", "write it in full")
    if key is not None:
        wanted = f"that setting only in `{key}`"
        return Finding(path, f"flag `{flag}`", wanted, f"remove it here and set `{key}`")
    if wanted is not None:
        return Finding(path, f"flag `{flag}`", wanted, "remove it and its value, if it has one")
    if any(c.isspace() for c in word):
        return Finding(path, f"two words in one element: {word!r}", _LIST, _split_fix(word))
    return None


def _split_fix(word: str) -> str:
    flag, equals, value = word.partition("=")
    words = [flag, value] if equals and " " not in flag else split_words(word)
    return f"write {list_text(words)[1:-1]}"


def _quoted(word: str) -> str:
    if "'" not in word and ('"' in word or "\\" in word):
        return f"'{word}'"
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
