"""Python's standard library and the makers of command lines: one file a module, each with its `NATIVES`."""

from __future__ import annotations

from auditor.stdlib import argparse_model, commands, concurrency, data, files, functions, managers, processes
from auditor.values import Value

NATIVES: dict[str, Value] = {
    **files.NATIVES,
    **argparse_model.NATIVES,
    **commands.NATIVES,
    **concurrency.NATIVES,
    **functions.NATIVES,
    **data.NATIVES,
    **managers.NATIVES,
    **processes.NATIVES,
}
