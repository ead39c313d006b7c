"""What else the machine did while something was measured: other load, page faults, descheduling."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_STAT = Path("/proc/stat")
_BEFORE_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Reading:
    """Clocks at one moment: wall, own CPU, all CPUs' busy seconds (None: not told), minor faults."""

    wall: float
    own: float
    busy: float | None
    faults: int | None


def reading() -> Reading:
    """The meters as they stand now, in seconds and counts."""
    return Reading(time.perf_counter(), time.process_time(), _busy(), _faults())


def between(first: Reading, last: Reading) -> dict[str, Any]:
    """`others`: cores that others kept busy (None where the system does not tell); `own`: those of this process."""
    wall = max(last.wall - first.wall, 1e-9)
    own = (last.own - first.own) / wall
    others = None
    if first.busy is not None and last.busy is not None:
        others = max((last.busy - first.busy) / wall - own, 0.0)
    faults = None if first.faults is None or last.faults is None else last.faults - first.faults
    return {"own": own, "others": others, "faults": faults}


def others_before() -> float | None:
    """Cores that others keep busy while this process sleeps."""
    first = reading()
    time.sleep(_BEFORE_SECONDS)
    found: float | None = between(first, reading())["others"]
    return found


def allocator() -> dict[str, Any]:
    """How glibc's allocator was set for this process; elsewhere there is nothing to set."""
    if sys.platform != "linux":
        return {"pinned": None, "tunables": None}
    tunables = os.environ.get("GLIBC_TUNABLES", "")
    return {"pinned": "glibc.malloc.trim_threshold" in tunables, "tunables": tunables or None}


def _busy() -> float | None:
    try:
        fields = _STAT.read_text("ascii").split("\n", 1)[0].split()
        user, nice, system, _idle, _wait, irq, soft, steal = map(int, fields[1:9])
        return float(user + nice + system + irq + soft + steal) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError):
        return None


def _faults() -> int | None:
    try:
        import resource
    except ImportError:
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
