"""The two variables of a profile that hold many settings in one string."""

import shlex

from tetraspark.site.flags import owner, refused
from tetraspark.site.import_table import FLAGS, NotCarriedError
from tetraspark.site.keypath import KeyPath
from tetraspark.site.secret import names_secret
from tetraspark.site.site_draft import Draft, Variable

_QUOTES = "its quotes do not match, so nobody can tell its words"


def split_container_env(outer: Variable, draft: Draft) -> list[Variable]:
    """Take EXTRA_CONTAINER_ENV apart; pairs that cannot be carried are reported one by one."""
    try:
        pairs = shlex.split(outer.value)
    except ValueError:
        draft.drop(outer, _QUOTES)
        return []
    inner: dict[str, Variable] = {}
    for number, pair in enumerate(pairs, 1):
        name, equals, value = pair.partition("=")
        label = f"{outer.label}: {name if name.isidentifier() else f'word {number}'}"
        variable = Variable(name, value, outer.line, label)
        if not equals or not name.isidentifier() or not name.isascii():
            draft.drop(variable, "not NAME=value")
        elif names_secret(name) or draft.leaks(outer, value):
            draft.drop(variable, "a secret: never written to a site file")
        elif not value.strip():
            draft.drop(variable, "empty: an absent key means unset here")
        else:
            inner[name] = variable
    draft.drop(outer, "taken apart; each of its variables is listed by itself")
    return list(inner.values())


def import_engine_args(outer: Variable, draft: Draft) -> str | None:
    """Take EXTRA_SGLANG_ARGS apart into `engine.extra_args` and typed keys; return an API key."""
    try:
        words = shlex.split(outer.value)
    except ValueError:
        draft.drop(outer, _QUOTES)
        return None
    kept: list[str] = []
    key: str | None = None
    while words:
        flag, equals, value = words.pop(0).partition("=")
        wanted = refused(flag, "fleet")
        if not flag.startswith("-") or not (names_secret(flag) or owner(flag) or wanted):
            whole = f"{flag}{equals}{value}"
            kept += [flag, value] if flag.startswith("-") and " " in value else [whole]
            continue
        if not equals:
            value = words.pop(0) if words and not words[0].startswith("--") else ""
        target = owner(flag)
        moved = Variable(flag, value, outer.line, f"{outer.label}: {flag}", (), outer.secret)
        if target == "api.key_file" and value:
            key = value
            why = "written to the key file, not to the site"
            draft.say(moved, ("api.key_file",), why)
        elif target is None and wanted and not names_secret(flag):
            draft.drop(moved, f"no site may pass it; wanted: {wanted}")
        else:
            _move(moved, target, draft)
    _finish(outer, kept, draft)
    return key


def _move(variable: Variable, target: str | None, draft: Draft) -> None:
    if target is None or names_secret(variable.name) or draft.leaks(variable, variable.value):
        draft.drop(variable, "a secret: never written to a site file")
    elif target not in FLAGS:
        draft.drop(variable, f"tetraspark computes it from `{target}`")
    elif not variable.value:
        draft.drop(variable, "a flag without its value")
    else:
        path: KeyPath = tuple(target.split("."))
        try:
            draft.carry(variable, path, FLAGS[target](variable.value))
        except NotCarriedError as error:
            draft.drop(variable, str(error))


def _finish(outer: Variable, kept: list[str], draft: Draft) -> None:
    if any(draft.leaks(outer, word) for word in kept):
        draft.drop(outer, "one of its words is a credential: never written to a site file")
    elif kept:
        draft.carry(outer, ("engine", "extra_args"), tuple(kept))
    else:
        draft.drop(outer, "nothing left: each of its flags is listed by itself")
