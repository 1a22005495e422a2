"""From a pydantic error to the words of a Problem: what was seen, wanted, and the fix."""

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from tetraspark.site.finding import Finding
from tetraspark.site.flags import list_text, split_words
from tetraspark.site.keypath import KeyPath, dotted
from tetraspark.site.schema import CROSS_CHECK, Site
from tetraspark.site.secret import holds_secret, names_secret
from tetraspark.site.section import REFUSED

_TYPES = {"string": "a string", "int": "an integer", "float": "a number", "bool": "true or false"}
_TABLES = ("model_type", "model_attributes_type", "dict_type", "mapping_type")


def explain(error: ValidationError, root: type[BaseModel] = Site) -> list[Finding]:
    """Return one finding for each fault pydantic saw in a document of this schema, but the cross
    checks it repeats.
    """
    items = [item for item in error.errors() if item["type"] != CROSS_CHECK]
    # a list whose elements are all at fault is also "too short"
    inner = {item["loc"][:end] for item in items for end in range(1, len(item["loc"]))}
    return [_finding(i, root) for i in items if i["type"] != "too_short" or i["loc"] not in inner]


def schema_keys(root: type[BaseModel] = Site) -> list[KeyPath]:
    """Return every key of a schema; an element of a list counts as index 0."""
    return list(_keys_of(root, ()))


def field_at(path: KeyPath, root: type[BaseModel] = Site) -> FieldInfo | None:
    """Return a schema's field for a key path, or None for one it does not know."""
    model: type[BaseModel] | None = root
    field: FieldInfo | None = None
    for part in path:
        if isinstance(part, int):
            continue
        if model is None or part not in model.model_fields:
            return None
        field = model.model_fields[part]
        model = _model_in(field.annotation)
    return field


def phrase(field: FieldInfo) -> str:
    """Say what a field takes: its type, its range and what it is for."""
    return f"{_type_phrase(field)}{_range_phrase(field)} ({field.description})"


def _finding(item: ErrorDetails, root: type[BaseModel]) -> Finding:
    path: KeyPath = tuple(item["loc"])
    kind, value = item["type"], item["input"]
    if kind == REFUSED:
        texts = item.get("ctx", {})
        return Finding(path, texts["seen"], texts["wanted"], texts["fix"])
    if kind == "extra_forbidden":
        return _unknown_key(path, root)
    if kind == "missing":
        return _missing(path, root)
    field = field_at(path, root)
    wanted = phrase(field) if field else _TYPES["string"]
    if field is not None and isinstance(path[-1], int):
        wanted = f"an element of {wanted}"
    return Finding(
        path, f"`{dotted(path)}` is {_shown(path, value)}", wanted, _fix(path, item, field)
    )


def _unknown_key(path: KeyPath, root: type[BaseModel]) -> Finding:
    name, section = str(path[-1]), path[:-1]
    known = _children(section, root)
    where = f"[{dotted(section)}]" if section else "the top level"
    wanted = f"keys of {where}: {', '.join(known)}"
    return Finding(path, f"unknown key `{dotted(path)}`", wanted, _nearest_key(name, known, root))


def _nearest_key(name: str, known: list[str], root: type[BaseModel]) -> str:
    near = difflib.get_close_matches(name.lower(), known, 1)
    if near:
        return f"did you mean `{near[0]}`?"
    elsewhere = [dotted(path) for path in schema_keys(root) if path[-1] == name]
    if elsewhere:
        return f"did you mean `{'` or `'.join(elsewhere)}`?"
    every = {dotted(path): path for path in schema_keys(root)}
    names = {str(path[-1]): key for key, path in every.items()}
    near = difflib.get_close_matches(name.lower(), list(names), 1, cutoff=0.75)
    return f"did you mean `{names[near[0]]}`?" if near else "remove it"


def _missing(path: KeyPath, root: type[BaseModel]) -> Finding:
    field = field_at(path, root)
    wanted = phrase(field) if field else "a value"
    is_table = field is not None and _model_in(field.annotation) is not None
    example = f"add the section {_header(path, field)}" if is_table else f"add `{path[-1]} = …`"
    return Finding(path, f"`{dotted(path)}` is missing", wanted, example)


