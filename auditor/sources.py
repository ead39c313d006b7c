"""The source files of a scan: the audited tree and its libraries, found as Python would find them and never run."""

from __future__ import annotations

import hashlib
import os
import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from auditor import notebooks
from auditor.entry_points import console_scripts
from auditor.imports import Finder, Found, Place, module_file
from auditor.libraries import Layer, Libraries, open_library
from auditor.seen import Seen
from auditor.trees import FolderTree, Unreadable, decode, is_file, is_folder, normal

__all__ = ["SourceFile", "Sources", "Unreadable"]

_SKIPPED = frozenset({"node_modules", "__pycache__", "site-packages", "dist-packages"})
_GENERIC = frozenset({"src", "python", "lib"})
_NO_TEXT = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One decoded source file.

    `path` is as cited in evidence: relative to the audited root, or `<library>/<path in it>`. `digest` is the SHA-256
    of the bytes. Relative imports resolve against `package` (empty for a top-level script), sibling imports against
    `folder`. A namespace package has no text and a path that ends in `/`; a module that an import finds and that
    cannot be read has none either, and `refused` says why.
    """

    path: str
    text: str
    digest: str
    package: str
    folder: str
    refused: str = ""

    @property
    def name(self) -> str:
        """The name that Python gives the module."""
        stem = posixpath.basename(self.path).removesuffix(".py")
        return self.package if stem in ("", "__init__") else f"{self.package}.{stem}".strip(".")


class Sources:
    """Python files by their displayed path, and by the module name that an importer uses.

    A library may be a source tree, a site-packages folder, a folder of added files, a unified diff over the libraries
    before it, a wheel or a zip file; later ones win, file by file. Nothing outside the root and the libraries is read,
    but for the `pyproject.toml` and `setup.cfg` of a library's two parents. Raises `UnusableLibrary` for one that is
    missing or is none of these, `ValueError` for an `only` that is not below the root. `seen` is told of all of it.
    """

    def __init__(
        self, root: Path, libraries: Sequence[Path] = (), only: Sequence[Path] = (), seen: Seen | None = None
    ) -> None:
        self._seen = Seen() if seen is None else seen
        self.tree = FolderTree(root, self._seen)
        self.root = self.tree.root
        self._only = tuple(self._inside(path) for path in only)
        self._library_paths = tuple(Path(os.path.realpath(path)) for path in libraries)
        layers: list[Layer] = []
        for path in self._library_paths:
            name = self._library_name(path, [layer.name for layer in layers])
            layers.append(open_library(path, name, Libraries(layers), self._seen))
        self.libraries = Libraries(layers)
        # Longest first: a library may lie inside another.
        self._by_name = sorted(layers, key=lambda layer: -len(layer.name))
        self._finder = Finder(self.tree, self.libraries, self._inits)
        self._files: dict[str, SourceFile | Unreadable] = {}

    def _inside(self, path: Path) -> str:
        full = Path(os.path.abspath(self.root / path))
        for candidate in (full, Path(os.path.realpath(full))):
            if candidate.is_relative_to(self.root):
                return normal(candidate.relative_to(self.root).as_posix())
        raise ValueError(f"{path} is not below {self.root}")

    def _library_name(self, path: Path, taken: Sequence[str]) -> str:
        """The path below the root, else as few of its last parts as tell it from other libraries and from the root."""
        if self.root in path.parents and (inside := path.relative_to(self.root).as_posix()) not in taken:
            return inside
        parts = list(path.parts[1:])
        while len(parts) > 1 and parts[-1] in _GENERIC:
            parts.pop()
        for start in range(len(parts) - 1, -1, -1):
            name = "/".join(parts[start:])
            if name not in taken and not is_file(self.tree, parts[start]) and not is_folder(self.tree, parts[start]):
                return name
        return f"library-{len(taken) + 1}:{parts[-1] if parts else ''}"

    def python_files(self) -> tuple[str, ...]:
        """Displayed paths of Python files and notebooks below the root, sorted; without hidden and installed folders.

        With `only`, those in the folders named, and each file named.
        """
        named = {path for path in self._only if path and is_file(self.tree, path)}
        found = (path for path in self.paths() if path.endswith((".py", notebooks.SUFFIX)) and self.asked(path))
        return tuple(sorted(named.union(found)))

    def asked(self, path: str) -> bool:
        """Whether a file is among those that are to be audited."""
        return not self._only or any(not only or path == only or path.startswith(only + "/") for only in self._only)

    def paths(self) -> tuple[str, ...]:
        """Displayed paths of all files below the root, sorted, in the folders that are audited."""
        return self._walked[0]

    def skipped(self) -> tuple[Unreadable, ...]:
        """What was not entered, and why: links to folders, folders without permission, and parts of libraries."""
        problems = [problem for layer in self.libraries.layers for problem in layer.problems()]
        return (*self._walked[1], *problems)

    @cached_property
    def _walked(self) -> tuple[tuple[str, ...], tuple[Unreadable, ...]]:
        files: set[str] = set()
        skipped: list[Unreadable] = []
        # A folder that was named is entered even when it is, or lies in, one that is skipped; so is the root, which
        # may be an environment as well (a `pyvenv.cfg` that was committed).
        waiting = ["", *(only for only in self._only if only and is_folder(self.tree, only))]
        done: set[str] = set()
        while waiting:
            folder = waiting.pop()
            listing = self.tree.listing(folder)
            environment = folder and folder not in self._only and "pyvenv.cfg" in listing.files
            if folder in done or environment:
                continue
            done.add(folder)
            # A refused Python file is listed: reading it says why.
            refused = {name for name in listing.refused if name.endswith(".py")}
            files.update(posixpath.join(folder, name) for name in listing.files | refused)
            reasons = {**listing.refused, **dict.fromkeys(listing.links, "a link to a folder, which is not followed")}
            for name in reasons.keys() - refused:
                skipped.append(Unreadable(posixpath.join(folder, name).rstrip("/"), reasons[name]))
            inner = listing.folders - listing.links - _SKIPPED
            waiting += [posixpath.join(folder, name) for name in inner if not name.startswith(".")]
        return tuple(sorted(files)), tuple(sorted(skipped, key=lambda skip: skip.path))

    def _inits(self) -> Sequence[str]:
        return [path for path in self.paths() if path.endswith("/__init__.py")]

    def _layer(self, path: str) -> tuple[Layer, str] | None:
        """The library that a displayed path lies in, with the import path there."""
        for layer in self._by_name:
            if path.startswith(layer.name + "/"):
                return layer, layer.hidden(path[len(layer.name) + 1 :].rstrip("/"))
        return None

    def exists(self, path: str) -> bool:
        """Whether a displayed path names a file or a folder."""
        tree, path = self._layer(path) or (self.tree, path.rstrip("/"))
        return path == "." or is_file(tree, path) or is_folder(tree, path)

    def read(self, path: str) -> SourceFile:
        """The file at a displayed path. Raises `Unreadable`, each time for the same reason."""
        if path not in self._files:
            try:
                self._files[path] = self._read(path)
            except Unreadable as error:
                self._files[path] = error
        found = self._files[path]
        if isinstance(found, Unreadable):
            raise found
        return found

    def _read(self, path: str) -> SourceFile:
        folder = path.rpartition("/")[0]
        if located := self._layer(path):
            layer, inner = located
            data = layer.read(inner)
            package = inner.rpartition("/")[0].replace("/", ".")
        else:
            data = self.tree.read(path)
            package = self._package(folder)
        text = decode(data, path)
        if path.endswith(notebooks.SUFFIX):
            text = notebooks.code_of(text, path)
        return SourceFile(path, text, hashlib.sha256(data).hexdigest(), package, folder)

    def _package(self, folder: str) -> str:
        """The dotted name of a folder, counted from the topmost `__init__.py` above it."""
        parts: list[str] = []
        while folder and is_file(self.tree, f"{folder}/__init__.py"):
            folder, _, name = folder.rpartition("/")
            parts.append(name)
        return ".".join(reversed(parts))

    def data_file(self, path: str) -> bytes | None:
        """The bytes of a recipe or configuration below the root; None when there is none. Raises `Unreadable`."""
        return self.tree.read(path) if is_file(self.tree, path) else None

    def module(self, dotted: str, importer: SourceFile | None, search: Sequence[str] = ()) -> SourceFile | None:
        """The file of an absolute module, or None; `search` holds folders (displayed) that a script put on its path.

        Order: `search`; the libraries, for a file of one; the importer's package root and folder; the root and its
        usual source folders; the one folder of the tree that holds a package of that name; the libraries; last of all,
        in the same order, folders without `__init__.py`.
        """
        place = None if importer is None else self._place(importer.folder)
        package = "" if importer is None else importer.package
        found = self._finder.absolute(dotted, place, package, [self._place(folder) for folder in search])
        return None if found is None else self._source(found, dotted)

    def program(self, dotted: str, search: Sequence[str] = ()) -> SourceFile | None:
        """The file that `python -m dotted` runs: `__main__` of a package."""
        for name in (f"{dotted}.__main__", dotted):
            found = self.module(name, None, search)
            if found is not None and not found.path.endswith("/"):
                return found
        return None

    def relative(self, importer: SourceFile, level: int, dotted: str) -> SourceFile | None:
        """The file of `from <level dots><dotted> import ...`, or None."""
        found = self._finder.relative(self._place(importer.folder), level, dotted)
        if found is None:
            return None
        package = importer.package.split(".")
        return self._source(found, ".".join([*package[: len(package) - level + 1], dotted]).strip("."))

    def elsewhere(self, dotted: str) -> tuple[str, ...]:
        """Displayed paths of library files that have the last name of a module that was not found."""
        return tuple(self._shown(self.libraries.owner(path), path) for path in self._finder.elsewhere(dotted))

    def audited(self, path: str) -> bool:
        """Whether a displayed path is a file of the audited tree, and not of a library."""
        return self._layer(path) is None

    def siblings(self, path: str) -> tuple[str, ...]:
        """Displayed paths of the Python files in the folder of a displayed file (of all libraries for one of them)."""
        tree, folder = self._place(posixpath.dirname(path))
        names = sorted(name for name in tree.listing(folder).files if name.endswith(".py"))
        inner = [posixpath.join(folder, name) for name in names]
        return tuple(self._shown(self.libraries.owner(i), i) if tree is self.libraries else i for i in inner)

    def _place(self, folder: str) -> Place:
        """A displayed folder; one in a library stands for that folder in all of them."""
        folder = normal(folder)
        if any(folder == layer.name for layer in self._by_name):
            return self.libraries, ""
        located = self._layer(folder)
        return (self.libraries, located[1]) if located else (self.tree, folder)

    def _source(self, found: Found, dotted: str) -> SourceFile:
        layer: Layer | None = None
        if found.tree is self.libraries:
            layers = (layer for layer in reversed(self.libraries.layers) if is_folder(layer, found.path))
            layer = next(layers, None) if found.namespace else self.libraries.owner(found.path)
        shown = self._shown(layer, found.path)
        if found.namespace:
            return SourceFile(f"{shown}/", "", _NO_TEXT, dotted, shown)
        try:
            return self.read(shown)
        except Unreadable as error:
            return SourceFile(shown, "", _NO_TEXT, dotted, posixpath.dirname(shown), error.reason)

    @staticmethod
    def _shown(layer: Layer | None, path: str) -> str:
        return path if layer is None else layer.shown(path)

    def console_script(self, name: str) -> tuple[str, str] | None:
        """The module and the attribute that an installed command starts; later libraries win, the root comes last."""
        return self._console_scripts.get(name)

    @cached_property
    def _console_scripts(self) -> dict[str, tuple[str, str]]:
        scripts = console_scripts(self.tree)
        for path, layer in zip(self._library_paths, self.libraries.layers, strict=True):
            for parent in reversed(path.parents[:2] if path.is_dir() else ()):
                # A project further up may be anybody's: its commands count when their module is in a library.
                outer = console_scripts(FolderTree(parent, self._seen), installed=False)
                scripts |= {name: target for name, target in outer.items() if self._in_library(target[0])}
            scripts |= console_scripts(layer)
        return scripts

    def _in_library(self, dotted: str) -> bool:
        return module_file(self.libraries, dotted.replace(".", "/")) is not None
