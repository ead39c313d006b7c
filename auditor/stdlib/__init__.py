"""Python's standard library and the makers of command lines: one file a subject, each with its `NATIVES`."""

from __future__ import annotations

from auditor.stdlib import (
    classes,
    concurrency,
    configurations,
    copies,
    data,
    field_classes,
    files,
    functions,
    hydra,
    importing,
    iteration,
    managers,
    mocks,
    options,
    processes,
    regular,
    versions,
)
from auditor.values import Value

NATIVES: dict[str, Value] = {
    **files.NATIVES,
    **options.NATIVES,
    **concurrency.NATIVES,
    **functions.NATIVES,
    **classes.NATIVES,
    **field_classes.NATIVES,
    **copies.NATIVES,
    **iteration.NATIVES,
    **importing.NATIVES,
    **data.NATIVES,
    **configurations.NATIVES,
    **hydra.NATIVES,
    **managers.NATIVES,
    **mocks.NATIVES,
    **processes.NATIVES,
    **regular.NATIVES,
    **versions.NATIVES,
}
