"""Exported programs and traced modules that a script saves, and that a later phase of it loads."""

from __future__ import annotations

from auditor.expressions.text import format_value
from auditor.graph_facts.declaration import SAVED
from auditor.interpreter import Interpreter
from auditor.values import (
    Instance,
    Unknown,
    Value,
)


def keep(it: Interpreter, file: Value, program: Instance) -> None:
    """A program or a traced module is saved. Of two under a name with unknown parts, nobody knows which is which."""
    name = _file(it, file)
    old = it.loader.programs.get(name, program)
    lost = Unknown(f"one of several programs saved as `{name[1]}`", SAVED, places=file.places)
    it.loader.programs[name] = program if old is program or "*" not in name[1] else lost


def kept(it: Interpreter, file: Value | None, what: Unknown) -> Value:
    """What the script has saved under a name; `what` when it was not this script."""
    return it.loader.programs.get(_file(it, file), what) if file is not None else what


def _file(it: Interpreter, file: Value) -> tuple[str, str]:
    main = it.loader.main
    script = it.stack[0].path if it.stack else main.source.file.path if main is not None else ""
    return script, format_value(file, "", None)
