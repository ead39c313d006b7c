"""Libraries laid over each other, file by file: source trees, archives, folders of added files, and unified diffs.

All layers share one coordinate, the *import path* (`package/module.py`): a checkout counts from its import roots, and
a diff from wherever its names start to exist in the layers below it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Protocol

from auditor.archives import ZipTree
from auditor.overlays import PatchLayer
from auditor.seen import Seen
from auditor.trees import (
    EMPTY,
    IMPORT_ROOTS,
    FolderTree,
    Listing,
    Tree,
    Unreadable,
    UnusableLibrary,
    is_file,
    is_folder,
    merge,
)


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


def open_library(path: Path, name: str, below: Libraries, seen: Seen | None = None) -> Layer:
    """One library by what it is: a folder, a `.patch` or `.diff`, a wheel or a zip file.

    Raises `UnusableLibrary` when it is missing or none of these.
    """
    seen = Seen() if seen is None else seen
    if path.is_dir():
        return TreeLayer(FolderTree(path, seen), name)
    if not path.is_file():
        raise UnusableLibrary(name, "no such file or folder: give --library an existing path")
    seen.whole(path)
    if path.suffix in (".whl", ".zip"):
        return TreeLayer(ZipTree(path, name), name)
    if path.suffix in (".patch", ".diff"):
        try:
            return PatchLayer(below, name, path.read_bytes())
        except OSError as error:
            raise UnusableLibrary(name, (error.strerror or str(error)).lower()) from error
    raise UnusableLibrary(name, "not a library: give a folder, a .patch or .diff, a .whl or a .zip")
