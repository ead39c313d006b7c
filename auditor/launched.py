"""What the programs export that a run starts: console scripts of the libraries, and other scripts of the sources."""

from __future__ import annotations

import posixpath

from auditor.evaluations import Evaluations
from auditor.launches import Launch, Starts, launch
from auditor.loader import FILE_PREFIX
from auditor.run import Result
from auditor.sinks import Export
from auditor.sources import Sources


def launched(evaluations: Evaluations, result: Result, script: str) -> list[Export]:
    """The exports of all programs that a run of a script starts."""
    out: list[Export] = []
    for started in result.started:
        what = launch(started.words)
        inner = _run(evaluations, what, script) if what is not None else None
        if isinstance(inner, Result):
            out += inner.exports
    return out


def _run(evaluations: Evaluations, what: Launch, script: str) -> Result | str | None:
    """The result of a program that a script starts; None when it is none of the sources, or the script once more."""
    if what.starts is Starts.COMMAND and evaluations.sources.console_script(what.name) is not None:
        return evaluations.evaluate("", tuple(what.argv), what.name)
    path = _file(evaluations.sources, what, script)
    return evaluations.evaluate(path, tuple(what.argv)) if path not in ("", script) else None


def _file(sources: Sources, what: Launch, script: str) -> str:
    """The file of the sources that a launch runs; empty when it is none, or may be one of two.

    A relative path is looked for beside the script and from the root: either may be the current folder.
    """
    if "*" in what.name or what.starts is Starts.COMMAND:
        return ""
    if what.starts is Starts.MODULE:
        file = sources.module(what.name, None, ())
        return file.path if file is not None and sources.audited(file.path) else ""
    if what.name.startswith(FILE_PREFIX):
        path = what.name.removeprefix(FILE_PREFIX)
        return path if sources.exists(path) else ""
    places = {posixpath.normpath(posixpath.join(f, what.name)) for f in (posixpath.dirname(script), "")}
    found = [p for p in places if not p.startswith(("..", "/")) and sources.exists(p)]
    return found[0] if len(found) == 1 else ""
