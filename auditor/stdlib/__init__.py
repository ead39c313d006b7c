"""Python's standard library and the makers of command lines: one file a module, each with its `NATIVES`."""

from __future__ import annotations

from auditor.stdlib import (
    argparse_model,
    commands,
    concurrency,
    configurations,
    data,
    files,
    functions,
    hydra,
    managers,
    processes,
)
from auditor.values import Value

NATIVES: dict[str, Value] = {
    **files.NATIVES,
    **argparse_model.NATIVES,
    **commands.NATIVES,
    **concurrency.NATIVES,
    **functions.NATIVES,
    **data.NATIVES,
    **configurations.NATIVES,
    **hydra.NATIVES,
    **managers.NATIVES,
    **processes.NATIVES,
}
