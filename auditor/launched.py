"""What the programs export that a run starts: console scripts of libraries, other scripts, modules."""

from __future__ import annotations

import posixpath

from auditor.evaluations import Evaluations
from auditor.launches import Launch, Starts, launches
from auditor.loader import FILE_PREFIX
from auditor.run import Result
from auditor.sinks import Export
from auditor.sources import Sources


def launched(evaluations: Evaluations, result: Result, script: str) -> list[Export]:
    """The exports of the programs that a run of `script` starts, in the order of their start."""
    out: list[Export] = []
    for started in result.started:
        for what in launches(started.words, started.folder):
            inner = _run(evaluations, what, script)
            if isinstance(inner, Result):
                out += inner.exports
    return out


def _run(evaluations: Evaluations, what: Launch, script: str) -> Result | str | None:
    """The result of a program that a run starts; None when it is none of the sources, or the script once more."""
    sources = evaluations.sources
    if what.starts is Starts.COMMAND:
        known = sources.console_script(what.name) is not None
        return evaluations.evaluate("", what.argv, what.name) if known else None
    file = _module(sources, what) if what.starts is Starts.MODULE else _script(sources, what, script)
    return evaluations.evaluate(file, what.argv) if file not in ("", script) else None


def _module(sources: Sources, what: Launch) -> str:
    folder = what.folder.removeprefix(FILE_PREFIX)
    file = None if "*" in what.name else sources.program(what.name, () if "*" in folder else (folder,))
    return file.path if file is not None else ""


def _script(sources: Sources, what: Launch, script: str) -> str:
    """The file that a launch runs; empty when it is none, or may be one of two.

    A relative path is looked for beside the script and from the root: either may be the current folder.
    """
    name = posixpath.join(what.folder, what.name)
    if "*" in name:
        return ""
    if name.startswith(FILE_PREFIX):
        path = posixpath.normpath(name.removeprefix(FILE_PREFIX))
        return path if sources.exists(path) else ""
    places = {posixpath.normpath(posixpath.join(folder, name)) for folder in (posixpath.dirname(script), "")}
    found = [p for p in places if not p.startswith(("..", "/")) and sources.exists(p)]
    return found[0] if len(found) == 1 else ""
