"""Where a measurement was made: what must be known before two of them are compared."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

# Peak memory bandwidth of Apple's chips in GB/s, from the published technical specifications; the larger where a chip
# was sold with two. Only used to refuse what cannot be.
_BANDWIDTH = {
    "M1": 68,
    "M1 Pro": 200,
    "M1 Max": 400,
    "M1 Ultra": 800,
    "M2": 100,
    "M2 Pro": 200,
    "M2 Max": 400,
    "M2 Ultra": 800,
    "M3": 100,
    "M3 Pro": 150,
    "M3 Max": 400,
    "M3 Ultra": 819,
    "M4": 120,
    "M4 Pro": 273,
    "M4 Max": 546,
    "M5": 153,
}
_THERMAL_ZONES = Path("/sys/class/thermal")


def environment() -> dict[str, Any]:
    """Machine, system, load and, where the system tells, heat. No name of the host and none of the user."""
    return {
        "machine": chip(),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "os": f"{platform.system()} {platform.release()}" if sys.platform != "darwin" else _macos(),
        "python": platform.python_version(),
        "load": _load(),
        "thermal": _thermal(),
    }


def chip() -> str:
    """The processor's name."""
    if sys.platform == "darwin":
        return _say("sysctl", "-n", "machdep.cpu.brand_string") or platform.machine()
    try:
        found = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text("utf-8"), re.MULTILINE)
    except OSError:
        found = None
    return found[1].strip() if found else platform.processor() or platform.machine()


def bandwidth(name: str) -> float | None:
    """The memory bandwidth in bytes per second of the chip called `name`; None when it is not in the table."""
    match = re.search(r"Apple (M\d+(?: Pro| Max| Ultra)?)", name)
    known = _BANDWIDTH.get(match[1]) if match else None
    return known * 1e9 if known else None


def _macos() -> str:
    return f"macOS {platform.mac_ver()[0]}"


def _load() -> float | None:
    try:
        return round(os.getloadavg()[0], 2)
    except (AttributeError, OSError):
        return None


def _thermal() -> str | None:
    """What the system says of its heat: a warning level on macOS, the hottest zone on Linux; None when it is silent."""
    if sys.platform == "darwin":
        lines = [line.strip() for line in _say("pmset", "-g", "therm").splitlines() if line.strip()]
        return "; ".join(lines) or None
    degrees = []
    for zone in sorted(_THERMAL_ZONES.glob("thermal_zone*/temp")) if _THERMAL_ZONES.is_dir() else []:
        try:
            degrees.append(int(zone.read_text("utf-8")) / 1000)
        except (OSError, ValueError):
            continue
    return f"{max(degrees):.0f} °C" if degrees else None


def _say(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
