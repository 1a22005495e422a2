"""Processes of this machine, one a rank, that measure together: all of them bounded."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tetraspark.errors import Problem, RunError

SILENT_S = 180.0
"""No rank ended a round for so long: above every limit that the ranks have themselves."""
FOLLOW_S = 5.0
"""How long the others may take to say why they failed too."""
POLL_S = 0.05
TOLD = "bench.json"


