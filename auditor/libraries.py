"""Libraries laid over each other, file by file: source trees, archives, folders of added files, and unified diffs.

All layers share one coordinate, the *import path* (`package/module.py`): a checkout counts from its import roots, and
a diff from wherever its names start to exist in the layers below it.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Protocol

from auditor import patches
from auditor.archives import ZipTree, member_path
from auditor.trees import EMPTY, FolderTree, Listing, Tree, Unreadable, is_file, is_folder

IMPORT_ROOTS = ("src", "python/src", "python", "lib")
"""Folders of a checkout that packages are imported from, beside the checkout itself."""


class Layer(Protocol):
    name: str

    def listing(self, folder: str) -> Listing: ...

    def removes(self, path: str) -> bool:
        """Whether this layer takes away the file that the layers below have at this import path."""
        ...

    def read(self, path: str) -> bytes: ...

    def problems(self) -> Sequence[Unreadable]:
        """What of the library itself could not be used."""
        ...

    def shown(self, path: str) -> str:
        """The path as displayed, from an import path."""
        ...

    def hidden(self, shown: str) -> str:
        """The import path, from a displayed path without the layer's name."""
        ...


class TreeLayer:
    """A source tree, site-packages, a folder of added files, or an archive."""

    def __init__(self, tree: Tree, name: str) -> None:
        self.tree = tree
        self.name = name
        self._places: dict[str, str | None] = {}

    @cached_property
    def bases(self) -> tuple[str, ...]:
        """The import roots, deepest first: a file below one of them is never reached through another."""
        top = _only_folder(self.tree)
        found = [posixpath.join(top, base) for base in IMPORT_ROOTS]
        if top:
            found.append(top)
        # A package named `src` or `lib` is a package, not an import root.
        roots = [b for b in found if is_folder(self.tree, b) and not is_file(self.tree, f"{b}/__init__.py")]
        return (*sorted(roots, key=lambda base: -base.count("/")), "")

    def place(self, path: str) -> str | None:
        """Where in the tree the file or folder of an import path is."""
        if path not in self._places:
            self._places[path] = self._place(path)
        return self._places[path]

    def _place(self, path: str) -> str | None:
        for base in self.bases:
            place = posixpath.join(base, path)
            if self.hidden(place) == path and (is_file(self.tree, place) or is_folder(self.tree, place)):
                return place
        return None

    def listing(self, folder: str) -> Listing:
        places = [posixpath.join(base, folder) if folder else base for base in self.bases]
        parts = [self.tree.listing(place) for place in places if not folder or self.hidden(place) == folder]
        parts = [part for part in parts if part is not EMPTY]
        return parts[0] if len(parts) == 1 else merge(parts)

    def removes(self, path: str) -> bool:
        return False

    def problems(self) -> Sequence[Unreadable]:
        return ()

    def read(self, path: str) -> bytes:
        place = self.place(path)
        try:
            return self.tree.read(path if place is None else place)
        except Unreadable as error:
            raise Unreadable(f"{self.name}/{error.path}", error.reason) from error

    def shown(self, path: str) -> str:
        place = self.place(path)
        return f"{self.name}/{path if place is None else place}"

    def hidden(self, shown: str) -> str:
        base = next(base for base in self.bases if not base or shown.startswith(base + "/"))
        return shown[len(base) + 1 :] if base else shown


def _only_folder(tree: Tree) -> str:
    """The single folder that source archives wrap everything in, or nothing."""
    top = tree.listing("")
    if isinstance(tree, ZipTree) and not top.files and len(top.folders) == 1:
        (folder,) = top.folders
        if not is_file(tree, f"{folder}/__init__.py"):
            return folder
    return ""


@dataclass(frozen=True, slots=True)
class _Edit:
    """What a diff does at one import path: `source` is the path it starts from (None: a new file)."""

    patch: patches.FilePatch
    source: str | None


