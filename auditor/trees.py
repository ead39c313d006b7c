"""Folders of files that may be read: listings on demand, nothing outside the folder, nothing larger than `LIMIT`."""

from __future__ import annotations

import codecs
import errno
import os
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from auditor.seen import Seen

LIMIT = 4 * 1024 * 1024
"""Bytes of the largest file that is read: the largest hand-written module known is a tenth of it."""

IMPORT_ROOTS = ("src", "python/src", "python", "lib")
"""Folders of a checkout that packages are imported from, beside the checkout itself."""

_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_BLANK = re.compile(rb"^[ \t\f]*(?:#.*)?\r?$")


class Unreadable(Exception):
    """A file that exists and cannot be used: `path` as displayed, and the `reason`."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class UnusableLibrary(Unreadable):
    """A library that is missing or cannot be opened: a scan cannot do without what it was given."""


@dataclass(frozen=True, slots=True)
class Listing:
    """One folder. `refused` maps a name to the reason why it is not followed (a link out of the tree, a link loop).

    `links` are the folders among `folders` that are links (to a folder inside the tree).
    """

    files: frozenset[str] = frozenset()
    folders: frozenset[str] = frozenset()
    links: frozenset[str] = frozenset()
    refused: Mapping[str, str] = field(default_factory=dict)


EMPTY = Listing()


def listings(paths: Iterable[str]) -> dict[str, Listing]:
    """The folders that a set of file paths makes."""
    files: dict[str, set[str]] = {}
    folders: dict[str, set[str]] = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        files.setdefault(folder, set()).add(name)
        while folder:
            folder, _, name = folder.rpartition("/")
            folders.setdefault(folder, set()).add(name)
    return {
        folder: Listing(frozenset(files.get(folder, ())), frozenset(folders.get(folder, ())))
        for folder in files.keys() | folders.keys()
    }


def merge(parts: Sequence[Listing]) -> Listing:
    if not parts:
        return EMPTY
    return Listing(
        frozenset().union(*(part.files for part in parts)),
        frozenset().union(*(part.folders for part in parts)),
        frozenset().union(*(part.links for part in parts)),
        {name: reason for part in parts for name, reason in part.refused.items()},
    )


class Tree(Protocol):
    """Files by a path relative to the tree, with `/`; the empty path is the tree itself."""

    def listing(self, folder: str) -> Listing: ...

    def read(self, path: str) -> bytes:
        """The bytes of a file; raises `Unreadable` with `path` as given."""
        ...


def normal(folder: str) -> str:
    """A folder's path in normal form; that of the tree itself is empty."""
    folder = posixpath.normpath(folder)
    return "" if folder == "." else folder


def is_file(tree: Tree, path: str) -> bool:
    """Whether `path` names a file, a refused one (whose reading says why) included."""
    folder, _, name = path.rpartition("/")
    listing = tree.listing(folder)
    return name in listing.files or name in listing.refused


def is_folder(tree: Tree, path: str) -> bool:
    if not path:
        return True
    folder, _, name = path.rpartition("/")
    return name in tree.listing(folder).folders


class FolderTree:
    """A folder on disk. Links are followed as long as they stay inside it. `seen` is told what is listed and read."""

    def __init__(self, root: Path, seen: Seen | None = None) -> None:
        self.root = Path(os.path.realpath(root))
        self._seen = Seen() if seen is None else seen
        self._listings: dict[str, Listing] = {"": self._scan("")}

    def listing(self, folder: str) -> Listing:
        found = self._listings.get(folder)
        return self._descend(folder) if found is None else found

    def _descend(self, folder: str) -> Listing:
        """Lists each folder on the way: only a name that its parent lists is entered, so never `..` or a link out."""
        path, found = "", self._listings[""]
        for name in folder.split("/"):
            if name not in found.folders:
                return EMPTY
            path = f"{path}/{name}" if path else name
            if path not in self._listings:
                self._listings[path] = self._scan(path)
            found = self._listings[path]
        return found

    def _scan(self, folder: str) -> Listing:
        found = self._list(folder)
        self._seen.folder(str(self.root), folder, (found.files, found.folders, found.links), found.refused)
        return found

    def _list(self, folder: str) -> Listing:
        files: list[str] = []
        folders: list[str] = []
        links: list[str] = []
        refused: dict[str, str] = {}
        try:
            with os.scandir(self.root / folder) as entries:
                for entry in entries:
                    if entry.is_symlink() and (reason := self._refuses(entry.path)):
                        refused[entry.name] = reason
                    elif entry.is_dir():
                        folders.append(entry.name)
                        if entry.is_symlink():
                            links.append(entry.name)
                    elif entry.is_file():
                        files.append(entry.name)
                    else:
                        refused[entry.name] = "not a regular file"
        except OSError as error:
            return Listing(refused={"": _reason(error)})
        return Listing(frozenset(files), frozenset(folders), frozenset(links), refused)

    def _refuses(self, link: str) -> str:
        try:
            target = os.path.realpath(link, strict=True)
        except OSError as error:
            return _reason(error)
        inside = Path(target) == self.root or self.root in Path(target).parents
        return "" if inside else "a link that leaves the tree"

    def read(self, path: str) -> bytes:
        folder, _, name = path.rpartition("/")
        listing = self.listing(folder)
        if name in listing.refused:
            raise Unreadable(path, listing.refused[name])
        if name not in listing.files:
            raise Unreadable(path, "no such file")
        try:
            with Path(self.root, folder, name).open("rb") as stream:
                data = stream.read(LIMIT + 1)
        except OSError as error:
            self._seen.unreadable(str(self.root), path, _reason(error))
            raise Unreadable(path, _reason(error)) from error
        if len(data) > LIMIT:
            self._seen.unreadable(str(self.root), path, too_large())
            raise Unreadable(path, too_large())
        self._seen.file(str(self.root), path, data)
        return data


def too_large() -> str:
    return f"larger than {LIMIT // 2**20} MiB"


def _reason(error: OSError) -> str:
    if error.errno == errno.ELOOP:
        return "a link loop"
    if error.errno == errno.ENOENT:
        return "a link to nothing"
    return (error.strerror or str(error)).lower()


def decode(data: bytes, path: str) -> str:
    """Python source as text: a byte-order mark, else the PEP 263 comment in the first two lines, else UTF-8.

    Raises `Unreadable`; a null byte is refused, as Python's own compiler does.
    """
    if b"\0" in data:
        raise Unreadable(path, "null bytes: not a text file")
    marked = data.startswith(codecs.BOM_UTF8)
    name = _cookie(data.removeprefix(codecs.BOM_UTF8))
    if not name:
        name = "utf-8"
    try:
        canonical = codecs.lookup(name).name
        if marked and canonical != "utf-8":
            raise Unreadable(path, f"a UTF-8 byte-order mark and a coding comment that says {name}")
        return data.removeprefix(codecs.BOM_UTF8).decode(canonical)
    except LookupError as error:
        raise Unreadable(path, f"unknown encoding {name}") from error
    except UnicodeError as error:
        at = getattr(error, "start", 0)
        line = data.count(b"\n", 0, at) + 1
        raise Unreadable(path, f"not {name.upper()} (line {line})") from error


def _cookie(data: bytes) -> str:
    for line in data[:1000].split(b"\n", 2)[:2]:
        if match := _COOKIE.match(line):
            return match[1].decode("ascii", "replace")
        if not _BLANK.match(line):
            break
    return ""
