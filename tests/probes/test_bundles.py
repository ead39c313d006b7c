"""Paths that are no bundle, bundles that are damaged: a clear sentence each."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from probes.bundles import BundleError, read
from probes.options import Mode, ProbeOptions
from probes.probe import probe

INSPECT = ProbeOptions(mode=Mode.INSPECT)


def folder(path: Path, **files: str | bytes) -> Path:
    path.mkdir(parents=True)
    for name, text in files.items():
        target = path / name.replace("__", ".")
        target.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({}, "no main.mlirb inside (it holds nothing)"),
        ({"readme__txt": "x"}, "no main.mlirb inside (it holds readme.txt)"),
        ({"main__mlirb": b""}, "main.mlirb: 0 bytes"),
        ({"main__mlirb": b"x", "metadata__json": '{"producer": '}, "not valid JSON"),
        ({"main__mlirb": b"x", "metadata__json": "[1]"}, "a JSON object was expected"),
        ({"main__mlirb": b"x", "metadata__json": "[" * 100_000}, "not valid JSON"),
    ],
)
def test_damaged_aimodels(tmp_path: Path, files: dict[str, str | bytes], says: str) -> None:
    report = probe(folder(tmp_path / "x.aimodel", **files), INSPECT)
    assert report["status"] == "refused"
    assert says in report["reasons"][0]


@pytest.mark.parametrize(
    ("metadata", "says"),
    [
        ('{"metadata_version": "0.2", "assets": {"main": ', "not valid JSON"),
        ("{}", "names no assets"),
        ('{"assets": {"main": "../outside.aimodel"}}', "points outside the bundle"),
        ('{"assets": {"main": "/etc"}}', "points outside the bundle"),
        (
            '{"assets": {"main": "gone.aimodel"}}',
            "no asset called main to probe (asset 'main' is missing: gone.aimodel)",
        ),
    ],
)
def test_damaged_language_bundles(tmp_path: Path, metadata: str, says: str) -> None:
    (tmp_path / "outside.aimodel").mkdir()
    with pytest.raises(BundleError) as caught:
        read(folder(tmp_path / "lm", metadata__json=metadata))
    assert says in str(caught.value)


def test_a_link_out_of_a_language_bundle_is_refused(tmp_path: Path) -> None:
    outside = folder(tmp_path / "outside.aimodel", main__mlirb=b"x")
    bundle = folder(tmp_path / "lm", metadata__json='{"assets": {"main": "in.aimodel"}}')
    (bundle / "in.aimodel").symlink_to(outside)
    with pytest.raises(BundleError, match="points outside"):
        read(bundle)


def test_other_folders_and_files(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "x.aimodel").mkdir()
    with pytest.raises(BundleError, match=r"it holds x\.aimodel: probe one of those"):
        read(tmp_path / "other")
    (tmp_path / "file.txt").write_text("x")
    with pytest.raises(BundleError, match="a file is no bundle"):
        read(tmp_path / "file.txt")
    (tmp_path / "file.aimodel").write_text("x")
    with pytest.raises(BundleError, match=r"an \.aimodel is a folder"):
        read(tmp_path / "file.aimodel")


@pytest.mark.parametrize("damage", ["bits", "cut", "noise"])
def test_a_corrupt_program(bundle: Callable[[str], Path], tmp_path: Path, damage: str) -> None:
    import random

    path = tmp_path / "x.aimodel"
    shutil.copytree(bundle("dense"), path)
    program = path / "main.mlirb"
    whole = bytearray(program.read_bytes())
    if damage == "bits":
        for index in range(200, len(whole), 97):
            whole[index] ^= 0x55
    elif damage == "cut":
        whole = whole[: len(whole) // 2]
    else:
        whole = bytearray(random.Random(1).randbytes(len(whole)))
    program.write_bytes(whole)
    report = probe(path, ProbeOptions())
    assert report["status"] == "refused"
    assert "corrupt" in report["reasons"][0]
    assert "main.mlirb does not match main.hash: damaged, or edited since" in report["notes"]


def test_a_language_bundle(language_bundle: Path) -> None:
    found = read(language_bundle)
    assert (found.backend, found.name, found.vocab, found.context) == ("coreai", "tiny-lm", 256, 4096)
    assert found.main.path.name == "tiny.aimodel"
    assert found.notes == ("asset 'vision' is missing: vision.aimodel",)
    report = probe(language_bundle, ProbeOptions(mode=Mode.ROWS, widths=(1, 2, 3, 4)))
    assert report["verdict"] == "confirmed"
    assert report["decode_graph"] == "main"


def test_metadata_names_the_graph_that_decides(bundle: Callable[[str], Path], tmp_path: Path) -> None:
    lm = folder(tmp_path / "lm")
    shutil.copytree(bundle("several"), lm / "m.aimodel")
    for name, verdict in (("main", "partial"), ("main_s1", "refuted"), ("prefill", "refuted")):
        language = {"function_map": {"main": [name]}}
        (lm / "metadata.json").write_text(json.dumps({"assets": {"main": "m.aimodel"}, "language": language}))
        report = probe(lm, INSPECT)
        assert (report["decode_graph"], report["verdict"]) == (name, verdict)
