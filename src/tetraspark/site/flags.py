"""Engine flags a site may pass through, and those a typed key already owns."""

import shlex
from collections.abc import Mapping, Sequence

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

_SET_BY_EVERY_PLAN = "it left to the plan, which sets it"
_ANOTHER_SERVER = "the API that the plan starts, waits for and asks"

REFUSED_FLAGS: Mapping[str, str] = {
    "--config": "every argument in this file: nothing checks what that one holds",
    "--disable-custom-all-reduce": "",
    "--enable-cache-report": _SET_BY_EVERY_PLAN,
    "--enable-metrics": _SET_BY_EVERY_PLAN,
    "--encoder-only": _ANOTHER_SERVER,
    "--grpc-mode": _ANOTHER_SERVER,
    "--help": "an engine that serves",
    "-h": "an engine that serves",
    "--skip-server-warmup": _SET_BY_EVERY_PLAN,
    "--smg-grpc-mode": _ANOTHER_SERVER,
    "--use-ray": _ANOTHER_SERVER,
}
"""Flag of sglang 0.5.23 that no site may pass -> what is wanted in its place."""
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


def flag_findings(path: KeyPath, words: Sequence[object]) -> list[Finding]:
    """Check `extra_args`: one word an element, no flag that a typed key or a secret owns."""
    found = []
    for index, word in enumerate(words):
        if isinstance(word, str):
            finding = _word_finding((*path, index), word)
            found += [finding] if finding else []
    return found


def _word_finding(path: KeyPath, word: str) -> Finding | None:
    if not word.startswith("-"):
        return None
    flag = word.split("=", 1)[0].split(" ", 1)[0]
    key = owner(flag)
    if names_secret(flag):
        wanted = "no secret among arguments: they show in `ps`, logs and plans"
        fix = "remove it and its value, and name a file of mode 0600 in `api.key_file`"
        return Finding(path, f"secret flag `{flag}`", wanted, fix)
    if key is not None:
        wanted = f"that setting only in `{key}`"
        return Finding(path, f"flag `{flag}`", wanted, f"remove it here and set `{key}`")
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
