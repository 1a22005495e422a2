"""/state.json: the observation with its age, and on request the page's parts made of it."""

import json
import math
from typing import Any

from tetraspark.watch.page.quantity import clock
from tetraspark.watch.page.render import Shown, render_parts


def state_json(shown: Shown, *, with_page: bool) -> bytes:
    """Return the document. Numbers that JSON cannot hold (infinite, or none) are null.

    `lane_rates` are bytes a second; `page` holds title, icon and parts as HTML.
    """
    seen, health = shown.seen, shown.health
    found: dict[str, Any] = {
        "healthy": health.ok,
        "reason": health.reason,
        "age_seconds": None if health.age is None else round(health.age, 3),
        "stale": health.stale,
        "observation": None if seen is None else seen.as_dict(),
        "lane_rates": [
            {"rank": rank, "peer": peer, "lane": lane, "bytes_per_second": rate}
            for (rank, peer, lane), rate in shown.rates.items()
        ],
    }
    if with_page:
        found["page"] = {
            "title": shown.title,
            "icon": shown.icon,
            "at": "" if seen is None else clock(seen.at),
            "parts": render_parts(shown),
        }
    return json.dumps(_finite(found), allow_nan=False).encode()


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
