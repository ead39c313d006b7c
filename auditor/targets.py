"""The paths of a command line: the audited root, and what has to exist before the work starts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click


class NamedPath(click.Path):
    """A path. The empty one, which an unset variable of a shell gives, is not the current folder."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        if value == "":
            self.fail("an empty path; write . for the current folder", param, ctx)
        return super().convert(value, param, ctx)


def root(paths: Sequence[Path]) -> tuple[Path, str]:
    """The audited root and how reports show it: one folder is its own root, else the common folder of all."""
    for path in paths:
        if not path.exists():
            raise click.UsageError(
                f"no such file or folder: {str(path)!r}; give the folder that holds the export scripts"
            )
        if not path.is_file() and not path.is_dir():
            raise click.UsageError(f"neither a file nor a folder: {str(path)!r}")
        if path.suffix and _is_bundle(path):
            raise click.UsageError(
                f"{str(path)!r} is a bundle: `spec-audit probe` opens it; give `scan` the scripts that write it"
            )
    if len(paths) == 1 and paths[0].is_dir():
        found = paths[0]
    else:
        common = os.path.commonpath([os.path.abspath(path if path.is_dir() else path.parent) for path in paths])
        relative = os.path.relpath(common)
        found = Path(common if relative.startswith(os.pardir) else relative)
    return found, found.as_posix() if found.name else found.resolve().name or "/"


def _is_bundle(path: Path) -> bool:
    from probes.bundles import SUFFIXES

    return path.suffix in SUFFIXES


def existing(option: str, paths: Sequence[Path]) -> tuple[Path, ...]:
    """`paths`, all of which exist."""
    for path in paths:
        if not path.exists():
            raise click.UsageError(f"{option}: no such file or folder: {str(path)!r}")
    return tuple(paths)


def folder(option: str, path: Path | None) -> Path | None:
    """`path`, which is a folder if it is given."""
    if path is not None and not path.is_dir():
        raise click.UsageError(f"{option}: no such folder: {str(path)!r}")
    return path


def apart(files: Sequence[tuple[str, Path | None]]) -> None:
    """Refuse two options that write the same file; each is the option with its file, if it has one."""
    by_file: dict[Path, str] = {}
    for option, path in files:
        if path is not None:
            first = by_file.setdefault(path.resolve(), option)
            if first != option:
                raise click.UsageError(f"{first} and {option} would both write {str(path)!r}; name two files")


def writable(path: Path | None, option: str = "--output") -> Path | None:
    """`path`, whose folder exists: found out before a long scan, not after it."""
    if path is None:
        return None
    if path.is_dir():
        raise click.UsageError(f"{option}: {str(path)!r} is a folder; name a file in it")
    if not path.parent.is_dir():
        raise click.UsageError(f"{option}: no such folder: {str(path.parent)!r}")
    return path
