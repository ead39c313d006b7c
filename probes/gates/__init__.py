"""The gates, in the order in which they are asked; each is one module."""

from __future__ import annotations

import importlib
from typing import cast

from probes.gates.gate import Gate

NAMES = ("shape", "rows", "state", "history", "rewind", "repeat")
ON_REQUEST = ("soak",)
"""Gates that run only when they are asked for; they come before `repeat`, whose second half is a process of its own."""


def gate(name: str) -> Gate:
    """The gate of that name."""
    return cast(Gate, importlib.import_module(f"probes.gates.{name}"))
