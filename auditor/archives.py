"""Wheels and zip files as trees: members are read in memory, with bounds; nothing is unpacked."""

from __future__ import annotations

import stat
import zipfile
import zlib
from pathlib import Path

from auditor.trees import EMPTY, LIMIT, Listing, Unreadable, UnusableLibrary, too_large

MEMBERS = 200_000
"""Entries of the largest archive that is indexed."""


def member_path(name: str) -> str | None:
    """The member's path below the archive, or None when it leaves it (absolute, `..`, a drive, a backslash)."""
    parts = name.rstrip("/").split("/")
    if "\\" in name or ":" in parts[0] or any(part in ("", ".", "..") for part in parts):
        return None
    return "/".join(parts)


class ZipTree:
    """The members of a wheel or zip file. Those whose names leave the archive, and links, are not there.

    Raises `UnusableLibrary` when the file is no zip archive.
    """

    def __init__(self, archive: Path, name: str) -> None:
        self.archive = archive
        self.name = name
        self._members: dict[str, zipfile.ZipInfo] = {}
        self._folders: dict[str, tuple[set[str], set[str]]] = {"": (set(), set())}
        self._listings: dict[str, Listing] = {}
        try:
            with zipfile.ZipFile(archive) as opened:
                members = opened.infolist()
        except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise UnusableLibrary(name, f"not a readable zip archive ({error})") from error
        if len(members) > MEMBERS:
            raise UnusableLibrary(name, f"more than {MEMBERS} members")
        for member in members:
            self._add(member)

    def _add(self, member: zipfile.ZipInfo) -> None:
        path = member_path(member.filename)
        if path is None or stat.S_ISLNK(member.external_attr >> 16):
            return
        if not member.is_dir():
            self._members[path] = member
        into = 1 if member.is_dir() else 0
        while path:
            folder, _, name = path.rpartition("/")
            known = folder in self._folders
            self._folders.setdefault(folder, (set(), set()))[into].add(name)
            if known:
                break
            path, into = folder, 1

    def listing(self, folder: str) -> Listing:
        found = self._listings.get(folder)
        if found is None:
            files, folders = self._folders.get(folder, (set(), set()))
            found = Listing(frozenset(files), frozenset(folders)) if files or folders else EMPTY
            self._listings[folder] = found
        return found

    def read(self, path: str) -> bytes:
        member = self._members.get(path)
        if member is None:
            raise Unreadable(path, "no such file")
        try:
            with zipfile.ZipFile(self.archive) as opened, opened.open(member) as stream:
                data = stream.read(LIMIT + 1)
        except (
            OSError,
            RuntimeError,
            ValueError,
            EOFError,
            zipfile.BadZipFile,
            zlib.error,
            NotImplementedError,
        ) as error:
            raise Unreadable(path, f"cannot be read from the archive ({error})") from error
        if len(data) > LIMIT:
            raise Unreadable(path, too_large())
        return data
