"""The files that hold the constants of a program: are they there, and whole? Values are not read.

A file begins with 64 bytes (two little-endian 32-bit numbers: how many constants, and 2 for the format) and has, at the
offset that the program names for a constant, a record of 24 bytes: a mark, the type, the size, and where the data are.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from probes.coreml.package import PackageError, inside

Blob = tuple[str, int]
"""The file that a constant is in, as the program names it (`@model_path/weights/weight.bin`), and its offset there."""

_FORMAT = 2
_MARK = 0xDEADBEEF
_HEADER, _RECORD = struct.Struct("<II"), struct.Struct("<IIQQ")
_POINTER = b"version https://git-lfs"
_IN_TEXT = re.compile(r'BLOBFILE\(path = [^"\n]{0,60}"(@model_path/[^"\n]+)"\), offset = [^(\n]{0,60}\((\d{1,18})\)')


def blobs(spec: Any) -> Iterator[Blob]:
    """The constants of a program in a protobuf that lie in files."""
    for function in spec.mlProgram.functions.values():
        blocks = list(function.block_specializations.values())
        while blocks:
            for operation in blocks.pop().operations:
                blocks.extend(operation.blocks)
                values = [*operation.attributes.values()]
                values += [one.value for given in operation.inputs.values() for one in given.arguments]
                for one in values:
                    if one.HasField("blobFileValue"):
                        yield one.blobFileValue.fileName, int(one.blobFileValue.offset)


def blobs_in_text(text: str) -> Iterator[Blob]:
    """The same of a compiled model's `model.mil`."""
    return ((match[1], int(match[2])) for match in _IN_TEXT.finditer(text))


def in_weights(name: str) -> bool:
    """Whether the file lies where weights lie: a program may name any place, and others are not followed."""
    parts = PurePosixPath(name).parts
    return parts[:2] == ("@model_path", "weights") and len(parts) == 3 and parts[2] != ".."


def check(root: Path, folder: Path, named: Iterable[Blob]) -> None:
    """PackageError where a file below `folder` (the program's, in the package `root`) lacks one of its constants."""
    offsets: dict[str, set[int]] = {}
    for name, offset in named:
        if in_weights(name):
            offsets.setdefault(name, set()).add(offset)
    for name in sorted(offsets):
        path = folder.joinpath(*PurePosixPath(name).parts[1:])
        resolved = inside(root, path, folder)
        if not resolved.is_file():
            raise PackageError(f"{path}: not an ordinary file")
        with resolved.open("rb") as file:
            start = file.read(len(_POINTER))
            if start == _POINTER:
                raise PackageError(f"{path}: a pointer of Git LFS, not the file; `git lfs pull` fetches it")
            whole = len(start) >= _HEADER.size and _HEADER.unpack_from(start)[1] == _FORMAT
            size = resolved.stat().st_size
            for offset in sorted(offsets[name]):
                file.seek(offset)
                record = file.read(_RECORD.size)
                whole = whole and len(record) == _RECORD.size and _fits(record, size)
        if not whole:
            raise PackageError(f"{path}: damaged or cut short ({size:,} bytes); export or download it again")


def _fits(record: bytes, size: int) -> bool:
    mark, _, length, start = _RECORD.unpack(record)
    return bool(mark == _MARK and start + length <= size)
