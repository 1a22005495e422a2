"""What the plan's variables say of the communicator: its settings and its transport."""

from collections.abc import Mapping
from typing import Any

from tetraspark.collectives.settings import Settings
from tetraspark.collectives.shm import ShmTransport
from tetraspark.collectives.transport import Transport
from tetraspark.collectives.verbs import VerbsTransport
from tetraspark.collectives.verbs_options import VerbsOptions
from tetraspark.collectives.wiring import Wiring
from tetraspark.engine.collectives_env import (
    LIMITS,
    MAX_TWO_SHOT,
    NEVER,
    OPTIONS,
    SHM,
    TRANSPORT,
    TWO_SHOT_FROM,
    VERBS,
    WIRING,
)


def settings_from(env: Mapping[str, str]) -> Settings | None:
    """Return the group's settings, or None when the plan leaves collectives to the engine.

    Raises ValueError for a variable that is absent or not what it must be: the plan sets them.
    """
    if TRANSPORT not in env:
        return None
    transport = env[TRANSPORT]
    if transport not in (SHM, VERBS):
        raise ValueError(f"{TRANSPORT}={transport}: wanted {SHM} or {VERBS}")
    wanted = [*(name for name, _, _ in LIMITS), MAX_TWO_SHOT, TWO_SHOT_FROM]
    wanted += [WIRING, *(name for name, _, _ in OPTIONS)] if transport == VERBS else []
    absent = [name for name in wanted if name not in env]
    if absent:
        raise ValueError(f"{', '.join(absent)}: not set, though {TRANSPORT} is")
    values: dict[str, Any] = {setting: int(env[name]) for name, _, setting in LIMITS}
    values["max_two_shot_bytes"] = int(env[MAX_TWO_SHOT])
    start = env[TWO_SHOT_FROM]
    values["two_shot_from"] = None if start == NEVER else int(start)
    if transport == VERBS:
        wiring = Wiring.from_json(env[WIRING])
        values |= {"lanes": wiring.lanes, "routes": wiring.routes()}
    return Settings(**values)


def transport_from(env: Mapping[str, str], rank: int) -> Transport:
    """Return the transport of a rank whose plan has one. Raises ValueError."""
    if env[TRANSPORT] == SHM:
        return ShmTransport(rank)
    options = {field: int(env[name]) for name, _, field in OPTIONS}
    return VerbsTransport(rank, Wiring.from_json(env[WIRING]), VerbsOptions(**options))
