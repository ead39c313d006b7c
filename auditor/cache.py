"""Results of earlier scans, in the user's cache folder.

An entry is found by what was asked (and by the tool itself), and holds for as long as every folder that the scan listed
and every file that it read are as they were, by content. It is JSON: nothing in it is ever executed. Whatever goes
wrong with the cache only means that the scan is made.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

from auditor.request import ScanRequest
from auditor.scan_codec import decode, encode
from auditor.seen import Seen
from auditor.trees import FolderTree, Unreadable
from rules.facts import Scan
from rules.version import NAME, VERSION

LARGEST = 32 * 1024 * 1024
"""Bytes of the largest entry; the largest known repository with its libraries takes a twentieth."""
ENTRIES = 64
TOTAL = 128 * 1024 * 1024
"""At most so many entries, and bytes in all; those that were not used for longest go first."""
_ABANDONED = 3600.0
_SUFFIX, _PARTIAL = ".scan", ".partial"


def cached(request: ScanRequest) -> Scan:
    """The scan that was asked for, from the cache if it holds it; else it is made, and kept.

    Raises as `auditor.scan.scan` does.
    """
    entry = _entry(request) if request.cache else None
    if entry is not None:
        found = read(entry)
        if found is not None:
            return replace(found, root=str(request.root))
    from auditor.scan import scan

    seen = Seen()
    made = scan(replace(request, seen=seen))
    if entry is not None and seen and seen.steady:
        write(entry, made, seen)
    return made


def folder() -> Path | None:
    """The folder of all entries; None when the user has no place for caches."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    if Path(given).is_absolute():
        return Path(given) / NAME
    try:
        home = Path.home()
    except RuntimeError:
        return None
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / NAME
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / NAME / "Cache"
    return home / ".cache" / NAME


def _entry(request: ScanRequest) -> Path | None:
    """Where the result of a request is kept; None when it must not be: a cache inside of what is audited.

    Such a folder is part of a tree that is not trusted, and writing to it would change that tree.
    """
    where = folder()
    if where is None:
        return None
    real = Path(os.path.realpath(where))
    audited = [request.root, *request.libraries, *([request.checkpoints] if request.checkpoints else [])]
    if any(real.is_relative_to(os.path.realpath(path)) for path in audited):
        return None
    try:
        return real / f"{_address(request)}{_SUFFIX}"
    except (OSError, importlib.metadata.PackageNotFoundError):
        return None


def _address(request: ScanRequest) -> str:
    """A digest of the request and of the tool."""
    recipes = request.recipes
    asked = [
        VERSION,
        tool(),
        os.path.realpath(request.root),
        [] if request.paths == (request.root,) else [[*_both(path)] for path in request.paths],
        [os.path.realpath(path) for path in request.libraries],
        [recipes.glob, recipes.script_root, sorted(recipes.keys.items())],
        [*_both(request.checkpoints)] if request.checkpoints else None,
    ]
    return hashlib.sha256(json.dumps(asked).encode()).hexdigest()


def _both(path: Path) -> tuple[str, str]:
    return os.path.abspath(path), os.path.realpath(path)


def tool() -> str:
    """A digest of everything that turns sources into facts: this program, its tables, its parser, and Python."""
    digest = hashlib.sha256(f"{sys.version}\0{importlib.metadata.version('libcst')}\0".encode())
    top = Path(__file__).parent.parent
    for package in ("auditor", "rules"):
        for path in sorted([*(top / package).rglob("*.py"), *(top / package).rglob("*.toml")]):
            digest.update(f"{path.relative_to(top).as_posix()}\0".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def read(entry: Path) -> Scan | None:
    """The scan of an entry; None when there is none, when it is damaged, or when something has changed since."""
    try:
        with entry.open("rb") as stream:
            data = stream.read(LARGEST + 1)
        digest, _, body = data.partition(b"\n")
        if len(data) > LARGEST or digest.decode("ascii") != _sealed(entry, body):
            return None
        document = json.loads(body)
        seen = Seen.of(document["seen"])
        if not seen or not _unchanged(seen):
            return None
        found = decode(document["scan"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    with contextlib.suppress(OSError):
        os.utime(entry)
    return found


def write(entry: Path, scan: Scan, seen: Seen) -> None:
    """Keep a scan: the entry appears whole or not at all, whoever else writes it."""
    document = {"seen": seen.plain(), "scan": encode(scan)}
    body = json.dumps(document, separators=(",", ":")).encode()
    data = _sealed(entry, body).encode() + b"\n" + body
    if len(data) > LARGEST:
        return
    partial = entry.with_name(f"{entry.name}.{os.urandom(8).hex()}{_PARTIAL}")
    try:
        entry.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            with partial.open("xb") as stream:
                stream.write(data)
            partial.replace(entry)
        finally:
            partial.unlink(missing_ok=True)
    except OSError:
        return
    _shrink(entry.parent)


def _sealed(entry: Path, body: bytes) -> str:
    """What the first line of an entry has to be: a digest of its name and the rest."""
    return hashlib.sha256(entry.name.encode() + b"\0" + body).hexdigest()


def _shrink(where: Path) -> None:
    """Remove the entries that go over the bounds, and what writers that were killed have left."""
    kept: list[tuple[float, int, Path]] = []
    try:
        for path in where.iterdir():
            with contextlib.suppress(FileNotFoundError):
                status = path.stat()
                if path.suffix == _SUFFIX:
                    kept.append((status.st_mtime, status.st_size, path))
                elif path.suffix == _PARTIAL and time.time() - status.st_mtime > _ABANDONED:
                    path.unlink()
        total = 0
        for number, (_, size, path) in enumerate(sorted(kept, reverse=True)):
            total += size
            if number >= ENTRIES or total > TOTAL:
                path.unlink(missing_ok=True)
    except OSError:
        return


def _unchanged(seen: Seen) -> bool:
    """Whether a scan would see the same again: all of it is looked at once more, with the same eyes."""
    now = Seen()
    for root, folders in seen.folders.items():
        tree = FolderTree(Path(root), now)
        for path in folders:
            tree.listing(path)
        if now.folders.get(root) != folders:
            return False
        for path in seen.files.get(root, ()):
            with contextlib.suppress(Unreadable):
                tree.read(path)
    for path in seen.wholes:
        now.whole(Path(path))
    return now == seen
