"""What a report format is."""

from __future__ import annotations

from typing import Protocol

from rules.audit import Audit


class Report(Protocol):
    """One format. The same audit gives the same text."""

    def render(self, audit: Audit) -> str:
        """The whole report, ending in a newline."""
        ...
