"""An observation whose every text was written by somebody who means ill."""

from dataclasses import fields, is_dataclass, replace
from typing import Any

from tetraspark.watch.observation import Observation

TEXT = (
    "</title></script></style></textarea></svg><script>window.pwned=1</script>"
    '<img src=x onerror="window.pwned=2"><svg onload=window.pwned=3>'
    "\" onmouseover=\"window.pwned=4\" x=\"' onfocus='window.pwned=5' autofocus='"
    "{{ 7 * 7 }}{% raw %}${8*8} &lt;b&gt; <!-- ]]> javascript:window.pwned=6 "
    "\x1b[31mred\x07\x00\u202eevil\u2066\udc80 "
)
LONG = "x" * 300


def everywhere(seen: Observation, text: str = TEXT) -> Observation:
    """Return an observation with the text in place of every text in it, keys too."""
    filled = _fill(seen, text)
    assert isinstance(filled, Observation)
    return filled


def _fill(value: Any, text: str) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        changed = {one.name: _fill(getattr(value, one.name), text) for one in fields(value)}
        return replace(value, **changed)
    if isinstance(value, tuple):
        return tuple(_fill(one, text) for one in value)
    if isinstance(value, dict):
        return {text: text}
    return text if isinstance(value, str) else value
