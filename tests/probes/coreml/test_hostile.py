"""Packages that mean harm: refused with the reason, in bounded memory and time, and nothing outside is read."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packages import change_manifest

from probes.backend import BackendError
from probes.coreml import inspection, spec
from probes.coreml.package import PackageError, locate, read_bytes
from probes.coreml.weights import blobs_in_text, check
from probes.options import Mode, ProbeOptions
from probes.probe import probe

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "bundles" / "dense.mlpackage"
SPEC = Path("Data/com.apple.CoreML/model.mlmodel")
WEIGHTS = Path("Data/com.apple.CoreML/weights/weight.bin")


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A copy of the example, to be damaged."""
    return Path(shutil.copytree(EXAMPLE, tmp_path / "x.mlpackage"))


def refusal(path: Path, mode: Mode = Mode.INSPECT, backend: str = "") -> str:
    report = probe(path, ProbeOptions(mode=mode, backend=backend, widths=(1, 2)))
    assert report["status"] == "refused"
    assert report["graphs"] == []
    return str(report["reasons"][0])


@pytest.mark.parametrize(
    "named", ["../../../secret.mlmodel", "/etc/passwd", "com.apple.CoreML/../../../secret", "..\\secret", "a\0b"]
)
def test_a_manifest_that_points_outside(victim: Path, named: str) -> None:
    (victim.parent / "secret.mlmodel").write_bytes((victim / SPEC).read_bytes())
    change_manifest(victim, named)
    assert "leaves the package; it is not followed" in refusal(victim)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not valid JSON"),
        ("[" * 200_000, "not valid JSON"),
        ("[]", "its root model names no path"),
        ('{"rootModelIdentifier": ["x"], "itemInfoEntries": {}}', "its root model names no path"),
        ('{"rootModelIdentifier": "x", "itemInfoEntries": {"x": {"path": 7}}}', "its root model names no path"),
        ("", "0 bytes"),
    ],
)
def test_a_manifest_that_is_none(victim: Path, text: str, says: str) -> None:
    (victim / "Manifest.json").write_text(text)
    assert says in refusal(victim)


def test_a_manifest_that_names_nothing_or_a_folder(victim: Path) -> None:
    change_manifest(victim, "com.apple.CoreML/gone.mlmodel")
    assert "names 'gone.mlmodel', which is missing" in refusal(victim)
    change_manifest(victim, "com.apple.CoreML")
    assert "is a folder" in refusal(victim)
    (victim / "Manifest.json").unlink()
    assert "no Manifest.json inside (it holds Data)" in refusal(victim)


@pytest.mark.parametrize("what", [SPEC, WEIGHTS, Path("Manifest.json"), Path("Data")])
def test_links_out_of_the_package(victim: Path, what: Path) -> None:
    outside = victim.parent / "outside"
    shutil.move(victim / what, outside)
    (victim / what).symlink_to(outside)
    assert "a link out of the package is not followed; `cp -RL` makes a copy without links" in refusal(victim)
    assert "is not followed" in refusal(victim, Mode.ROWS, "reference")


def test_links_that_stay_inside_are_followed(victim: Path) -> None:
    shutil.move(victim / SPEC, victim / "model.bin")
    (victim / SPEC).symlink_to(victim / "model.bin")
    assert probe(victim, ProbeOptions(mode=Mode.INSPECT))["status"] == "ok"


def test_a_link_to_itself_and_a_pipe(victim: Path) -> None:
    (victim / SPEC).unlink()
    (victim / SPEC).symlink_to(victim / SPEC)
    assert "a link that leads nowhere" in refusal(victim)
    (victim / SPEC).unlink()
    os.mkfifo(victim / SPEC)
    assert "not an ordinary file" in refusal(victim)


