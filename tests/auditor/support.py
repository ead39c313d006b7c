"""Small repositories written for one test each, scanned, and what their graphs turned out to be."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from auditor.request import ScanRequest
from auditor.scan import scan
from rules.facts import FileResult, Graph, InvocationKind, Scan
from rules.verdict import Judgement, judge

ROOT = Path(__file__).parents[2]
MEMORY = 4 * 2**30
"""What a scan in a process of its own may address, in bytes."""

EXPORTER = """\
import argparse
import torch
from torch import nn
from torch.export import Dim
from coreai_torch import TorchConverter

VOCAB, HIDDEN, HEADS, LAYERS, CONTEXT = 128, 32, 4, 2, 512
STATES = ["keyCache", "valueCache"]


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(HIDDEN, 3 * HIDDEN)
        self.out = nn.Linear(HIDDEN, HIDDEN)

    def forward(self, x, position_ids, key_cache, value_cache):
        batch, rows, _ = x.shape
        q, k, v = self.qkv(x).view(batch, rows, 3, HEADS, HIDDEN // HEADS).permute(2, 0, 3, 1, 4)
        end = position_ids.shape[1]
        start = end - rows
        key_cache[:, :, start:end] = k
        value_cache[:, :, start:end] = v
        mask = position_ids[:, None, None, :] <= position_ids[:, None, start:, None]
        y = nn.functional.scaled_dot_product_attention(q, key_cache[:, :, :end], value_cache[:, :, :end], mask)
        y = y.transpose(1, 2).reshape(batch, rows, HIDDEN)
        return x + self.out(y)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, HIDDEN)
        self.layers = nn.ModuleList([Layer() for _ in range(LAYERS)])
        self.norm = nn.LayerNorm(HIDDEN)
        self.head = nn.Linear(HIDDEN, VOCAB)

    def forward(self, input_ids, position_ids, key_cache, value_cache):
        rows = input_ids.shape[1]
        x = self.embed(input_ids)
        for i, layer in enumerate(self.layers):
            x = layer(x, position_ids, key_cache[i], value_cache[i])
        x = self.norm(x)
        logits = self.head(x)
        return logits


