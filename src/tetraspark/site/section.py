"""The base of every section of a site file, and the field types they share."""

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from tetraspark.site.host import host_fault

REFUSED = "site_refused"


class Section(BaseModel):
    """Frozen, closed and strict: no unknown key, no string taken for a number."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def refusal(seen: str, wanted: str, fix: str) -> PydanticCustomError:
    """Return a validation error that carries the three texts of a Problem unchanged."""
    texts = {"seen": seen, "wanted": wanted, "fix": fix}
    return PydanticCustomError(REFUSED, "{seen}; wanted: {wanted}; fix: {fix}", texts)


def _host(text: str) -> str:
    fault = host_fault(text)
    if fault is not None:
        raise refusal(fault.seen, fault.wanted, fault.fix)
    return text


def _path(text: str) -> str:
    if "$" in text:
        wanted = "a path as it is: variables are not expanded here"
        raise refusal(f"path {text!r}", wanted, "write `~/` for the home folder of the node")
    return text


def _name(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", text):
        wanted = "1 to 63 of a-z, 0-9 and `-`, `-` neither first nor last"
        raise refusal(f"name {text!r}", wanted, f'try "{slug(text)}"')
    return text


def _user(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}", text):
        wanted = "a login name: it becomes an argument of ssh"
        raise refusal(f"user {text!r}", wanted, "write the name alone")
    return text


def _device(text: str) -> str:
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9_.-]{0,62}", text):
        return text
    plain = [part.lstrip("^=").split(":", 1)[0] for part in re.split(r"[,\s]+", text)]
    names = ", ".join(f'"{part}"' for part in plain if part)
    wanted = "one plain device name an element; `=a,b` is rendered from it for NCCL"
    fix = f"devices = [{names}]" if "^" not in text else "list the devices to use, not to leave out"
    raise refusal(f"device {text!r}", wanted, fix)


def slug(text: str) -> str:
    """Return the nearest valid name to `text`; `site` where nothing of it is left."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:63].strip("-") or "site"


Host = Annotated[str, AfterValidator(_host)]
PathText = Annotated[str, AfterValidator(_path)]
Name = Annotated[str, AfterValidator(_name)]
User = Annotated[str, AfterValidator(_user)]
Device = Annotated[str, AfterValidator(_device)]
Devices = Annotated[tuple[Device, ...], Field(min_length=1, max_length=32)]