def test_nothing_outside_is_opened(victim: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x")
    (victim / WEIGHTS).unlink()
    (victim / WEIGHTS).symlink_to(secret)
    code = (
        "import sys; opened = []\n"
        "sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == 'open' else None)\n"
        "from probes.coreml.inspection import read\n"
        "from pathlib import Path\n"
        "try:\n    read(Path(sys.argv[1]))\nexcept Exception as error:\n    print(type(error).__name__)\n"
        "assert sys.argv[2] not in opened, opened\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, victim, secret], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "BackendError"), done.stderr


@pytest.mark.parametrize("damage", ["noise", "cut", "empty", "deep", "no model"])
def test_a_description_that_is_none(victim: Path, damage: str) -> None:
    whole = (victim / SPEC).read_bytes()
    changed = {
        "noise": random.Random(1).randbytes(200_000),
        "cut": whole[: len(whole) // 2],
        "empty": b"",
        "deep": _pipelines(5000),
        "no model": b"\x08\x09",
    }[damage]
    (victim / SPEC).write_bytes(changed)
    says = {"empty": "0 bytes", "no model": "describes no model"}.get(damage, "not a Core ML model")
    assert says in refusal(victim)


def test_noise_of_any_seed_is_refused_or_read() -> None:
    refused = 0
    for seed in range(300):
        dice = random.Random(seed)
        data = (
            bytearray((EXAMPLE / SPEC).read_bytes()) if seed % 2 else bytearray(dice.randbytes(dice.randrange(1, 400)))
        )
        for _ in range(6 if seed % 2 else 0):
            data[dice.randrange(len(data))] = dice.randrange(256)
        try:
            spec.read(bytes(data), "x")
        except (PackageError, BackendError):
            refused += 1
    assert refused > 150


def _varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def _field(number: int, body: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(body)) + body


def _pipelines(depth: int) -> bytes:
    """A pipeline of a pipeline of a pipeline ..."""
    model = b"\x08\x01"
    for _ in range(depth):
        model = b"\x08\x01" + _field(202, _field(1, model))
    return model


def test_a_small_file_that_would_be_huge_in_memory(victim: Path) -> None:
    # 40 MB of empty inputs: 20 million messages of some hundred bytes each.
    (victim / SPEC).write_bytes(b"\x08\x09" + _field(2, b"\x0a\x00" * (20 * 2**20)))
    started = time.monotonic()
    assert "larger in memory" in refusal(victim)
    assert time.monotonic() - started < 30
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    assert peak < 3 * 2**30


def test_the_limit_of_memory_is_lifted_again() -> None:
    before = resource.getrlimit(resource.RLIMIT_AS)
    with inspection.limited(2**30):
        if sys.platform == "linux":
            assert resource.getrlimit(resource.RLIMIT_AS) != before
    assert resource.getrlimit(resource.RLIMIT_AS) == before


def test_sparse_files_of_10_gb(victim: Path) -> None:
    with (victim / WEIGHTS).open("r+b") as file:
        file.truncate(10 * 2**30)
    started = time.monotonic()
    report = probe(victim, ProbeOptions(mode=Mode.INSPECT))
    assert (report["status"], report["files"]["assets"][0]["bytes"] > 10 * 2**30) == ("ok", True)
    run = probe(victim, ProbeOptions(mode=Mode.ROWS, backend="reference", widths=(1, 2)))
    reasons = {gate["reason"] for gate in run["graphs"][0]["gates"]}
    assert all("the weights are 10.7 GB" in reason and "--weight-limit 11" in reason for reason in reasons)
    assert run["verdict"] == "partial"
    with (victim / SPEC).open("wb") as file:
        file.truncate(10 * 2**30)
    assert "larger than any such file should be" in refusal(victim)
    assert time.monotonic() - started < 10


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (Path.unlink, "names 'weight.bin', which is missing; export or download it again"),
        (_cut, "weight.bin: damaged or cut short (49,948 bytes); export or download it again"),
        (lambda path: path.write_bytes(b""), "weight.bin: damaged or cut short (0 bytes)"),
        (lambda path: path.write_bytes(b"noise" * 10_000), "weight.bin: damaged or cut short (50,000 bytes)"),
        (
            lambda path: path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 50000\n"),
            "a pointer of Git LFS, not the file; `git lfs pull` fetches it",
        ),
    ],
)
@pytest.mark.parametrize("backend", ["", "reference"])
def test_weights_that_did_not_arrive(victim: Path, damage: Callable[[Path], None], says: str, backend: str) -> None:
    damage(victim / WEIGHTS)
    assert says in refusal(victim, Mode.ROWS, backend)


@pytest.mark.parametrize(
    "constant",
    [
        'BLOBFILE(path = string("@model_path/weights/weight.bin"), offset = uint64(64))',
        'BLOBFILE(path = tensor<string, []>("@model_path/weights/weight.bin"), offset = tensor<uint64, []>(64))',
    ],
)
def test_weights_of_a_compiled_model(victim: Path, tmp_path: Path, constant: str) -> None:
    found = list(blobs_in_text(f"    tensor<fp16, [4]> w = const()[val = tensor<fp16, [4]>({constant})];\n"))
    assert found == [("@model_path/weights/weight.bin", 64)]
    with pytest.raises(PackageError, match=r"names 'weight\.bin', which is missing"):
        check(tmp_path, tmp_path, found)
    (tmp_path / "weights").mkdir()
    shutil.copy(victim / WEIGHTS, tmp_path / "weights")
    check(tmp_path, tmp_path, found)


def test_a_program_that_names_weights_elsewhere(victim: Path) -> None:
    from probes.coreml.proto import model_class

    found = model_class()()
    found.ParseFromString((victim / SPEC).read_bytes())
    block = found.mlProgram.functions["main"].block_specializations["CoreML8"]
    for operation in block.operations:
        value = operation.attributes.get("val")
        if value is not None and value.WhichOneof("value") == "blobFileValue":
            value.blobFileValue.fileName = "@model_path/../../../secret.bin"
    (victim / SPEC).write_bytes(found.SerializeToString())
    shutil.copy(victim / WEIGHTS, victim.parent / "secret.bin")
    run = probe(victim, ProbeOptions(mode=Mode.ROWS, backend="reference", widths=(1, 2)))
    assert run["verdict"] == "partial"
    assert all("leave the package" in gate["reason"] for gate in run["graphs"][0]["gates"])


def test_too_many_files(victim: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("probes.coreml.package.ENTRIES", 3)
    with pytest.raises(PackageError, match="more than 3 files"):
        locate(victim)


def test_a_file_in_place_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "x.mlpackage").write_text("x")
    assert "an .mlpackage is a folder, and this is a file" in refusal(tmp_path / "x.mlpackage")


def test_limits_of_what_is_read_whole(victim: Path) -> None:
    with pytest.raises(PackageError, match="larger than any such file"):
        read_bytes(victim, victim / SPEC, 100)


@pytest.mark.parametrize("text", ["[]", "7", '[{"inputSchema": 3}]', '[{"inputSchema": [[]], "outputSchema": [{}]}]'])
def test_compiled_metadata_that_describes_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.mlmodelc").mkdir()
    (tmp_path / "x.mlmodelc" / "metadata.json").write_text(text)
    report = probe(tmp_path / "x.mlmodelc", ProbeOptions(mode=Mode.INSPECT))
    assert report["verdict"] != "confirmed"
    assert report["status"] == "refused" or report["graphs"][0]["judgement"]["verdict"] != "eligible"


def test_compiled_text_of_long_and_odd_lines(tmp_path: Path) -> None:
    from probes.coreml import mil_text

    lines = [
        "func main<ios18>(" + "tensor<int32, [" * 200_000,
        " = " * 300_000,
        "x = (" * 200_000,
        "a(" + ", b = " * 200_000,
    ]
    started = time.monotonic()
    mil_text.functions("\n".join(["func f<ios18>(tensor<int32, [1]> x) {", *lines, "} -> (x);"]))
    assert time.monotonic() - started < 5


def test_json_in_the_manifest_is_not_trusted_with_size(victim: Path) -> None:
    with (victim / "Manifest.json").open("w") as file:
        file.write(json.dumps({"x": "y"}))
        file.truncate(64 * 2**20)
    assert "larger than any such file should be" in refusal(victim)


def test_the_child_is_what_reads(package: Callable[[str], Path]) -> None:
    # Parsing is done where it can be ended: the process of the command never sees the protobuf.
    before = set(sys.modules)
    probe(EXAMPLE, ProbeOptions(mode=Mode.INSPECT))
    assert "coremltools.proto.Model_pb2" not in set(sys.modules) - before


def test_a_program_that_wants_all_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """16 GB for one value: an error of that step, not the end of the machine."""
    import built_decoders as built
    from coremltools.converters.mil import Builder as mb
    from packages import quiet

    class Greedy(built._Body):
        def feed_forward(self, x: Any, layer: int) -> Any:
            length = mb.slice_by_index(x=mb.shape(x=x), begin=[1], end=[2])
            shape = mb.concat(values=[length, np.array([40_000, 100_000], np.int32)], axis=0)
            return mb.mul(x=x, y=mb.reduce_sum(x=mb.fill(shape=shape, value=np.float16(1)), name=f"greedy{layer}"))

    monkeypatch.setattr(built, "_Body", Greedy)
    with quiet():
        path = built.build(tmp_path / "greedy.mlpackage")
    started = time.monotonic()
    run = probe(path, ProbeOptions(mode=Mode.ROWS, backend="reference", widths=(1, 2)))
    assert time.monotonic() - started < 60
    assert run["verdict"] == "partial"
    assert all("MemoryError" in gate["reason"] for gate in run["graphs"][0]["gates"])
