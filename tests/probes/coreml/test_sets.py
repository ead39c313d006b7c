"""Several packages of one model: a verdict for each, and a statement about the set."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner
from packages import quiet

from auditor.cli import cli

SCHEMA = json.loads(files("reports").joinpath("schemas/probe-1.schema.json").read_text())


def built(folder: Path, **parts: dict[str, Any]) -> Path:
    from built_decoders import Decoder, build

    folder.mkdir()
    with quiet():
        for name, changes in parts.items():
            build(folder / f"{name}.mlpackage", Decoder(**changes))
    return folder


def probed(path: Path) -> dict[str, Any]:
    result = CliRunner().invoke(cli, ["probe", str(path), "--format", "json"])
    report: dict[str, Any] = json.loads(result.stdout)
    jsonschema.validate(report, SCHEMA)
    return report


PARTS: dict[str, dict[str, Any]] = {
    "embed": {"part": "embedding"},
    "body_2": {"part": "chunk", "seed": 4},
    "body_10": {"part": "chunk", "seed": 5},
    "lm_head": {"part": "head"},
}


def test_dense_chunks_and_a_separate_head(tmp_path: Path) -> None:
    report = probed(built(tmp_path / "model", **PARTS))
    (chain,) = report["set"]
    assert chain["order"] == ["embed", "body_2", "body_10", "lm_head"]
    assert chain["roles"] == {"embed": "embedding", "body_2": "chunk", "body_10": "chunk", "lm_head": "head"}
    assert chain["statement"] == "as a set (embed -> body_2 -> body_10 -> lm_head): eligible"
    # No package of it can do it alone, and nothing was run.
    assert {graph["name"]: graph["judgement"]["reasons"][0]["rule"] for graph in report["graphs"]} == {
        "body_10/main": "no-logits",
        "body_2/main": "no-logits",
        "embed/main": "not-a-decoder",
        "lm_head/main": "not-a-decoder",
    }
    assert {graph["not_run"] for graph in report["graphs"]} == {
        "one package of a set: the packages of a set are inspected, not run"
    }
    assert (report["verdict"], report["decode_graph"]) == ("partial", None)
    text = CliRunner().invoke(cli, ["probe", str(tmp_path / "model")]).stdout
    assert "as a set (embed -> body_2 -> body_10 -> lm_head): eligible" in text


@pytest.mark.parametrize(
    ("changed", "verdict", "rule"),
    [
        ({"body_2": {"part": "chunk", "query": 1}}, "out", "static-query"),
        ({"lm_head": {"part": "head", "rows": "last"}}, "out", "last-token-only"),
        ({"body_10": {"part": "chunk", "recurrent": True}}, "out", "hybrid-state"),
        ({"lm_head": {"part": "head", "rows": "token"}}, "out", "no-logits"),
        ({"body_2": {"part": "chunk", "query": 8}}, "unresolved", "fixed-window"),
    ],
)
def test_a_set_is_as_good_as_its_weakest_part(
    tmp_path: Path, changed: dict[str, dict[str, Any]], verdict: str, rule: str
) -> None:
    report = probed(built(tmp_path / "model", **(PARTS | changed)))
    (chain,) = report["set"]
    assert (chain["verdict"], chain["reasons"][0]["rule"]) == (verdict, rule)
    assert report["verdict"] == ("refuted" if verdict == "out" else "partial")


@pytest.mark.parametrize(
    ("left", "says"),
    [
        (("body_2", "lm_head"), "no package takes token ids"),
        (("embed", "body_2"), "no package gives logits or tokens"),
    ],
)
def test_parts_that_are_missing(tmp_path: Path, left: tuple[str, ...], says: str) -> None:
    report = probed(built(tmp_path / "model", **{name: PARTS[name] for name in left}))
    assert says in report["set"][0]["statement"]
    assert (report["set"][0]["verdict"], report["verdict"]) == (None, "partial")


def test_parts_of_different_models(tmp_path: Path) -> None:
    report = probed(built(tmp_path / "model", **(PARTS | {"lm_head": {"part": "head", "hidden": 16}})))
    assert "body_10 gives output_hidden_states" in report["set"][0]["statement"]


def test_whole_models_in_one_folder_are_no_set(package: Callable[[str], Path], tmp_path: Path) -> None:
    for name in ("dense", "hybrid"):
        shutil.copytree(package(name), tmp_path / f"{name}.mlpackage")
    report = probed(tmp_path)
    assert report["set"][0]["statement"] == (
        "no set: dense, hybrid neither takes nor gives hidden states; each is judged alone"
    )
    assert {graph["name"]: graph["verdict"] for graph in report["graphs"]} == {
        "dense/main": "partial",
        "hybrid/main": "refuted",
    }
    assert report["verdict"] == "partial"


def test_a_package_that_cannot_be_read_refuses_the_set(package: Callable[[str], Path], tmp_path: Path) -> None:
    shutil.copytree(package("dense"), tmp_path / "dense.mlpackage")
    (tmp_path / "broken.mlpackage").mkdir()
    report = probed(tmp_path)
    assert (report["status"], report["verdict"]) == ("refused", "partial")
    assert report["reasons"][0].startswith("broken: ")
    assert [graph["name"] for graph in report["graphs"]] == ["dense/main"]


def test_one_package_in_a_folder_is_pointed_at(package: Callable[[str], Path], tmp_path: Path) -> None:
    shutil.copytree(package("dense"), tmp_path / "dense.mlpackage")
    report = probed(tmp_path)
    assert report["reasons"][0].endswith("it holds dense.mlpackage: probe one of those")
