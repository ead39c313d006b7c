"""Runs as they were evaluated: each command line of a script, and of a console command, once.

The runs of one script know of each other: results are reused between them, command lines that come to the same are one
run, and a program that one saves is there for the next. Nothing else goes from one script's runs to another's, so that
an outcome does not depend on which runs were made before it in the same process.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from auditor.loader import Loader
from auditor.modules import SyntaxProblem
from auditor.run import Result, run_command, run_script
from auditor.seen import Seen
from auditor.sources import Sources, Unreadable


@dataclass(slots=True)
class Evaluations:
    """Makes runs. `seen` is told when one met something that may not happen again."""

    sources: Sources
    loader: Loader
    seen: Seen
    results: dict[tuple[str, tuple[str, ...]], Result | str] = field(default_factory=dict)
    commands: dict[tuple[str, tuple[str, ...]], Result | str] = field(default_factory=dict)
    met: dict[str, dict[Hashable, Result]] = field(default_factory=dict)

    def fresh(self) -> None:
        """What follows knows of no earlier run of any script. What a console command exports is the same for all."""
        self.results.clear()
        self.met.clear()
        self.loader.programs.clear()

    def evaluate(self, script: str, argv: tuple[str, ...], command: str = "", choosing: bool = False) -> Result | str:
        """The result of a run, or why there is none. With `choosing`, a run that has to make a choice ends there."""
        kept, name = (self.commands, command) if command else (self.results, script)
        found = kept.get((name, argv))
        if found is None:
            try:
                found = self._command(command, argv) if command else self._script(script, argv, choosing)
            except (Unreadable, SyntaxProblem) as error:
                found = str(error)
            except Exception as error:  # a file that crashes the evaluator is a result, and the rest still runs
                self.seen.spoil()
                found = f"the evaluator failed on this file ({type(error).__name__}: {error})"
            if isinstance(found, Result) and found.due:
                return found
            kept[name, argv] = found
        return found

    def _script(self, script: str, argv: tuple[str, ...], choosing: bool) -> Result | str:
        if not script:
            return "the recipe names no script and no command that makes its bundle"
        return run_script(self.loader, script, argv, self.met.setdefault(script, {}), choosing)

    def _command(self, command: str, argv: tuple[str, ...]) -> Result | str:
        target = self.sources.console_script(command)
        if target is None:
            return f"no library has the console script `{command}`"
        programs, self.loader.programs = self.loader.programs, {}
        try:
            return run_command(self.loader, target[0], target[1], argv)
        finally:
            self.loader.programs = programs
