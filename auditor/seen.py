"""What a scan depends on: every folder it has listed and every file it has read, with digests of what they held."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Digests = dict[str, dict[str, str]]


@dataclass(slots=True)
class Seen:
    """`folders` and `files` by tree and path in it, `wholes` (archives, diffs, checkpoints' files) by path.

    A file that was looked for and is not there is told by the listing of its folder, or by an empty digest in `wholes`.
    `steady` turns false when one thing was seen in two states, or when a result may come out otherwise next time.
    """

    folders: Digests = field(default_factory=dict)
    files: Digests = field(default_factory=dict)
    wholes: dict[str, str] = field(default_factory=dict)
    steady: bool = True

    def __bool__(self) -> bool:
        return bool(self.folders)

    def folder(self, tree: str, path: str, names: Iterable[Iterable[str]], refused: Mapping[str, str]) -> None:
        """A folder was listed: its files, folders and links, and what is not followed, with the reasons."""
        text = json.dumps([*(sorted(part) for part in names), sorted(refused.items())])
        self._note(self.folders.setdefault(tree, {}), path, _digest(text.encode()))

    def file(self, tree: str, path: str, data: bytes) -> None:
        self._note(self.files.setdefault(tree, {}), path, _digest(data))

    def unreadable(self, tree: str, path: str, reason: str) -> None:
        self._note(self.files.setdefault(tree, {}), path, f"unreadable: {reason}")

    def whole(self, path: Path) -> None:
        """A file outside every tree is about to be read, or looked for."""
        found = ""
        try:
            if path.is_file():
                with path.open("rb") as stream:
                    found = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            found = f"unreadable: {error.strerror}"
        self._note(self.wholes, str(path), found)

    def spoil(self) -> None:
        """The scan met something that may not happen again: its result is not to be kept."""
        self.steady = False

    def add(self, other: Seen) -> None:
        """Another process has seen this of the same scan."""
        for mine, theirs in ((self.folders, other.folders), (self.files, other.files)):
            for tree, digests in theirs.items():
                for path, digest in digests.items():
                    self._note(mine.setdefault(tree, {}), path, digest)
        for path, digest in other.wholes.items():
            self._note(self.wholes, path, digest)
        self.steady = self.steady and other.steady

    def taken(self) -> Seen:
        """What was seen since this was last asked; it begins anew."""
        out = Seen(self.folders, self.files, self.wholes, self.steady)
        self.folders, self.files, self.wholes, self.steady = {}, {}, {}, True
        return out

    def plain(self) -> dict[str, Any]:
        """As data that JSON can hold, `steady` aside."""
        return {"folders": self.folders, "files": self.files, "wholes": self.wholes}

    @classmethod
    def of(cls, data: dict[str, Any]) -> Seen:
        """From `plain` data. Raises `ValueError`, `KeyError`, `TypeError` or `AttributeError` for anything else."""
        return cls(_digests(data["folders"]), _digests(data["files"]), _texts(data["wholes"]))

    def _note(self, digests: dict[str, str], path: str, digest: str) -> None:
        if digests.setdefault(path, digest) != digest:
            self.steady = False


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _digests(data: dict[str, Any]) -> Digests:
    return {tree: _texts(found) for tree, found in data.items()}


def _texts(data: dict[str, Any]) -> dict[str, str]:
    if not all(isinstance(text, str) for text in data.values()):
        raise ValueError("not a table of texts")
    return dict(data)
