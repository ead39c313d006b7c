"""What a scan runs, and what a run comes to: plain data, so that it may be found in any process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from rules.facts import Graph, InvocationKind


@dataclass(frozen=True, slots=True)
class Run:
    """A script with a command line, or a console command (`command`), and the recipe that asks for it.

    `line` is where its graphs are shown (0: at the export call).
    """

    script: str
    argv: tuple[str, ...]
    kind: InvocationKind
    recipe: str = ""
    shipped: str = ""
    command: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    """A graph, whose identifier `Names` has still to tell from others.

    `way` are the (path, line) of the export call and of the calls that led to it, where it stands in another file than
    the script that is run, else empty.
    """

    graph: Graph
    way: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a run.

    `waiting` are graphs that count only when nothing of their script exports anything. `exports` when the script does;
    `error` is why the run could not be made, `reason` why it reached no export call.
    """

    graphs: tuple[Found, ...] = ()
    waiting: tuple[Graph, ...] = ()
    exports: bool = False
    error: str = ""
    reason: str = ""


Group = tuple[int, ...]
"""Numbers of runs, in order."""


def grouped(runs: Sequence[Run]) -> list[Group]:
    """The runs of each script (or command) together, for they know of each other; no group depends on another."""
    groups: dict[tuple[str, str], list[int]] = {}
    for number, run in enumerate(runs):
        groups.setdefault((run.script, run.command), []).append(number)
    return [tuple(numbers) for numbers in groups.values()]


@dataclass(slots=True)
class Names:
    """Identifiers that differ: `~2` is added to the second graph of one name, and so on."""

    met: Counter[str] = field(default_factory=Counter)

    def apart(self, graph: Graph) -> Graph:
        """The graph, under a name that none before it has."""
        self.met[graph.id] += 1
        count = self.met[graph.id]
        return graph if count == 1 else replace(graph, id=f"{graph.id}~{count}")
