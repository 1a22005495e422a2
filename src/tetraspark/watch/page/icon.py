"""A state as a shape, so that it is told without colour too."""

MARKS = {
    "ready": '<circle cx="8" cy="8" r="7"/><path d="M4.8 8.2 7 10.5 11.3 5.8"/>',
    "degraded": '<path class="body" d="M8 1 15.4 14.5H.6Z"/><path d="M8 6v4M8 12v.4"/>',
    "wedged": '<rect x="1" y="1" width="14" height="14" rx="3"/><path d="M6 5v6M10 5v6"/>',
    "down": '<path class="body" d="M5 1h6l4 4v6l-4 4H5l-4-4V5Z"/><path d="m5.5 5.5 5 5m0-5-5 5"/>',
    "starting": '<circle cx="8" cy="8" r="7"/><path d="M8 4v4l2.6 2"/>',
    "": '<circle cx="8" cy="8" r="7"/><path d="M5 8h6"/>',
}
"""Drawings on 16 by 16: a filled body, and a line in the paper's colour on it."""
COLOURS = {
    "ready": "#1a7f4b",
    "degraded": "#b45f06",
    "wedged": "#b3261e",
    "down": "#b3261e",
    "starting": "#2563b8",
    "": "#66717d",
}
STYLE = "path{{fill:none;stroke:#fff;stroke-width:1.8}}circle,rect,.body{{fill:{};stroke:none}}"


def icon_of(state: str) -> str:
    """Return a whole SVG document, for the browser's tab; "" is an unknown state."""
    known = state if state in MARKS else ""
    style = STYLE.format(COLOURS[known])
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16">'
        f"<style>{style}</style>{MARKS[known]}</svg>"
    )
