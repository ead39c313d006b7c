"""Core ML packages for the tests, built once a session as they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The path of a package by its name."""
    folder = tmp_path_factory.mktemp("packages")

    from packages import quiet

    def make(name: str) -> Path:
        path = folder / f"{name}.mlpackage"
        if not path.exists():
            with quiet():
                _build(name, path, folder)
        return path

    return make


def _build(name: str, path: Path, folder: Path) -> None:
    import built_decoders as built
    from packages import QUANTISED, RECIPES

    if name in QUANTISED:
        built.quantised(path, name)
    elif name == "several":
        (folder / "parts").mkdir(exist_ok=True)
        functions = {"decode": built.Decoder(query=1), "prefill": built.Decoder(query=16)}
        built.multifunction(path, folder / "parts", functions)
    else:
        built.build(path, built.Decoder(**RECIPES[name]))
