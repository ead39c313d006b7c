"""The files of a `.mlpackage` and a `.mlmodelc`. Nothing outside the folder is ever opened.

A manifest names paths, and a folder may hold links; so each path is resolved first, and refused when it leaves the
package. What is read whole is limited in size; weights are not read.
"""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

SPEC_LIMIT = 512 * 2**20
"""No description of a model is larger: the weights of an ML Program are in a file of their own."""
JSON_LIMIT = 16 * 2**20
ENTRIES = 20_000


class PackageError(Exception):
    """The package cannot be used; the message names the file and says what to do."""


@dataclass(frozen=True, slots=True)
class Package:
    """Where the parts are. `spec` is a serialized `Model`; a compiled model has `metadata` and `mil`."""

    root: Path
    spec: Path | None = None
    metadata: Path | None = None
    mil: Path | None = None

    @property
    def weights(self) -> Path | None:
        """The folder that the weights of a package are in, beside the description."""
        return self.spec.parent / "weights" if self.spec and self.spec.parent != self.root else None


def locate(path: Path) -> Package:
    """The parts of the `.mlpackage` or `.mlmodelc` at `path`; a lone `.mlmodel` is a package's description."""
    if path.suffix == ".mlmodel" and path.is_file():
        return Package(path.parent, path)
    if not path.is_dir():
        raise PackageError(f"{path}: an {path.suffix} is a folder, and this is a file")
    _refuse_links_out(path)
    if path.suffix == ".mlmodelc":
        return _compiled(path)
    manifest = path / "Manifest.json"
    if not manifest.exists():
        held = ", ".join(sorted(item.name for item in path.iterdir())[:6]) or "nothing"
        raise PackageError(f"{path}: no Manifest.json inside (it holds {held}); export or download it again")
    data = read_json(path, manifest)
    entries = data.get("itemInfoEntries") if isinstance(data, dict) else None
    root = data.get("rootModelIdentifier") if isinstance(data, dict) else None
    entry = entries.get(root) if isinstance(entries, dict) and isinstance(root, str) else None
    named = entry.get("path") if isinstance(entry, dict) else None
    if not isinstance(named, str) or not named:
        raise PackageError(f"{manifest}: its root model names no path; export or download the package again")
    spec = inside(path, path / "Data" / _relative(manifest, named), manifest)
    if spec.is_dir():
        raise PackageError(f"{manifest}: the root model {named!r} is a folder; a serialized model was expected")
    return Package(path, spec)


def _compiled(path: Path) -> Package:
    metadata = path / "metadata.json"
    if not metadata.exists():
        held = ", ".join(sorted(item.name for item in path.iterdir())[:6]) or "nothing"
        raise PackageError(f"{path}: no metadata.json inside (it holds {held}); compile or download it again")
    mil = path / "model.mil"
    return Package(
        path,
        metadata=inside(path, metadata, path),
        mil=inside(path, mil, path) if mil.exists() or mil.is_symlink() else None,
    )


def _refuse_links_out(path: Path) -> None:
    """Links of a package have to stay in it, those to weights as well, whoever reads them later."""
    count = 0
    for folder, folders, files in os.walk(path):
        count += len(folders) + len(files)
        if count > ENTRIES:
            raise PackageError(f"{path}: more than {ENTRIES} files; not a sound package")
        for name in (*folders, *files):
            item = Path(folder) / name
            if item.is_symlink():
                inside(path, item, path)


def _relative(manifest: Path, named: str) -> str:
    pure = PurePosixPath(named)
    if pure.is_absolute() or ".." in pure.parts or "\\" in named or "\0" in named:
        raise PackageError(f"{manifest}: the path {named!r} leaves the package; it is not followed")
    return named


def inside(root: Path, path: Path, by: Path) -> Path:
    """`path` resolved; refused when it is not there, no ordinary file, or not inside `root`."""
    try:
        resolved = path.resolve(strict=True)
    except (OSError, RuntimeError):
        if path.is_symlink():
            raise PackageError(f"{path}: a link that leads nowhere") from None
        raise PackageError(f"{by}: names {path.name!r}, which is missing; export or download it again") from None
    if not resolved.is_relative_to(root.resolve()):
        raise PackageError(f"{path}: a link out of the package is not followed; `cp -RL` makes a copy without links")
    return resolved


def read_bytes(root: Path, path: Path, limit: int) -> bytes:
    """The whole file, if it is an ordinary one of at most `limit` bytes."""
    try:
        resolved = inside(root, path, path)
        found = resolved.stat()
        if not stat.S_ISREG(found.st_mode):
            raise PackageError(f"{path}: not an ordinary file")
        if found.st_size > limit:
            raise PackageError(f"{path}: larger than any such file should be ({found.st_size:,} bytes)")
        if found.st_size == 0:
            raise PackageError(f"{path}: 0 bytes; export or download it again")
        with resolved.open("rb") as file:
            return file.read(limit)
    except OSError as error:
        raise PackageError(f"{path}: {error.strerror or error}") from None


def read_json(root: Path, path: Path) -> Any:
    """The JSON in a file; PackageError when it is none."""
    data = read_bytes(root, path, JSON_LIMIT)
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise PackageError(f"{path}: not valid JSON ({error}); export or download it again") from None
