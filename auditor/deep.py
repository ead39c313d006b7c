"""Where the evaluator runs: a thread with room for its recursion, a collector that rests, no warnings.

Python warns about the audited code (an unknown escape, `~True`) where the evaluator parses or computes it: that is no
message of this tool, and under `-W error` would be a file that does not parse.
"""

from __future__ import annotations

import gc
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

_STACK = 512 * 1024 * 1024
_RECURSION = 60_000
_GC = (10_000, 1_000, 1_000)

T = TypeVar("T")


def deep(function: Callable[[], T]) -> T:
    """Run with a stack that holds the evaluator's recursion; the audited code's own is bounded far below.

    When the waiting thread is interrupted, the work is left to end with the process.
    """
    results: list[Any] = []

    def body() -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                results.append((True, _roomy(function)))
        except BaseException as error:
            results.append((False, error))

    old_size, old_limit = threading.stack_size(_STACK), sys.getrecursionlimit()
    sys.setrecursionlimit(_RECURSION)
    try:
        thread = threading.Thread(target=body, name="scan", daemon=True)
        try:
            thread.start()
        finally:
            threading.stack_size(old_size)  # the threads that this one starts need no such stack
        thread.join()
    finally:
        sys.setrecursionlimit(old_limit)
    fine, value = results[0]
    if not fine:
        raise value
    return value  # type: ignore[no-any-return]


def _call(function: Callable[[], Any]) -> Any:
    return function()


# CPython allocates its data stack in chunks of 16 KiB and gives each back as soon as it is empty. A recursion that goes
# up and down across a boundary pays for two system calls and a page fault each time (a tenth of a scan). A frame that
# claims more than half of a large chunk makes the rest of that chunk the stack of everything below it.
_ROOM = 520_000
_roomy = types.FunctionType(_call.__code__.replace(co_stacksize=_ROOM), globals(), "roomy")


@contextmanager
def mostly_kept() -> Iterator[None]:
    """What a scan allocates mostly lives on (syntax trees, modules): old objects are not worth collecting again."""
    thresholds = gc.get_threshold()
    gc.set_threshold(*_GC)
    try:
        yield
    finally:
        gc.freeze()  # nor is it worth one more walk while the report is written
        gc.set_threshold(*thresholds)


@contextmanager
def resting() -> Iterator[None]:
    """No collection meanwhile: for work that makes many objects and leaves no cycles among them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
