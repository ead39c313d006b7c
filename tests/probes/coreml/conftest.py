"""Core ML packages for the tests, built once a session as they are asked for."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

RECIPES: dict[str, dict[str, Any]] = {
    "dense": {},
    "position": {"form": "position"},
    "one_a_row": {"form": "rows"},
    "both": {"form": "both"},
    "enumerated": {"form": "both", "query": [1, 2, 4, 8]},
    "mixed": {"query": [1, 2, 4], "mask_query": (1, 4)},
    "static": {"query": 1},
    "window16": {"query": 16},
    "last_token": {"rows": "last"},
    "token_out": {"rows": "token"},
    "hidden_out": {"rows": "hidden"},
    "hybrid": {"recurrent": True},
    "unwritten": {"written": False},
    "unified": {"cache": "unified"},
    "kv_io": {"cache": "io"},
    "stateless": {"cache": "none"},
    "baked": {"baked": 5},
    "wrong_mask": {"block_mask": False},
    "wrong_mask_position": {"block_mask": False, "form": "position"},
}
QUANTISED = ("int8", "int4", "palette", "pruned")


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The path of a package by its name."""
    folder = tmp_path_factory.mktemp("packages")

    def make(name: str) -> Path:
        path = folder / f"{name}.mlpackage"
        if not path.exists():
            with quiet():
                _build(name, path, folder)
        return path

    return make


class quiet(warnings.catch_warnings):
    """coremltools warns of what it was not tested with, and logs what it cannot load on Linux."""

    def __enter__(self) -> None:
        super().__enter__()
        warnings.simplefilter("ignore")
        logging.getLogger("coremltools").setLevel(logging.ERROR)


def _build(name: str, path: Path, folder: Path) -> None:
    import built_decoders as built

    if name in QUANTISED:
        built.quantised(path, name)
    elif name == "several":
        (folder / "parts").mkdir(exist_ok=True)
        functions = {"decode": built.Decoder(query=1), "prefill": built.Decoder(query=16)}
        built.multifunction(path, folder / "parts", functions)
    else:
        built.build(path, built.Decoder(**RECIPES[name]))