def _header(path: KeyPath, field: FieldInfo | None) -> str:
    repeated = field is not None and "tuple" in str(field.annotation)
    return f"[[{dotted(path)}]]" if repeated else f"[{dotted(path)}]"


def _fix(path: KeyPath, item: ErrorDetails, field: FieldInfo | None) -> str:
    kind, value = item["type"], item["input"]
    if kind == "tuple_type" and isinstance(value, str):
        flags = path[-1] == "extra_args"
        words = split_words(value) if flags else [w for w in re.split(r"[,\s]+", value) if w]
        return f"{path[-1]} = {list_text(words)}"
    if kind == "literal_error":
        choices = [str(choice) for choice in _choices(field.annotation)] if field else []
        near = difflib.get_close_matches(str(value).lower(), choices, 1, cutoff=0.3)
        return f'did you mean "{near[0]}"?' if near else f"one of {', '.join(choices)}"
    if isinstance(path[-1], int) and not isinstance(value, Mapping | tuple):
        return f'write it in quotes: "{value}"'
    if kind in ("int_type", "float_type", "bool_type") and isinstance(value, str):
        return f"write it without quotes: {path[-1]} = {value}" if _plain(value) else ""
    if kind == "int_type" and isinstance(value, float) and value.is_integer():
        return f"{path[-1]} = {int(value)}"
    if kind == "string_type" and isinstance(value, (int, float)):
        return f'write it in quotes: {path[-1]} = "{str(value).lower()}"'
    if kind in _TABLES:
        return f"write a table: [{dotted(path)}]"
    return ""


def _plain(value: str) -> bool:
    return re.fullmatch(r"[+-]?\d+(\.\d+)?|true|false", value) is not None


def _shown(path: KeyPath, value: object) -> str:
    names = [part for part in path if isinstance(part, str)]
    text = repr(value)
    if any(names_secret(name) for name in names) or holds_secret(text) or "api-key" in text:
        return f"a {type(value).__name__} (value hidden)"
    if isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, Mapping):
        text = "a table"
    elif isinstance(value, tuple):
        text = repr(list(value))
    return text if len(text) <= 80 else f"{text[:77]}..."


def _type_phrase(field: FieldInfo) -> str:
    choices = _choices(field.annotation)
    if choices:
        return "one of " + ", ".join(repr(choice).replace("'", '"') for choice in choices)
    text = str(field.annotation)
    if "Mapping" in text or (_model_in(field.annotation) is not None and "tuple" not in text):
        return "a table"
    if "tuple" in text:
        return "a list of tables" if _model_in(field.annotation) else "a list of strings"
    names = [name for name in ("bool", "float", "int") if re.search(rf"\b{name}\b", text)]
    return _TYPES[names[0]] if names else _TYPES["string"]


def _range_phrase(field: FieldInfo) -> str:
    limits = {
        name: getattr(item, name)
        for item in field.metadata
        for name in ("ge", "le", "gt", "lt")
        if getattr(item, name, None) is not None
    }
    words = {"ge": "from", "gt": "above", "le": "to", "lt": "below"}
    return "".join(f" {words[name]} {limits[name]}" for name in words if name in limits)


def _choices(annotation: Any) -> list[object]:
    if "Literal[" not in str(annotation):
        return []
    inner = get_args(annotation)
    nested = [choice for part in inner for choice in _choices(part)]
    return nested or [choice for choice in inner if isinstance(choice, (str, int))]


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = (_model_in(part) for part in get_args(annotation))
    return next((model for model in found if model is not None), None)


def _children(section: KeyPath, root: type[BaseModel]) -> list[str]:
    field = field_at(section, root)
    model = _model_in(field.annotation) if field else root
    return list(model.model_fields) if model else []


def _keys_of(model: type[BaseModel], above: KeyPath) -> Iterable[KeyPath]:
    for name, field in model.model_fields.items():
        path = (*above, name)
        yield path
        inner = _model_in(field.annotation)
        if inner is not None:
            yield from _keys_of(inner, (*path, 0) if "tuple" in str(field.annotation) else path)
