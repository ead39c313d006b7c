"""The source files of a scan: the audited tree and its libraries, found as Python would find them, read but never run."""

from __future__ import annotations

import hashlib
import os
import posixpath
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from auditor.entry_points import console_scripts
from auditor.libraries import Layer, Libraries, open_library
from auditor.trees import FolderTree, Tree, Unreadable, decode, is_file, is_folder

__all__ = ["SourceFile", "Sources", "Unreadable"]

_SKIPPED = frozenset({"node_modules", "__pycache__", "site-packages", "dist-packages"})
_ROOTS = ("", "src", "python/src")
_GENERIC = frozenset({"src", "python", "lib", "site-packages", "dist-packages"})
_NAMESPACE_DEPTH = 3


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One decoded source file.

    `path` is as cited in evidence: relative to the audited root, or `<library>/<path in it>`. `digest` is the SHA-256
    of the bytes. Relative imports resolve against `package` (empty for a top-level script), sibling imports against
    `folder`. A namespace package has no text and a path that ends in `/`.
    """

    path: str
    text: str
    digest: str
    package: str
    folder: str


class Sources:
    """Python files by their displayed path, and by the module name that an importer uses.

    A library may be a source tree, a site-packages folder, a folder of added files, a unified diff over the libraries
    before it, a wheel or a zip file; later ones win, file by file. Nothing outside the root and the libraries is read,
    but for the `pyproject.toml` and `setup.cfg` of a library's two parents. Raises `Unreadable` for a library that is
    missing or is none of these.
    """

    def __init__(self, root: Path, libraries: Sequence[Path] = (), only: Sequence[Path] = ()) -> None:
        self.tree = FolderTree(root)
        self.root = self.tree.root
        self._only = tuple(self._inside(path) for path in only)
        self._library_paths = tuple(Path(os.path.realpath(path)) for path in libraries)
        layers: list[Layer] = []
        for path in self._library_paths:
            name = self._library_name(path, [layer.name for layer in layers])
            layers.append(open_library(path, name, Libraries(layers)))
        self.libraries = Libraries(layers)
        # Longest first: a library may lie inside another.
        self._by_name = sorted(layers, key=lambda layer: -len(layer.name))
        self._files: dict[str, SourceFile] = {}
        self._failed: dict[str, Unreadable] = {}

    def _inside(self, path: Path) -> str:
        full = Path(os.path.abspath(self.root / path))
        for candidate in (full, Path(os.path.realpath(full))):
            if candidate == self.root or self.root in candidate.parents:
                relative = candidate.relative_to(self.root).as_posix()
                return "" if relative == "." else relative
        raise ValueError(f"{path} is not below {self.root}")

    def _library_name(self, path: Path, taken: Sequence[str]) -> str:
        if self.root in path.parents:
            return path.relative_to(self.root).as_posix()
        parts = list(path.parts[1:])
        while len(parts) > 1 and parts[-1] in _GENERIC:
            parts.pop()
        for count in range(1, len(parts) + 1):
            name = "/".join(parts[-count:])
            if name not in taken and not is_file(self.tree, parts[-count]) and not is_folder(self.tree, parts[-count]):
                return name
        return f"library-{len(taken) + 1}:{parts[-1] if parts else 'root'}"

    # Listing

    def python_files(self) -> tuple[str, ...]:
        """Displayed paths of the Python files below the root, sorted; without hidden, installed and vendored folders."""
        chosen = {path for path in self.paths() if path.endswith(".py") and self._wanted(path)}
        chosen.update(path for path in self._only if path and is_file(self.tree, path))
        return tuple(sorted(chosen))

    def _wanted(self, path: str) -> bool:
        return not self._only or any(not only or path == only or path.startswith(only + "/") for only in self._only)

    def paths(self) -> tuple[str, ...]:
        """Displayed paths of all files below the root, in the folders that are audited."""
        return self._walked[0]

    def skipped(self) -> tuple[Unreadable, ...]:
        """What was not entered, and why: links to folders, folders without permission, and parts of libraries."""
        problems = [problem for layer in self.libraries.layers for problem in layer.problems()]
        return (*self._walked[1], *problems)

    @cached_property
    def _walked(self) -> tuple[tuple[str, ...], tuple[Unreadable, ...]]:
        files: list[str] = []
        skipped: list[Unreadable] = []
        # A folder that was named is entered even when it lies in one that is skipped.
        starts = {"", *(only for only in self._only if is_folder(self.tree, only))}
        done: set[str] = set()
        while starts:
            folder = starts.pop()
            if folder in done:
                continue
            done.add(folder)
            listing = self.tree.listing(folder)
            if "pyvenv.cfg" in listing.files and folder not in self._only:
                continue
            files += [posixpath.join(folder, name) for name in listing.files]
            for name, reason in listing.refused.items():
                path = posixpath.join(folder, name).rstrip("/")
                files += [path] if name.endswith(".py") else []
                skipped += [] if name.endswith(".py") else [Unreadable(path, reason)]
            skipped += [Unreadable(posixpath.join(folder, name), "a link to a folder") for name in listing.links]
            starts |= {
                posixpath.join(folder, name)
                for name in listing.folders - listing.links - _SKIPPED
                if not name.startswith(".")
            }
        return tuple(sorted(files)), tuple(sorted(skipped, key=lambda skip: skip.path))

    # Reading

    def _layer(self, path: str) -> tuple[Layer, str] | None:
        """The library that a displayed path lies in, with the import path there."""
        for layer in self._by_name:
            if path.startswith(layer.name + "/"):
                return layer, layer.hidden(path[len(layer.name) + 1 :].rstrip("/"))
        return None

    def exists(self, path: str) -> bool:
        """Whether a displayed path names a file or a folder."""
        path = path.rstrip("/")
        if path in ("", "."):
            return True
        tree: Tree = self.tree
        if found := self._layer(path):
            tree, path = found
        return is_file(tree, path) or is_folder(tree, path)

    def read(self, path: str) -> SourceFile:
        """The file at a displayed path. Raises `Unreadable`, each time for the same reason."""
        if path in self._failed:
            raise self._failed[path]
        if path not in self._files:
            try:
                self._files[path] = self._read(path)
            except Unreadable as error:
                self._failed[path] = error
                raise
        return self._files[path]

    def _read(self, path: str) -> SourceFile:
        folder = path.rpartition("/")[0]
        if found := self._layer(path):
            layer, inner = found
            data = layer.read(inner)
            package = inner.rpartition("/")[0].replace("/", ".")
        else:
            data = self.tree.read(path)
            package = self._package(folder)
        return SourceFile(path, decode(data, path), hashlib.sha256(data).hexdigest(), package, folder)

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

    # Importing

    def module(self, dotted: str, importer: SourceFile | None, search: Sequence[str] = ()) -> SourceFile | None:
        """The file of an absolute module, or None; `search` holds the folders (displayed) that a script put on its path.

        Order: `search`; a library's own modules, for a library file; the importer's folder; the root and its usual
        source folders; the one folder of the tree that holds a package of that name; the libraries; last of all, in
        the same order, folders without `__init__.py`. Raises `Unreadable` when the file is found and cannot be read.
        """
        parts = dotted.split(".")
        if not all(part.isidentifier() for part in parts):
            return None
        inner = "/".join(parts)
        places = tuple(dict.fromkeys(self._places(parts[0], importer, search)))
        for tree, folder in places:
            if path := _module_file(tree, posixpath.join(folder, inner)):
                return self.read(self._shown(tree, path))
        for tree, folder in places:
            path = posixpath.join(folder, inner)
            if is_folder(tree, path) and _has_python(tree, path, _NAMESPACE_DEPTH):
                return self._namespace(tree, path, dotted)
        return None

    def _places(self, top: str, importer: SourceFile | None, search: Sequence[str]) -> Iterator[tuple[Tree, str]]:
        for entry in search:
            folder = posixpath.normpath(entry) if entry else ""
            yield self._folder("" if folder == "." else folder)
        if importer is not None and self._layer(importer.path):
            yield self.libraries, ""
        elif importer is not None:
            if importer.package:
                depth = importer.package.count(".") + 1
                yield self.tree, "/".join(importer.folder.split("/")[:-depth])
            # Inside a package a sibling is imported so only by a script, and never in place of a standard module.
            if not importer.package or top not in sys.stdlib_module_names:
                yield self.tree, importer.folder
        for folder in _ROOTS:
            yield self.tree, folder
        if top not in sys.stdlib_module_names:
            holders = self._packages.get(top, ())
            if len(holders) == 1:
                yield self.tree, holders[0]
        yield self.libraries, ""

    def _folder(self, path: str) -> tuple[Tree, str]:
        """A folder on the module search path; one in a library stands for all layers there."""
        if any(path == layer.name for layer in self._by_name):
            return self.libraries, ""
        if found := self._layer(path):
            return self.libraries, found[1]
        return self.tree, path

    @cached_property
    def _packages(self) -> dict[str, list[str]]:
        """Top-level packages of the tree, with the folders that hold them."""
        inits = [path.rpartition("/")[0] for path in self.paths() if path.endswith("/__init__.py")]
        known = set(inits)
        found: dict[str, list[str]] = {}
        for package in inits:
            folder, _, name = package.rpartition("/")
            if folder not in known:
                found.setdefault(name, []).append(folder)
        return found

    def relative(self, importer: SourceFile, level: int, dotted: str) -> SourceFile | None:
        """The file of `from <level dots><dotted> import ...`, or None. Raises `Unreadable` as `module` does."""
        found = self._layer(importer.path)
        tree: Tree = self.libraries if found else self.tree
        folder = found[1].rpartition("/")[0] if found else importer.folder
        if importer.path.endswith("/"):
            folder = found[1] if found else importer.path.rstrip("/")
        for _ in range(level - 1):
            if not folder:
                return None
            folder = folder.rpartition("/")[0]
        parts = dotted.split(".") if dotted else []
        if level < 1 or not all(part.isidentifier() for part in parts):
            return None
        path = posixpath.join(folder, *parts)
        if file := _module_file(tree, path):
            return self.read(self._shown(tree, file))
        if is_folder(tree, path) and _has_python(tree, path, _NAMESPACE_DEPTH):
            package = importer.package.split(".") if importer.package else []
            return self._namespace(tree, path, ".".join([*package[: len(package) - level + 1], *parts]))
        return None

    def _shown(self, tree: Tree, path: str) -> str:
        if tree is not self.libraries:
            return path
        owner = self.libraries.owner(path)
        return owner.shown(path) if owner else path

    def _namespace(self, tree: Tree, path: str, package: str) -> SourceFile:
        shown = path
        if tree is self.libraries:
            layer = next(layer for layer in reversed(self.libraries.layers) if is_folder(layer, path))
            shown = layer.shown(path)
        return SourceFile(f"{shown}/", "", hashlib.sha256(b"").hexdigest(), package, shown)

    # Console scripts

    def console_script(self, name: str) -> tuple[str, str] | None:
        """The module and the attribute that an installed command starts; later libraries win, then the root's own."""
        return self._console_scripts.get(name)

    @cached_property
    def _console_scripts(self) -> dict[str, tuple[str, str]]:
        scripts = console_scripts(self.tree)
        for path, layer in zip(self._library_paths, self.libraries.layers, strict=True):
            found = console_scripts(layer)
            for parent in path.parents[:2] if path.is_dir() else ():
                # A project further up may be anybody's: its commands count when their module is in a library.
                outer = console_scripts(FolderTree(parent), installed=False)
                found = {k: v for k, v in outer.items() if self._in_library(v[0])} | found
            scripts |= found
        return scripts

    def _in_library(self, dotted: str) -> bool:
        return _module_file(self.libraries, dotted.replace(".", "/")) is not None


def _module_file(tree: Tree, stem: str) -> str | None:
    for path in (f"{stem}/__init__.py", f"{stem}.py"):
        if is_file(tree, path):
            return path
    return None


def _has_python(tree: Tree, folder: str, depth: int) -> bool:
    listing = tree.listing(folder)
    if any(name.endswith(".py") for name in listing.files):
        return True
    return depth > 0 and any(_has_python(tree, f"{folder}/{name}", depth - 1) for name in sorted(listing.folders))
