"""Python's standard library, as far as export scripts use it: one file a module, each with its `NATIVES`."""

from __future__ import annotations

from auditor.stdlib import argparse_model, data, files, functions, processes
from auditor.values import Value

NATIVES: dict[str, Value] = {
    **files.NATIVES,
    **argparse_model.NATIVES,
    **functions.NATIVES,
    **data.NATIVES,
    **processes.NATIVES,
}
