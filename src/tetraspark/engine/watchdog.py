"""Ends a rank that is stuck in the engine's own group after our group has failed."""

import logging
import os
import signal
import sys
import threading
import time
import traceback

from tetraspark.collectives.failure import CollectiveError
from tetraspark.collectives.watchdog import PERIOD_S, Watchdog
from tetraspark.engine.communicator import Communicator

log = logging.getLogger(__name__)

OWN_WAY_SECONDS = 2.0
"""What the rank's own thread gets to raise the same error, if it is in an operation of ours."""

leaving = threading.Event()
"""Set once the event loop has ended: the engine then ends the rank itself."""


def watch_in_background(communicator: Communicator) -> None:
    """Start the watchdog of this scheduler, in a daemon thread."""
    group = communicator.group
    threading.Thread(
        target=_watch, args=(group.watchdog(), group.rank), name="tetraspark-watchdog", daemon=True
    ).start()


def _watch(watchdog: Watchdog, rank: int) -> None:
    while (root := watchdog.look()) is None:
        time.sleep(PERIOD_S)
    if leaving.wait(OWN_WAY_SECONDS):
        return
    frames = sys._current_frames().get(threading.main_thread().ident or 0)
    place = "".join(traceback.format_stack(frames)) if frames else ""
    log.error("%sCollectiveError: %s", place, CollectiveError(root, rank))
    # What the engine's scheduler does with an exception of its event loop: it tells its parent, and
    # ends. Of one that lives the API's process would gather diagnostics for a minute first.
    os.kill(os.getppid(), signal.SIGQUIT)
    logging.shutdown()
    os._exit(1)
