"""Reads `rules/frameworks/*.toml`: the public API of the frameworks, as data."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True, slots=True)
class Tables:
    """The union of all framework files.

    `words` are what a file must contain to have to do with an export, and `calls` pairs of such words and of those that
    it needs beside them to export by itself. `converts` finds a call of what converts, `exporters` are the
    console scripts that export, `functions` those of libraries that do, `functions_for` those that do when a text that
    they are given has a word; `passes` are those that coremltools has.
    """

    packages: frozenset[str]
    words: tuple[str, ...]
    calls: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    converts: re.Pattern[str]
    exporters: frozenset[str]
    functions: frozenset[str]
    functions_for: dict[str, tuple[str, ...]]
    keeps_module: frozenset[str]
    keeps_program: frozenset[str]
    holds_module: frozenset[str]
    keeps_model: frozenset[str]
    passes: frozenset[str]
    harmless: frozenset[str]
    data: frozenset[str]
    layers: tuple[dict[str, Any], ...]
    constants: dict[str, Any]


@cache
def tables() -> Tables:
    """All framework tables. Raises `tomllib.TOMLDecodeError` when one is broken."""
    folder = files("rules") / "frameworks"
    data = [
        tomllib.loads(f.read_text("utf-8"))
        for f in sorted(folder.iterdir(), key=lambda f: f.name)
        if f.name.endswith(".toml")
    ]

    def union(key: str) -> list[str]:
        return [v for d in data for v in d.get(key, ())]

    return Tables(
        frozenset(union("packages")),
        tuple(dict.fromkeys(union("prefilter"))),
        tuple((tuple(d["prefilter"]), tuple(d.get("calls", d["prefilter"]))) for d in data if "prefilter" in d),
        re.compile(rf"\b(?:{'|'.join(union('converts'))})\("),
        frozenset(union("exporters")),
        frozenset(union("functions")),
        {word: tuple(names) for d in data for word, names in d.get("functions_for", {}).items()},
        frozenset(union("keeps_module")),
        frozenset(union("keeps_program")),
        frozenset(union("holds_module")),
        frozenset(union("keeps_model")),
        frozenset(
            f"{space}::{name}" for d in data for space, text in d.get("passes", {}).items() for name in text.split()
        ),
        frozenset(union("harmless")),
        frozenset(union("data")),
        tuple(layer for d in data for layer in d.get("layer", ())),
        {k: v for d in data for k, v in d.get("constants", {}).items()},
    )
