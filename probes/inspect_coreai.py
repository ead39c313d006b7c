"""Inspection of an `.aimodel` with coreai-core, without running it: the summary, and the program where it is small."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from probes.backend import BackendError, Inspection
from probes.signature import DYNAMIC, Port, Signature

PROGRAM_LIMIT = 512 * 2**20
"""Programs beyond this many bytes are not read as text: reading one costs as much memory as its weights."""

_TYPE = re.compile(r"\((?P<dtype>\w+), ?(?P<dims>[^)]*)\)|\((?P<scalar>\w+)\)")
_GRAPH = re.compile(r"coreai\.graph (?:\w+ )*@(?P<name>[\w.$-]+)")
_CALL = re.compile(r"coreai\.invoke @(?P<name>[\w.$-]+)")
_WINDOW = re.compile(r"window_size\"? ?= ?(?P<size>\d+)")


def inspect(path: str) -> Inspection:
    """Every entry point of the asset at `path`, in the asset's order."""
    from coreai.authoring import AIModelAsset

    asset = AIModelAsset.load(path)
    summary = asset.summary(include_statistics=False)
    if summary is None or not summary.function_names:
        # A program that cannot be parsed has no functions here, and asking for its text would end the process.
        raise BackendError("no entry point can be read from main.mlirb: it is corrupt or cut short; export it again")
    signatures = tuple(
        Signature(
            name,
            _ports(summary.function_inputs(name)),
            _ports(summary.function_states(name)) if hasattr(summary, "function_states") else (),
            _ports(summary.function_outputs(name)),
        )
        for name in summary.function_names
    )
    programs, unseen = _programs(asset, Path(path), [signature.name for signature in signatures])
    return Inspection(signatures, programs, unseen)


def _ports(rows: Iterable[tuple[str, str]]) -> tuple[Port, ...]:
    return tuple(port(name, text) for name, text in rows)


def port(name: str, text: str) -> Port:
    """A port from the summary's words, such as `NDArray (Float16, 2 × 1 × 2 × ? × 16)`."""
    match = _TYPE.search(text)
    if match is None:
        return Port(name, (), text.strip() or "unknown")
    if match["scalar"]:
        return Port(name, (), match["scalar"].lower())
    dims = [part.strip() for part in match["dims"].split("×")]
    return Port(name, tuple(DYNAMIC if dim == "?" else int(dim) for dim in dims if dim), match["dtype"].lower())


def _programs(asset: Any, path: Path, names: list[str]) -> tuple[dict[str, dict[str, Any]], tuple[str, ...]]:
    size = (path / "main.mlirb").stat().st_size
    if size > PROGRAM_LIMIT:
        return {}, (
            f"the program was not read ({size / 2**20:.0f} MB): sliding windows and experts were not looked for",
        )
    try:
        module = asset.program._module._mlir_module
        text = module.operation.get_asm(large_elements_limit=8, large_resource_limit=8)
    except Exception as error:
        return {}, (f"the program could not be read ({type(error).__name__}): windows and experts were not looked for",)
    return programs(text, names), ()


def programs(text: str, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """What the program text shows of each entry point and of the composites that it calls."""
    bodies: dict[str, str] = {}
    starts = [(match.start(), match["name"]) for match in _GRAPH.finditer(text)]
    for (start, name), (end, _) in zip(starts, [*starts[1:], (len(text), "")], strict=True):
        bodies[name] = text[start:end]
    found = {}
    for name in names:
        reached, queue = set(), [name]
        while queue:
            current = queue.pop()
            if current in reached or current not in bodies:
                continue
            reached.add(current)
            queue.extend(match["name"] for match in _CALL.finditer(bodies[current]))
        body = "".join(bodies[one] for one in sorted(reached))
        windows = sorted({int(match["size"]) for match in _WINDOW.finditer(body)} - {0})
        found[name] = {"windows": windows, "experts": "gather_mm" in body or "gather_matmul" in body}
    return found
