"""Runs test functions beside the real engine, in a process of their own.

The engine needs stand-ins on its path where no GPU is, and takes seconds to import: both are kept
out of the process that runs the other tests, and paid once.
"""

import importlib
import inspect
import multiprocessing
import os
import sys
import traceback
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from multiprocessing.connection import Connection
from typing import Any

import pytest
import torch

from tetraspark.engine.indexer_hooks import INDEXER_HOOKS
from tetraspark.engine.plugin import apply_hooks
from tetraspark.engine.standins import MODULES, path_of

START_LIMIT_S = 400
TEST_LIMIT_S = 200


class Lab:
    """A process in which the engine is imported, on the CPU."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, there = context.Pipe()
        self._process = context.Process(target=serve, args=(there,))
        self._process.start()
        there.close()
        self._answer(START_LIMIT_S)

    def run(self, module: str, name: str, arguments: dict[str, Any]) -> str:
        """Run a test function; return its traceback, or "" when it passed."""
        self._pipe.send((module, name, arguments))
        return self._answer(TEST_LIMIT_S)

    def _answer(self, limit_s: float) -> str:
        if not self._pipe.poll(limit_s):
            raise TimeoutError(f"the engine's process did not answer in {limit_s} s")
        return str(self._pipe.recv())

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()
        self._pipe.close()


def serve(pipe: Connection) -> None:
    """Import the engine, hook it as the plugin does, then run what is asked for."""
    os.environ["SGLANG_USE_CPU_ENGINE"] = "1"
    sys.path[:0] = [str(path_of(name)) for name in MODULES if find_spec(name) is None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        importlib.import_module("sglang.srt.layers.attention.deepseek_v4_backend")
        apply_hooks(INDEXER_HOOKS)
    # Ranks are forked from here, and a fork loses the threads of a parallel region.
    torch.set_num_threads(1)
    pipe.send("")
    while True:
        try:
            module, name, arguments = pipe.recv()
        except EOFError:
            return
        try:
            test = getattr(importlib.import_module(module), name)
            test.here(**arguments)
            pipe.send("")
        except BaseException:
            pipe.send(traceback.format_exc())


def in_engine(function: Callable[..., None]) -> Callable[..., None]:
    """Make a test that runs in the lab; what it is parametrised with must be picklable."""

    def test(engine_lab: Lab, **arguments: Any) -> None:
        fault = engine_lab.run(function.__module__, function.__name__, arguments)
        if fault:
            pytest.fail(fault, pytrace=False)

    lab = inspect.Parameter("engine_lab", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    own = inspect.signature(function).parameters.values()
    test.__name__, test.__doc__, test.__module__ = (
        function.__name__, function.__doc__, function.__module__,
    )  # fmt: skip
    vars(test).update(
        __signature__=inspect.Signature([lab, *own]),
        here=function,
        pytestmark=getattr(function, "pytestmark", []),
    )
    return test
