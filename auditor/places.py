"""Where values come from: cheap to record, resolved to a line only when a place is cited.

LibCST's position pass costs several times the parse, so a `Site` keeps its node and the statement it was met in, and
the position pass runs over that one statement when somebody asks for the line (see `auditor.lines`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rules.facts import Place

if TYPE_CHECKING:
    from auditor.modules import Statement


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """A node inside a top-level statement of a source file, or (no node) the statement's first line.

    Made by `Statement.site`, once for each node: two sites are the same place only when they are the same object.
    """

    statement: Statement = field(repr=False)
    node: Any = field(default=None, repr=False)
    note: str = ""
    within: Any = field(default=None, repr=False)

    @property
    def path(self) -> str:
        return self.statement.path

    @property
    def line(self) -> int:
        return self.statement.line_of(self.node, self.within)

    def place(self, note: str = "") -> Place:
        return Place(self.path, self.line, note or self.note)


def here(site: Site | None) -> tuple[Site, ...]:
    """The `places` of a value that is made at `site`."""
    return (site,) if site else ()
