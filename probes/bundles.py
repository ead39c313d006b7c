"""Bundles on disk: an `.aimodel`, an `.mlpackage` or its kin, a folder of several, or a language bundle folder whose
`metadata.json` names its assets.

Only files are read here, so this part works without any runtime.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

INSTALL = "pip install 'coreai-core>=1.0.0b3' 'numpy>=2.3,<2.4'"
_METADATA_LIMIT = 16 * 2**20
_HASH_LIMIT = 2**31
_TAKEN = "an .aimodel, an .mlpackage, an .mlmodelc, or a language bundle folder"
_COREML = (".mlpackage", ".mlmodelc", ".mlmodel")
SUFFIXES = (".aimodel", *_COREML)


class BundleError(Exception):
    """A path that is no readable bundle; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Asset:
    """One model of a bundle. `role` is its key in the bundle's metadata (`main` for a lone asset)."""

    role: str
    path: Path

    @property
    def weight_bytes(self) -> int:
        """The size of the asset's files, nearly all of it weights."""
        if self.path.is_file():
            return self.path.stat().st_size
        return sum(item.stat().st_size for item in self.path.rglob("*") if item.is_file() and not item.is_symlink())


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle as its files describe it. `decode` are the entry points that its metadata calls the decoder's.

    `is_set` tells a folder of several packages, which may be the parts of one model.
    """

    path: Path
    backend: str
    assets: tuple[Asset, ...]
    name: str = ""
    vocab: int | None = None
    context: int | None = None
    decode: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    is_set: bool = False

    @property
    def shown(self) -> str:
        """How places cite the bundle: its base name, so that a report is the same wherever the bundle lies."""
        return self.path.name

    @property
    def main(self) -> Asset:
        """The asset that decodes."""
        return next((asset for asset in self.assets if asset.role == "main"), self.assets[0])


def read(path: Path) -> Bundle:
    """The bundle at `path`; raises `BundleError` with what is wrong and what to do."""
    if not path.exists():
        raise BundleError(f"{path}: no such file or folder")
    resolved = path.resolve()
    if resolved.suffix == ".aimodel":
        return Bundle(resolved, "coreai", (_aimodel(resolved, "main"),), resolved.stem, **_own_metadata(resolved))
    if resolved.suffix in _COREML:
        return Bundle(resolved, "coreml", (Asset("main", resolved),), resolved.stem)
    if resolved.is_dir() and (resolved / "metadata.json").is_file():
        return _language_bundle(resolved)
    if resolved.is_dir():
        packages = sorted(item for item in resolved.iterdir() if item.suffix in _COREML and item.is_dir())
        if len(packages) > 1:
            assets = tuple(Asset(item.name, item) for item in packages)
            return Bundle(resolved, "coreml", assets, resolved.name, is_set=True)
        inside = sorted(item.name for item in resolved.iterdir() if item.suffix in SUFFIXES)
        hint = f"it holds {', '.join(inside)}: probe one of those" if inside else f"give {_TAKEN}"
        raise BundleError(f"{path}: a folder without metadata.json is no bundle; {hint}")
    raise BundleError(f"{path}: a file is no bundle; give {_TAKEN}")


def _aimodel(path: Path, role: str) -> Asset:
    if not path.is_dir():
        raise BundleError(f"{path}: an .aimodel is a folder, and this is a file")
    program = path / "main.mlirb"
    if not program.is_file():
        inside = ", ".join(sorted(item.name for item in path.iterdir())[:6]) or "nothing"
        raise BundleError(f"{path}: no main.mlirb inside (it holds {inside}); export or download it again")
    if program.stat().st_size == 0:
        raise BundleError(f"{program}: 0 bytes; export or download it again")
    return Asset(role, path)


def _own_metadata(path: Path) -> dict[str, Any]:
    """What an asset's own metadata says: custom values may name the vocabulary size and the context length."""
    file = path / "metadata.json"
    notes = _hash_notes(path)
    if not file.is_file():
        return {"notes": (*notes, "metadata.json is missing")}
    data = _json(file)
    custom = data.get("creatorDefinedMetadata") or data.get("creator_defined_metadata") or {}
    flat = {**data, **custom} if isinstance(custom, dict) else data
    return {
        "vocab": _number(flat.get("vocab_size")),
        "context": _number(flat.get("max_context_length")),
        "metadata": data,
        "notes": notes,
    }


def _hash_notes(path: Path) -> tuple[str, ...]:
    """What main.hash (the SHA-256 of the program) says. A mismatch is told, and what becomes of it is the runtime's."""
    program, stored = path / "main.mlirb", path / "main.hash"
    if not stored.is_file() or stored.stat().st_size != 32:
        return ()
    if program.stat().st_size > _HASH_LIMIT:
        return ("main.hash was not checked: the program is large",)
    with program.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").digest()
    return () if digest == stored.read_bytes() else ("main.mlirb does not match main.hash: damaged, or edited since",)


def _language_bundle(path: Path) -> Bundle:
    data = _json(path / "metadata.json")
    named = data.get("assets")
    if not isinstance(named, dict) or not named:
        version = data.get("metadata_version", "none")
        raise BundleError(
            f"{path / 'metadata.json'}: names no assets (metadata_version {version}); not a language bundle"
        )
    assets: list[Asset] = []
    notes: list[str] = []
    for role, relative in named.items():
        target = (path / str(relative)).resolve()
        if not target.is_relative_to(path):
            raise BundleError(f"{path / 'metadata.json'}: asset {role!r} points outside the bundle ({relative})")
        if not target.exists():
            notes.append(f"asset {role!r} is missing: {relative}")
            continue
        assets.append(_aimodel(target, str(role)) if target.suffix == ".aimodel" else Asset(str(role), target))
    if not any(asset.role == "main" for asset in assets) and len(assets) != 1:
        raise BundleError(f"{path}: no asset called main to probe ({'; '.join(notes) or ', '.join(map(str, named))})")
    language = data.get("language")
    language = language if isinstance(language, dict) else {}
    functions = language.get("function_map")
    functions = functions if isinstance(functions, dict) else {}
    main = functions.get("main", [])
    backend = "coreai" if assets[0].path.suffix == ".aimodel" else "coreml"
    return Bundle(
        path,
        backend,
        tuple(assets),
        str(data.get("name") or path.name),
        _number(language.get("vocab_size")),
        _number(language.get("max_context_length")),
        tuple(map(str, main if isinstance(main, list) else [main])),
        tuple(notes),
        data,
    )


def _json(file: Path) -> dict[str, Any]:
    if file.stat().st_size > _METADATA_LIMIT:
        raise BundleError(f"{file}: larger than any metadata should be ({file.stat().st_size:,} bytes)")
    try:
        data = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{file}: not valid JSON ({error}); export or download it again") from None
    if not isinstance(data, dict):
        raise BundleError(f"{file}: a JSON object was expected")
    return data


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
