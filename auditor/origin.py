"""Where a scan comes from: its command, its configuration, and the commit of the audited tree."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from auditor.config import Config
from auditor.request import ScanRequest
from rules.provenance import Provenance

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_LARGEST = 10_000_000


def provenance(
    request: ScanRequest,
    settings: Config,
    config: Path | None,
    recipes: str | None,
    checkpoints: Path | None,
    libraries: Sequence[Path],
) -> Provenance:
    """What has to be known to scan again. The options are those of the command line; the configuration has the rest."""
    command = ["spec-audit", "scan", *(path.as_posix() for path in request.paths)]
    for library in libraries:
        command += ["--library", library.as_posix()]
    for option, value in (("--recipes", recipes), ("--checkpoints", checkpoints), ("--config", config)):
        if value:
            command += [option, value.as_posix() if isinstance(value, Path) else value]
    source = settings.source
    below = source is not None and source.resolve().is_relative_to(request.root.resolve())
    shown = source.resolve().relative_to(request.root.resolve()).as_posix() if source and below else source
    return Provenance(tuple(command), str(shown or ""), commit(request.root), settings.source_url)


def commit(root: Path) -> str:
    """The commit that the repository of `root` stands at; empty when there is none or it cannot be told.

    The files of git are read and git is not run: the configuration of a tree that is not trusted can name programs.
    """
    for folder in (root.resolve(), *root.resolve().parents):
        git = folder / ".git"
        if git.is_dir():
            return _head(git)
        if git.exists():
            return ""
    return ""


def _head(git: Path) -> str:
    head = _read(git / "HEAD").strip()
    if not head.startswith("ref: "):
        return head if _COMMIT.fullmatch(head) else ""
    name = head.removeprefix("ref: ").strip()
    if not re.fullmatch(r"refs/[\w./+@-]+", name) or ".." in name:
        return ""
    loose = _read(git / name).strip()
    if _COMMIT.fullmatch(loose):
        return loose
    for line in _read(git / "packed-refs").splitlines():
        found, _, reference = line.partition(" ")
        if reference == name and _COMMIT.fullmatch(found):
            return found
    return ""


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError:
        return ""
    return data.decode("utf-8", "replace") if len(data) <= _LARGEST else ""