class PatchLayer:
    """A unified diff over the layers `below` it. Parsed when first asked; a file is patched when it is read."""

    def __init__(self, below: Libraries, name: str, data: bytes) -> None:
        self.below = below
        self.name = name
        self._data = data

    @cached_property
    def files(self) -> tuple[patches.FilePatch, ...]:
        return patches.parse(self._data)

    def problems(self) -> Sequence[Unreadable]:
        if not self.files:
            return (Unreadable(self.name, "no unified diff in it"),)
        return [Unreadable(self.name, f"leaves the tree: {patch.name}") for patch in self.files if not _safe(patch)]

    @cached_property
    def _plan(self) -> tuple[dict[str, _Edit], frozenset[str]]:
        safe = [patch for patch in self.files if _safe(patch)]
        votes: Counter[tuple[int, tuple[str, ...]]] = Counter()
        for patch in safe:
            votes.update(_drops(patch.old, self.below))
        edits: dict[str, _Edit] = {}
        gone: list[str] = []
        for patch in safe:
            drop = _best(patch, votes)
            if drop is None:
                continue
            source = "/".join(patch.old.split("/")[drop:]) if patch.old else None
            if patch.new:
                edits["/".join(patch.new.split("/")[drop:])] = _Edit(patch, source)
            if source and not patch.copies and source not in edits:
                gone.append(source)
        return edits, frozenset(path for path in gone if path not in edits)

    @cached_property
    def _listings(self) -> dict[str, Listing]:
        return listings(self._plan[0])

    def listing(self, folder: str) -> Listing:
        return self._listings.get(folder, EMPTY)

    def removes(self, path: str) -> bool:
        return path in self._plan[1]

    def read(self, path: str) -> bytes:
        edit = self._plan[0].get(path)
        if edit is None:
            raise Unreadable(self.shown(path), "no such file")
        if edit.patch.binary:
            raise Unreadable(self.shown(path), f"{self.name} changes it as a binary file, which is not applied")
        if edit.patch.error:
            raise Unreadable(self.shown(path), f"{self.name}: {edit.patch.error}")
        before = b""
        if edit.source is not None:
            if not self.below.has_file(edit.source):
                raise Unreadable(self.shown(path), f"{self.name} changes it, and no --library before it holds it")
            before = self.below.read(edit.source)
        elif self.below.has_file(path) and self.below.read(path):
            raise Unreadable(self.shown(path), f"{self.name} adds it, and a --library before it holds it already")
        try:
            return patches.apply(edit.patch.hunks, before)
        except patches.PatchError as error:
            raise Unreadable(self.shown(path), f"{self.name}: {error}") from error

    def shown(self, path: str) -> str:
        return f"{self.name}/{path}"

    def hidden(self, shown: str) -> str:
        return shown


def _safe(patch: patches.FilePatch) -> bool:
    """Whether its names stay in the tree, whatever is dropped in front."""
    return all(member_path(name) is not None for name in (patch.old, patch.new) if name is not None)


def _drops(name: str | None, below: Libraries) -> list[tuple[int, tuple[str, ...]]]:
    """How many leading components may go, with what they are but for the first (`a/` and `b/` differ in name)."""
    parts = name.split("/") if name else []
    return [(n, tuple(parts[1:n])) for n in range(len(parts)) if below.has_file("/".join(parts[n:]))]


def _best(patch: patches.FilePatch, votes: Counter[tuple[int, tuple[str, ...]]]) -> int | None:
    """Components to drop: as most modified files do. A name that starts otherwise lies outside the libraries."""
    parts = patch.name.split("/")
    fitting = [
        (count, -drop) for (drop, lead), count in votes.items() if tuple(parts[1:drop]) == lead and drop < len(parts)
    ]
    if fitting:
        return -max(fitting)[1]
    if votes:
        return None
    # Nothing is there to go by: a diff of new files only. Drop `a/` and what leads to an import root.
    rest = "/".join(parts[1:]) if parts[0] in ("a", "b") and len(parts) > 1 else patch.name
    for base in sorted(IMPORT_ROOTS, key=len, reverse=True):
        rest = rest.removeprefix(base + "/")
    return len(parts) - len(rest.split("/"))


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


class Libraries:
    """Layers, later ones over earlier ones. It is itself a tree whose paths are import paths."""

    def __init__(self, layers: Sequence[Layer] = ()) -> None:
        self.layers = tuple(layers)
        self._owners: dict[str, Layer | None] = {}
        self._listings: dict[str, Listing] = {}

    def owner(self, path: str) -> Layer | None:
        """The layer that gives the file at an import path."""
        if path not in self._owners:
            self._owners[path] = self._owner(path)
        return self._owners[path]

    def _owner(self, path: str) -> Layer | None:
        for layer in reversed(self.layers):
            if is_file(layer, path):
                return layer
            if layer.removes(path):
                return None
        return None

    def has_file(self, path: str) -> bool:
        return self.owner(path) is not None

    def has_folder(self, path: str) -> bool:
        return any(is_folder(layer, path) for layer in self.layers)

    def listing(self, folder: str) -> Listing:
        found = self._listings.get(folder)
        if found is None:
            found = EMPTY
            for layer in self.layers:
                kept = (name for name in found.files if not layer.removes(posixpath.join(folder, name)))
                found = merge([replace(found, files=frozenset(kept)), layer.listing(folder)])
            self._listings[folder] = found
        return found

    def read(self, path: str) -> bytes:
        owner = self.owner(path)
        if owner is None:
            raise Unreadable(path, "no such file")
        return owner.read(path)


def open_library(path: Path, name: str, below: Libraries) -> Layer:
    """One library by what it is: a folder, a `.patch` or `.diff`, a wheel or a zip file.

    Raises `Unreadable` when it is missing or none of these.
    """
    if path.is_dir():
        return TreeLayer(FolderTree(path), name)
    if not path.is_file():
        raise Unreadable(name, "no such file or folder: give --library an existing path")
    if path.suffix in (".whl", ".zip"):
        return TreeLayer(ZipTree(path, name), name)
    if path.suffix in (".patch", ".diff"):
        return PatchLayer(below, name, path.read_bytes())
    raise Unreadable(name, "not a library: give a folder, a .patch or .diff, a .whl or a .zip")
