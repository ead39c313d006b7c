"""Bundles for the tests of the probe, authored once a session: each takes some 30 ms."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

sys.path[:0] = [str(Path(__file__).parent / "fixtures"), str(ROOT / "examples" / "smollm2")]


def _recipes() -> dict[str, dict[str, Any]]:
    import numpy as np

    return {
        "dense": {},
        "dense_f16": {"dtype": np.float16, "hidden": 32, "head_size": 8, "vocab": 64},
        "static": {"query": 1},
        "window4": {"query": 4},
        "last_token": {"rows": "last"},
        "hybrid": {"recurrent": True},
        # The gain and the seed are such that no argmax differs at any width: only the deltas show the mask.
        "wrong_mask": {"mask": "none", "attention_gain": 0.6, "seed": 4, "vocab": 64},
        "late_mask": {"mask": "late"},
        "weak_hybrid_f16": {
            "recurrent": True,
            "share": 0.02,
            "dtype": np.float16,
            "hidden": 32,
            "head_size": 8,
            "vocab": 64,
        },
        "edge_mask_f16": {
            "mask": "edge",
            "masked_reads": True,
            "dtype": np.float16,
            "hidden": 32,
            "head_size": 8,
            "vocab": 64,
        },
        "block_mask": {"mask": "blocks"},
        "suppressed": {"suppressed": 4},
        "suppressed_wrong_mask": {"suppressed": 4, "mask": "none"},
        "suppressed_hybrid": {"suppressed": 4, "recurrent": True},
        "offset_wrong_mask": {"offset": 2000.0, "mask": "none"},
        "ring": {"window": 16},
        "fixed": {"capacity": 64},
        "unwritten": {"writes": False},
        "masked_reads": {"masked_reads": True},
        "start": {"positions": "start"},
        "counter": {"positions": "counter"},
        "one_a_row": {"positions": "rows"},
        "token_out": {"output": "token"},
        "hidden_out": {"output": "hidden"},
    }


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The path of a bundle by its name; `all` has every recipe as an entry point."""
    pytest.importorskip("coreai.authoring")
    from authored_decoders import Decoder, author, author_many

    folder = tmp_path_factory.mktemp("bundles")
    recipes = _recipes()

    def make(name: str) -> Path:
        path = folder / f"{name}.aimodel"
        if not path.exists():
            if name == "several":
                author_many(path, {"main": Decoder(), "main_s1": Decoder(query=1), "prefill": Decoder(rows="last")})
            elif name == "all":
                author_many(path, {key: Decoder(**recipe) for key, recipe in recipes.items()})
            else:
                author(path, **recipes[name])
        return path

    return make


@pytest.fixture(scope="session")
def language_bundle(bundle: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A language bundle folder around the dense decoder."""
    folder = tmp_path_factory.mktemp("language") / "tiny-lm"
    folder.mkdir()
    shutil.copytree(bundle("dense"), folder / "tiny.aimodel")
    metadata = {
        "metadata_version": "0.2",
        "kind": "llm",
        "name": "tiny-lm",
        "assets": {"main": "tiny.aimodel", "vision": "vision.aimodel"},
        "language": {"vocab_size": 256, "max_context_length": 4096, "function_map": {"main": ["main"]}},
    }
    (folder / "metadata.json").write_text(json.dumps(metadata))
    return folder
