"""The one place where the version stands."""

from __future__ import annotations

NAME = "spec-audit"
VERSION = "0.1.0"