def export(args):
    model = Model().eval()
    tokens = 1 if args.static else 8
    cache = torch.zeros(LAYERS, 1, HEADS, 64, HIDDEN // HEADS)
    inputs = {
        "input_ids": torch.zeros((1, tokens), dtype=torch.int32),
        "position_ids": torch.arange(16)[None],
        "key_cache": cache,
        "value_cache": cache.clone(),
    }
    dynamic = {
        "input_ids": None if args.static else {1: Dim("tokens", min=1, max=64)},
        "position_ids": {1: Dim("seen", min=1, max=CONTEXT)},
        "key_cache": {3: Dim("capacity", min=64, max=CONTEXT)},
        "value_cache": {3: Dim("capacity", min=64, max=CONTEXT)},
    }
    program = torch.export.export(model, (), inputs, dynamic_shapes=dynamic)
    converter = TorchConverter()
    converter.add_exported_program(
        program, input_names=["input_ids", "position_ids"], output_names=["logits"], state_names=STATES
    )
    converter.to_coreai().save_asset("out/model.aimodel")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--static", action="store_true")
    args = parser.parse_args()
    export(args)
"""
"""A dense decoder that is eligible by default: the ground on which mutations are made."""

CORE_ML = """\
import coremltools as ct
import numpy as np
import torch
from torch import nn

VOCAB, HIDDEN, HEADS, CONTEXT = 128, 32, 4, 512


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, HIDDEN)
        self.qkv = nn.Linear(HIDDEN, 3 * HIDDEN)
        self.head = nn.Linear(HIDDEN, VOCAB)
        self.register_buffer("keyCache", torch.zeros(1, HEADS, CONTEXT, HIDDEN // HEADS))
        self.register_buffer("valueCache", torch.zeros(1, HEADS, CONTEXT, HIDDEN // HEADS))

    def forward(self, input_ids, causal_mask):
        x = self.embed(input_ids)
        batch, rows, _ = x.shape
        q, k, v = self.qkv(x).view(batch, rows, 3, HEADS, HIDDEN // HEADS).permute(2, 0, 3, 1, 4)
        end = causal_mask.shape[-1]
        start = end - rows
        self.keyCache[:, :, start:end, :] = k
        self.valueCache[:, :, start:end, :] = v
        y = nn.functional.scaled_dot_product_attention(
            q, self.keyCache[:, :, :end], self.valueCache[:, :, :end], causal_mask
        )
        return self.head(x + y.transpose(1, 2).reshape(batch, rows, HIDDEN))


model = Model().eval()
traced = torch.jit.trace(model, (torch.zeros(1, 4, dtype=torch.int32), torch.zeros(1, 1, 4, 8)))
rows = ct.RangeDim(1, 64)
seen = ct.RangeDim(1, CONTEXT)
ids_shape = (1, rows)
mask_shape = (1, 1, rows, seen)
mlmodel = ct.convert(
    traced,
    inputs=[
        ct.TensorType(name="input_ids", shape=ids_shape, dtype=np.int32),
        ct.TensorType(name="causal_mask", shape=mask_shape, dtype=np.float16),
    ],
    outputs=[ct.TensorType(name="logits", dtype=np.float16)],
    states=[
        ct.StateType(ct.TensorType(shape=model.keyCache.shape, dtype=np.float16), name="keyCache"),
        ct.StateType(ct.TensorType(shape=model.valueCache.shape, dtype=np.float16), name="valueCache"),
    ],
)
mlmodel.save("out/model.mlpackage")
"""
"""The same for Core ML: a flexible query by RangeDim, the cache in buffers."""

_TAIL_TOP = """\
WIDTH, DYNAMIC, NAME, BUNDLE, STATES = 4, False, "main", "out/m.aimodel", ["keyCache", "valueCache"]
"""

_TAIL = """

import torch
from torch import nn
from torch.export import Dim
from coreai_torch import TorchConverter


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(64, 16)
        self.head = nn.Linear(16, 64)

    def forward(self, input_ids, key_cache, value_cache):
        x = self.embed(input_ids)
        key_cache[:, :, : x.shape[1]] = x[:, None]
        value_cache[:, :, : x.shape[1]] = x[:, None]
        return self.head(x)


example = {
    "input_ids": torch.zeros((1, WIDTH), dtype=torch.int32),
    "key_cache": torch.zeros(1, 1, 64, 16),
    "value_cache": torch.zeros(1, 1, 64, 16),
}
dims = {"input_ids": {1: Dim("s")} if DYNAMIC else None, "key_cache": None, "value_cache": None}
TorchConverter().add_exported_program(
    torch.export.export(Decoder(), (), example, dynamic_shapes=dims),
    input_names=["input_ids"], output_names=["logits"], state_names=STATES, entrypoint_name=NAME,
).to_coreai().save_asset(BUNDLE)
"""

_ORACLE = """
import json
print(json.dumps([int(WIDTH), bool(DYNAMIC), str(NAME), str(BUNDLE), list(STATES)]))
"""


def write(root: Path, files: Mapping[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return root


def scan_text(root: Path, files: Mapping[str, str | bytes], **request: Any) -> Scan:
    """Write the files below `root` and scan it; `request` are further fields of the request."""
    write(root, files)
    return scan(ScanRequest(root=root, **{"paths": (root,), "cache": False, **request}))


def scan_apart(root: Path, seconds: int) -> Scan:
    """Scan `root` in a process of its own, which may take `seconds` of CPU time, or wait for six times as long.

    Raises `TimeoutError`. CPU time, because other processes of a busy machine are not the scan's fault.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_scan_into, args=(root, seconds, sender))
    with warnings.catch_warnings():
        # Python warns of threads (those of an array library, say) that hold locks: the child only scans.
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    sender.close()
    try:
        if not receiver.poll(6 * seconds):
            raise TimeoutError(f"no result after {6 * seconds} s")
        result = receiver.recv()
    except EOFError:
        process.join()
        if process.exitcode == -signal.SIGXCPU:
            raise TimeoutError(f"no result after {seconds} s of CPU time") from None
        raise RuntimeError(f"the scan died with status {process.exitcode}") from None
    finally:
        process.kill()
        process.join()
    assert isinstance(result, Scan)
    return result


def _scan_into(root: Path, seconds: int, sender: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    with contextlib.suppress(ValueError, OSError):  # macOS has no such limit
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    sender.send(scan(ScanRequest(root=root, paths=(root,), cache=False)))


def default_graphs(result: Scan, script: str = "export.py") -> list[Graph]:
    return [g for g in result.graphs if g.script == script and g.invocation.kind is InvocationKind.DEFAULT]


def graph_of(result: Scan, script: str = "export.py") -> Graph:
    """The only graph that the script exports when it is run without arguments."""
    graphs = default_graphs(result, script)
    assert len(graphs) == 1, ([g.id for g in result.graphs], result.files)
    return graphs[0]


def judged(root: Path, script: str, **more: str | bytes) -> Judgement:
    """The judgement of the only graph of `export.py`."""
    return judge(graph_of(scan_text(root, {"export.py": script, **more})).facts)


def mutate(script: str, *edits: tuple[str, str]) -> str:
    """`script` with each (old, new) replaced; `old` occurs exactly once."""
    for old, new in edits:
        assert script.count(old) == 1, (script.count(old), old)
        script = script.replace(old, new)
    return script


def indented(lines: str | Iterable[str], by: int = 8) -> str:
    """The lines (of a text, when it is one), as the code of a method or, `by` 4, of a function."""
    return "".join(f"{' ' * by}{line}\n" for line in (lines.splitlines() if isinstance(lines, str) else lines))


def line_of(text: str, marker: str) -> int:
    """The number of the only line that has the marker."""
    found = [n for n, line in enumerate(text.splitlines(), 1) if marker in line]
    assert len(found) == 1, (marker, found)
    return found[0]


def file_of(result: Scan, path: str) -> FileResult:
    return next(f for f in result.files if f.path == path)


@dataclass(frozen=True, slots=True)
class Told:
    """What an export call receives; `None` where the evaluator does not know it. The width of a dynamic query is 0."""

    width: int | None
    dynamic: bool | None
    name: str | None
    bundle: str | None
    states: tuple[str, ...] | None

    def agrees(self, other: Told) -> bool:
        """Whether all that is known here is so there."""
        pairs = zip(astuple(self), astuple(other), strict=True)
        return all(mine is None or mine == theirs for mine, theirs in pairs)


def told_by_python(root: Path, snippet: str, argv: Sequence[str] = ()) -> Told:
    """What the snippet sets, by running it."""
    path = write(root, {"oracle_run.py": _TAIL_TOP + snippet + _ORACLE}) / "oracle_run.py"
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, path.name, *argv]
    ran = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    path.unlink()
    assert ran.returncode == 0, ran.stderr
    width, dynamic, name, bundle, states = json.loads(ran.stdout.splitlines()[-1])
    return Told(0 if dynamic else width, dynamic, name, bundle, tuple(states))


def told_by_the_scan(root: Path, snippet: str, argv: Sequence[str] = (), more: Mapping[str, str] | None = None) -> Told:
    """What the export call of the same snippet receives, by the evaluator."""
    recipe = f'[run]\nscript = "export.py"\nargs = {json.dumps(list(argv))}\n'
    result = scan_text(root, {"export.py": _TAIL_TOP + snippet + _TAIL, "recipe.toml": recipe, **(more or {})})
    runs = [g for g in result.graphs if g.invocation.recipe]
    assert len(runs) == 1, [(g.id, g.facts.query.reason) for g in runs]
    (graph,) = runs
    query, states = graph.facts.query.value, graph.facts.states.value
    dynamic = query.dynamic if query is not None else None
    width = (query.widths or (0,))[0] if query is not None else None
    names = tuple(s.name for s in states) if states is not None else None
    return Told(width, dynamic, _known(graph.graph), _known(graph.bundle), names)


def _known(text: str) -> str | None:
    return None if "*" in text else text
