"""What a run exports, starts and complains about, as the interpreter meets it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from auditor.places import Site
from auditor.values import NO_FLAGS

if TYPE_CHECKING:
    from rules.facts import GraphFacts, Place


@dataclass(slots=True, eq=False)
class Export:
    """One exported entry point, with its facts as they were at the export call.

    `bundle` is filled in when the program is saved; `*` stands for unknown parts, empty for never saved. `copies` are
    the other paths it is saved at. `inputs` and `outputs` are the names that the converter call gives. `home` is where
    the model class stands, when a registry of classes gave it. `under` are the options under which the model was made.
    """

    site: Site
    stack: tuple[Site, ...]
    name: str
    facts: GraphFacts
    family: str
    flags: frozenset[str]
    bundle: str = ""
    copies: frozenset[str] = frozenset()
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    home: Place | None = None
    under: frozenset[str] = NO_FLAGS


@dataclass(frozen=True, slots=True)
class Started:
    """A program or script that a run starts: its words, where, and in which folder (empty for the current one)."""

    words: tuple[str, ...]
    site: Site | None
    folder: str = ""


@dataclass(slots=True)
class Sinks:
    exports: list[Export] = field(default_factory=list)
    commands: list[Started] = field(default_factory=list)
    problems: list[tuple[str, Site | None]] = field(default_factory=list)

    def export(self, export: Export) -> None:
        self.exports.append(export)

    def command(self, words: tuple[str, ...], site: Site | None, folder: str = "") -> None:
        self.commands.append(Started(words, site, folder))

    def problem(self, message: str, site: Site | None) -> None:
        self.problems.append((message, site))

    def met(self) -> tuple[int, int, int]:
        """How much was met so far."""
        return len(self.exports), len(self.commands), len(self.problems)

    def mark(self) -> tuple[int, int]:
        return len(self.exports), len(self.commands)

    def rollback(self, mark: tuple[int, int]) -> None:
        """Forget what was met since `mark`: a loop body is about to be evaluated again."""
        del self.exports[mark[0] :]
        del self.commands[mark[1] :]
