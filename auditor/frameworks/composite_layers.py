"""Composite layers of coreai-torch, as the tables describe them."""

from __future__ import annotations

from typing import Any

from auditor import dims
from auditor.frameworks.gathering import gather_matmul
from auditor.frameworks.tables import tables
from auditor.interpreter import Interpreter
from auditor.operators import truth
from auditor.places import Site
from auditor.torch import shared_positions
from auditor.torch.layers import Forward, Shaper, attribute, layer
from auditor.torch.ops.products import attended
from auditor.torch.tensors import as_tensor, result, unknown_tensor
from auditor.values import FALSE, Args, Instance, NativeClass, Seq, Tensor, Value


def _layers() -> dict[str, Value]:
    out: dict[str, Value] = {}
    for spec in tables().layers:
        made = layer(spec["name"].rsplit(".", 1)[-1], spec.get("parameters", ""), _forward(spec), _weights(spec))
        made.name = spec["name"]
        out[spec["name"]] = made
    for spec in tables().layers:
        for attribute_name, part in spec.get("parts", {}).items():
            owner, cls = out[spec["name"]], out[part]
            if isinstance(owner, NativeClass):
                owner.attributes[attribute_name] = Instance(cls)
    return out


def _weights(spec: dict[str, Any]) -> Shaper | None:
    declared = spec.get("weights")
    if not declared:
        return None

    def shapes(obj: Instance) -> dict[str, tuple[dims.Dim, ...] | None]:
        out: dict[str, tuple[dims.Dim, ...] | None] = {}
        for name, parameters in declared.items():
            found = [attribute(obj, p) for p in parameters]
            out[name] = None if None in found else tuple(f for f in found if f is not None)
        return out

    return shapes


def _forward(spec: dict[str, Any]) -> Forward:
    def forward(it: Interpreter, obj: Instance, args: Args, site: Site | None) -> Value:
        if "attention" in spec:
            return attended(it, args, truth(obj.attrs.get("is_causal", FALSE)) is True, site)
        if "gather_matmul" in spec:
            return gather_matmul(it, obj, args, site)
        if "returns" in spec:
            return Seq("tuple", [_like(args, r["like"], site) for r in spec["returns"]])
        made = _like(args, spec["like"], site)
        at = args.kw.get(spec["positions"]) or args.get(1) if "positions" in spec else None
        return shared_positions.stands_at(it.events, made, at, site)

    return forward


_POSITIONS = {"query": 0, "key": 1, "value": 2, "g": 3, "beta": 4, "initial_state": 5}


def _like(args: Args, name: str, site: Site | None) -> Tensor:
    value = args.kw.get(name) or args.get(_POSITIONS.get(name, 0))
    t = as_tensor(value) if value is not None else None
    return result(t.shape, *args.pos, *args.kw.values()) if t is not None else unknown_tensor(f"no `{name}`", site)


NATIVES = _layers()
