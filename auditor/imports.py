"""Where a module is: the search that Python would make, over the audited tree and its libraries, by names alone."""

from __future__ import annotations

import posixpath
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from auditor.libraries import Libraries
from auditor.package_folders import package_folders
from auditor.trees import FolderTree, Tree, is_file, is_folder

_ROOTS = ("", "src", "python/src")
_NAMESPACE_DEPTH = 3

Place = tuple[Tree, str]
"""A folder of a tree (of all libraries together, for a library)."""


@dataclass(frozen=True, slots=True)
class Found:
    """A module's file, or the folder of a namespace package."""

    tree: Tree
    path: str
    namespace: bool = False


class Finder:
    """Finds modules for an importer. `inits` lists the `__init__.py` files of the audited tree, and is called once."""

    def __init__(self, tree: FolderTree, libraries: Libraries, inits: Callable[[], Sequence[str]]) -> None:
        self.tree = tree
        self.libraries = libraries
        self._inits = inits

    def absolute(self, dotted: str, importer: Place | None, package: str, search: Sequence[Place]) -> Found | None:
        """`import dotted` in a file in the folder `importer`, whose package is `package`."""
        parts = dotted.split(".")
        if not all(part.isidentifier() for part in parts):
            return None
        places = tuple(dict.fromkeys((*search, *self._places(parts[0], importer, package))))
        stems = [(tree, posixpath.join(folder, *parts)) for tree, folder in places]
        if importer is None or importer[0] is not self.libraries:
            stems[-1:-1] = [(self.tree, stem) for stem in self._declared(parts)]
        for tree, stem in stems:
            if file := module_file(tree, stem):
                return Found(tree, file)
        # A folder without `__init__.py` gives way to a regular package that stands later on the path.
        found = next((Found(*stem, namespace=True) for stem in stems if _is_namespace(*stem)), None)
        if found is None and any(name.startswith(f"{dotted}.") for name in self._folders):
            return Found(self.tree, "/".join(parts), namespace=True)
        return found

    def _places(self, top: str, importer: Place | None, package: str) -> Iterator[Place]:
        if importer is not None and importer[0] is self.libraries:
            yield self.libraries, ""
        elif importer is not None:
            if package:
                top_package = importer[1].split("/")[: -package.count(".") or None]
                yield self.tree, "/".join(top_package[:-1])
            # Inside a package a sibling is imported so only by a script, and never in place of a standard module.
            if not package or top not in sys.stdlib_module_names:
                yield importer
        for folder in _ROOTS:
            yield self.tree, folder
        holders = [] if top in sys.stdlib_module_names else self._packages.get(top, [])
        if len(holders) == 1:
            yield self.tree, holders[0]
        yield self.libraries, ""

    def _declared(self, parts: list[str]) -> Iterator[str]:
        """Where a module is by the folders that the project declares for its packages, as the stem of a path.

        A root that is a package itself has the name of its folder.
        """
        for length in range(len(parts), 0, -1):
            folder = self._folders.get(".".join(parts[:length]))
            if folder is not None:
                yield posixpath.join(folder, *parts[length:])

    @cached_property
    def _folders(self) -> dict[str, str]:
        itself = {self.tree.root.name: ""} if is_file(self.tree, "__init__.py") else {}
        return itself | package_folders(self.tree)

    @cached_property
    def _packages(self) -> dict[str, list[str]]:
        """Top-level packages of the tree, with the folders that hold them."""
        packages = {path.rpartition("/")[0] for path in self._inits()} - {""}
        found: dict[str, list[str]] = {}
        for package in sorted(packages):
            folder, _, name = package.rpartition("/")
            if folder not in packages:
                found.setdefault(name, []).append(folder)
        return found

    def relative(self, importer: Place, level: int, dotted: str) -> Found | None:
        """`from <level dots><dotted> import ...` in a file in the folder `importer`."""
        tree, folder = importer
        parts = dotted.split(".") if dotted else []
        if level < 1 or level > len(folder.split("/")) + bool(folder) or not all(part.isidentifier() for part in parts):
            return None
        for _ in range(level - 1):
            folder = folder.rpartition("/")[0]
        stem = posixpath.join(folder, *parts)
        if file := module_file(tree, stem):
            return Found(tree, file)
        if _is_namespace(tree, stem):
            return Found(tree, stem, namespace=True)
        # A folder that is none is a package of which the project declares where its parts are.
        return self.absolute(stem.replace("/", "."), None, "", ()) if self._is_between(tree, folder) else None

    def _is_between(self, tree: Tree, folder: str) -> bool:
        return tree is self.tree and bool(self._folders) and not is_folder(tree, folder)

    def elsewhere(self, dotted: str) -> tuple[str, ...]:
        """Library files (import paths) that have the last name of a module that is not where it should be.

        They say where another version of the library has it.
        """
        top, _, rest = dotted.partition(".")
        name = rest.rpartition(".")[2]
        return tuple(sorted(self._named(name, top))) if name and is_folder(self.libraries, top) else ()

    def _named(self, name: str, folder: str) -> Iterator[str]:
        if file := module_file(self.libraries, f"{folder}/{name}"):
            yield file
        for inner in self.libraries.listing(folder).folders:
            yield from self._named(name, f"{folder}/{inner}")


def module_file(tree: Tree, stem: str) -> str | None:
    """The file of the module at a path without its suffix (empty: the tree itself); a package goes before a module."""
    paths = (posixpath.join(stem, "__init__.py"), *([f"{stem}.py"] if stem else []))
    return next((path for path in paths if is_file(tree, path)), None)


def _is_namespace(tree: Tree, folder: str) -> bool:
    """Whether a folder could be a package without `__init__.py`: it has Python files, or folders that do."""
    return is_folder(tree, folder) and _has_python(tree, folder, _NAMESPACE_DEPTH)


def _has_python(tree: Tree, folder: str, depth: int) -> bool:
    listing = tree.listing(folder)
    if any(name.endswith(".py") for name in listing.files):
        return True
    # What stands in a linked folder is seen, and no further folders of it: a link may lead back up.
    inner = [(name, 0 if name in listing.links else depth - 1) for name in listing.folders if depth]
    return any(_has_python(tree, f"{folder}/{name}", left) for name, left in inner)
