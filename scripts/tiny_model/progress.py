"""Lines about what goes on, for whoever waits."""

import sys
import time


def say(text: str) -> None:
    """Print a line with the time to stderr."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)
