"""A unified diff as a layer over libraries: each of its files is patched in memory, when it is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from auditor import patches
from auditor.archives import member_path
from auditor.trees import EMPTY, IMPORT_ROOTS, Listing, Tree, Unreadable, listings


class Below(Tree, Protocol):
    """What a diff is laid over."""

    def has_file(self, path: str) -> bool: ...


@dataclass(frozen=True, slots=True)
class _Edit:
    """What a diff does at one import path: `source` is the path it starts from (None: a new file)."""

    patch: patches.FilePatch
    source: str | None


class PatchLayer:
    """A unified diff over the layers `below` it. Parsed when first asked; a file is patched when it is read."""

    def __init__(self, below: Below, name: str, data: bytes) -> None:
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
            if source and not patch.copies:
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


def _drops(name: str | None, below: Below) -> list[tuple[int, tuple[str, ...]]]:
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
