"""A profile of the bash launchers as a site: every variable to a key, to [env], or reported."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tetraspark.errors import Problem, UsageError
from tetraspark.site.envfile import EnvFile
from tetraspark.site.environment import owned
from tetraspark.site.import_report import Report, printable
from tetraspark.site.import_special import import_special
from tetraspark.site.import_table import (
    LAUNCHER_ONLY,
    NOT_CARRIED,
    NOT_ON_A_SWITCH,
    RING,
    SET_BY_A_RING,
    SIMPLE,
    SWITCHED,
    split_list,
)
from tetraspark.site.import_words import import_engine_args, split_container_env
from tetraspark.site.open_api import listens_to_others
from tetraspark.site.secret import holds_secret, names_secret, redact
from tetraspark.site.shell_value import Assignment
from tetraspark.site.site_draft import Draft, Variable, needs

MOST_WORDS = 2000

_NO_KEY = ("none", "off", "dummy", "0")
_RING_SWITCH = "NCCL_SWITCHLESS_RING_ONLY"
_ENV_PREFIXES = ("NCCL_", "SGLANG_", "DSV41_")


@dataclass(frozen=True)
class Imported:
    """A draft site, what became of each variable, and the API key for a file of its own."""

    draft: Draft
    report: Report
    api_key: str | None


def import_profile(profile: EnvFile, name: str, key_file: str) -> Imported:
    """Turn a parsed profile into a draft of kind "fleet".

    `name` is the site's name; `key_file` is what `api.key_file` says if the profile has a key.
    Raises UsageError for a file with far more in it than a profile.
    """
    _check_count(profile)
    draft = Draft(printable(profile.path.name))
    variables = _in_force(profile, draft)
    variables = _with_container_env(variables, draft)
    key = _api_key(variables, draft)
    args = variables.pop("EXTRA_SGLANG_ARGS", None)
    ring = variables.get(_RING_SWITCH)
    _simple(variables, draft, ring=ring is not None and ring.value == "1")
    import_special(variables, draft, name)
    if args is not None:
        key = _later_key(import_engine_args(args, draft), key, draft)
    for variable in variables.values():
        _keep(variable, draft)
    if key is not None:
        draft.add(("api", "key_file"), key_file, "the profile's API key, in a file of mode 0600")
    elif listens_to_others(draft.document()):
        why = "the profile has no API key: whoever reaches the server may use it"
        draft.add(("api", "allow_open"), True, why)
    missing = needs(draft.profile, draft.settle())
    _gather("EXTRA_CONTAINER_ENV", draft)
    _gather("EXTRA_SGLANG_ARGS", draft)
    entries = sorted(draft.entries.values(), key=lambda entry: (entry.line, entry.name))
    report = Report(
        tuple(entries), profile.statements, tuple(draft.added), missing, profile.warnings
    )
    return Imported(draft, report, key)


def _check_count(profile: EnvFile) -> None:
    count = len(profile.statements)
    count += sum(max(1, len(split_list(item.value or ""))) for item in profile.assignments)
    if count > MOST_WORDS:
        wanted = f"a profile of at most {MOST_WORDS}: the launchers use about 100"
        seen = f"{count} words in its values and statements"
        fix = "check that this is the right file, or take out what is no setting"
        raise UsageError(Problem(str(profile.path), seen, wanted, fix))


def _later_key(later: str | None, key: str | None, draft: Draft) -> str | None:
    """Take the key of the engine's arguments before the profile's own: the engine sees it last."""
    if later is not None and key is not None:
        why = "replaced by EXTRA_SGLANG_ARGS: --api-key, which the engine sees last"
        entry = draft.entries["API_KEY"]
        draft.entries["API_KEY"] = replace(entry, outcome="not carried", keys=(), why=why)
    return later if later is not None else key


def _gather(label: str, draft: Draft) -> None:
    """Give a variable that was taken apart the keys its parts went to."""
    entry = draft.entries.get(label)
    parts = [part for name, part in draft.entries.items() if name.startswith(f"{label}: ")]
    keys = tuple(key for part in parts for key in part.keys)
    if entry is not None and keys:
        draft.entries[label] = replace(entry, outcome="carried", keys=(*entry.keys, *keys))


def _in_force(profile: EnvFile, draft: Draft) -> dict[str, Variable]:
    """Return the last assignment of each name that has a text, and report the others."""
    last: dict[str, Assignment] = {}
    lines: dict[str, list[int]] = {}
    for assignment in profile.assignments:
        last[assignment.name] = assignment
        lines.setdefault(assignment.name, []).append(assignment.line)
    variables = {}
    for name, item in last.items():
        earlier = tuple(lines[name][:-1])
        why = _no_text(item)
        variable = Variable(name, item.value or "", item.line, name, earlier, item.secret)
        if names_secret(name) and item.value:
            draft.secrets.add(item.value)
        if why:
            draft.drop(variable, why)
        else:
            variables[name] = variable
    return variables


def _no_text(item: Assignment) -> str:
    if item.value is None:
        return "a secret that only a shell could read" if item.secret else redact(item.why)
    if not item.value.strip():
        return "empty: an absent key means unset here"
    if item.name in ("API_KEY", "EXTRA_SGLANG_ARGS", "EXTRA_CONTAINER_ENV"):
        # these hold secrets legitimately and are taken apart below, unless a reference hid one
        return ""
    if item.secret or holds_secret(item.value):
        return "a secret, or made from one: never written to a site file"
    return ""


def _with_container_env(variables: dict[str, Variable], draft: Draft) -> dict[str, Variable]:
    """Add what EXTRA_CONTAINER_ENV holds; docker lets it win over a variable of the same name."""
    outer = variables.pop("EXTRA_CONTAINER_ENV", None)
    if outer is None:
        return variables
    for inner in split_container_env(outer, draft):
        if inner.name in LAUNCHER_ONLY:
            draft.drop(inner, "the launcher reads it from the profile, never from the container")
            continue
        if inner.name in variables:
            draft.drop(variables[inner.name], f"{outer.label} sets it again, and docker takes that")
        variables[inner.name] = inner
    return variables


def _api_key(variables: dict[str, Variable], draft: Draft) -> str | None:
    variable = variables.pop("API_KEY", None)
    if variable is None:
        return None
    if variable.value.lower() in _NO_KEY:
        draft.drop(variable, "that value means no key")
        return None
    draft.say(variable, ("api.key_file",), "written to the key file, not to the site")
    return variable.value


def _simple(variables: dict[str, Variable], draft: Draft, *, ring: bool) -> None:
    table = {**SIMPLE, **(RING if ring else SWITCHED)}
    reasons = {**NOT_CARRIED, **(SET_BY_A_RING if ring else NOT_ON_A_SWITCH)}
    for name in [name for name in variables if name in table or name in reasons]:
        variable = variables[name]
        del variables[name]
        if name in reasons:
            draft.drop(variable, reasons[name])
        else:
            draft.convert(variable, *table[name])


def _keep(variable: Variable, draft: Draft) -> None:
    if owned(variable.name):
        draft.drop(variable, "tetraspark computes it for each rank")
    elif variable.value.startswith("~"):
        draft.drop(variable, "`~` is not expanded in [env]: write the container's path")
    elif _is_known(variable):
        draft.keep(variable, "")
    else:
        draft.keep(variable, "unknown to tetraspark: every rank gets it as it is")


def _is_known(variable: Variable) -> bool:
    names: Iterable[str] = (*_ENV_PREFIXES, "PYTORCH_", "CUDA_", "OMP_")
    return variable.label != variable.name or variable.name.startswith(tuple(names))
