"""Workloads from files: token ids, or text with the tokenizer of the bundle."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from probes.ab.options import Workload
from probes.bundles import Bundle

INSTALL = "pip install 'tokenizers>=0.20'"
_IDS = re.compile(r"[\s\d,\[\]]+")
_SIZE_LIMIT = 2**20
_NAMES = ("tokenizer.json", "tokenizer/tokenizer.json")


class WorkloadError(Exception):
    """A workload that cannot be read; the message says what to do."""


def tokenizer_of(bundle: Bundle, given: Path | None) -> Path | None:
    """The tokenizer.json: the one given (a file, or a folder that holds it), else the bundle's own."""
    root = given or bundle.path
    if given is not None and given.is_file():
        return given
    folder = bundle.metadata.get("language")
    named = folder.get("tokenizer") if isinstance(folder, dict) else None
    names = (*_NAMES, *([f"{named}/tokenizer.json", str(named)] if isinstance(named, str) else []))
    for name in names:
        found = (root / name).resolve()
        if found.is_file() and found.is_relative_to(root.resolve()):
            return found
    if given is not None:
        raise WorkloadError(f"{given}: no tokenizer.json there")
    return None


def read(named: str, tokenizer: Path | None) -> Workload:
    """`NAME=FILE`."""
    name, equals, file = named.partition("=")
    if not equals or not name or not file:
        raise WorkloadError(f"{named!r}: NAME=FILE was expected")
    return Workload(name, tokens_of(Path(file), tokenizer), Path(file).name)


def tokens_of(path: Path, tokenizer: Path | None) -> tuple[int, ...]:
    """The tokens of a file: numbers alone are token ids, anything else is text."""
    try:
        if path.stat().st_size > _SIZE_LIMIT:
            raise WorkloadError(f"{path}: larger than any prompt should be")
        text = path.read_text("utf-8")
    except OSError as error:
        raise WorkloadError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise WorkloadError(f"{path}: not UTF-8 text") from None
    if not text.strip():
        raise WorkloadError(f"{path}: empty")
    if _IDS.fullmatch(text):
        return tuple(int(part) for part in re.findall(r"\d+", text))
    if tokenizer is None:
        raise WorkloadError(f"{path}: text, and the bundle brings no tokenizer.json; give --tokenizer, or token ids")
    return encoded(text, tokenizer)


def encoded(text: str, tokenizer: Path) -> tuple[int, ...]:
    """The token ids of a text, no special token added; `WorkloadError` where that cannot be told."""
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise WorkloadError(f"text needs the package tokenizers; {INSTALL}, or give token ids") from None
    try:
        made: Any = Tokenizer.from_file(str(tokenizer))
    except Exception as error:
        raise WorkloadError(f"{tokenizer}: no tokenizer ({' '.join(str(error).split())[:200]})") from None
    return tuple(made.encode(text, add_special_tokens=False).ids)


def stops_of(bundle: Bundle) -> tuple[int, ...]:
    """The stop tokens that a language bundle names."""
    language = bundle.metadata.get("language")
    found = language.get("eos_token_id") if isinstance(language, dict) else None
    values = found if isinstance(found, list) else [found]
    return tuple(value for value in values if type(value) is int)
