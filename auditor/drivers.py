"""Files that only define exporters, and the scripts of the tree whose runs call them.

A graph belongs to the script that is run. Where one script drives an exporter of another file, each file on the way has
the graph as well (`Graph.by` says whose it is): somebody who asks what the exporter writes looks there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from auditor.modules import Statement
from rules.facts import Graph


@dataclass(slots=True)
class Drivers:
    """What the runs of scripts export by calls that stand in other files: graphs by file and script, and the lines."""

    graphs: dict[str, dict[str, list[Graph]]] = field(default_factory=dict)
    lines: dict[str, set[int]] = field(default_factory=dict)

    def record(self, graph: Graph, way: Sequence[tuple[str, int]]) -> None:
        """A run has exported `graph`; `way` as `Found` has it."""
        if not way:
            return
        for home, at in dict([*way[1:], way[0]]).items():
            if home != graph.script:
                twin = replace(graph, id=f"{home} by {graph.id}", script=home, line=at, by=graph.script)
                self.graphs.setdefault(home, {}).setdefault(graph.script, []).append(twin)
        for path, line in way:
            self.lines.setdefault(path, set()).add(line)

    def of(self, path: str) -> list[Graph]:
        """The graphs that one script gets from this file; none where several scripts do."""
        by_script = self.graphs.get(path, {})
        return next(iter(by_script.values())) if len(by_script) == 1 else []

    def scripts(self, path: str) -> tuple[str, ...]:
        """The scripts whose runs reach export calls of this file."""
        return tuple(sorted(self.graphs.get(path, {})))

    def reach(self, path: str, statement: Statement) -> bool:
        """Whether a run went through this top-level statement of the file on its way to an export call."""
        last = statement.first + statement.text.count("\n")
        return any(statement.first <= line <= last for line in self.lines.get(path, ()))
