"""`forward`, run on the inputs that an export call declares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from auditor import dims
from auditor.forward import Input, Outcome, evaluate, query_dim, symbolic
from auditor.graph_facts.declaration import Declaration, Declared, Dimension
from auditor.graph_facts.query import is_hint, query_axis
from auditor.interpreter import Interpreter
from auditor.objects.inheritance import class_lookup
from auditor.ranks import unpacked_rank
from auditor.torch.tensors import tagged
from auditor.values import Function, Instance, Tensor
from auditor.values.tags import BESIDE, TOKENS


def run_forward(it: Interpreter, d: Declaration, q: Declared | None) -> tuple[Outcome, bool]:
    """`forward` on a symbolic query; on the declared width when the symbolic one cannot be followed (then True)."""
    inputs = _inputs(d, q, query_dim())
    outcome = evaluate(it, d.module, inputs, d.site, _example(d, inputs))
    if _followed(outcome) or q is None or not isinstance(q.value, Tensor) or q.value.shape is None:
        return outcome, False
    axis = query_axis(q)
    if q.axes is None or axis in q.axes or axis >= len(q.value.shape):
        return outcome, False
    if q.value.shape[axis] == 1:
        return outcome, False  # one row tells nothing about the rows of a longer query
    inputs = _inputs(d, q, q.value.shape[axis])
    second = evaluate(it, d.module, inputs, d.site, _example(d, inputs))
    return (second, True) if _followed(second) else (outcome, False)


def _followed(outcome: Outcome) -> bool:
    if outcome.reason is not None or not outcome.outputs:
        return False
    first = outcome.outputs[0][1]
    return isinstance(first, Tensor) and first.shape is not None and first.reason is None


def _inputs(d: Declaration, q: Declared | None, width: dims.Dim) -> tuple[Input, ...]:
    shared = (q.axes or {}).get(query_axis(q)) if q is not None else None
    out = []
    for n, i in enumerate(d.inputs):
        axes = {a: x.label for a, x in (i.axes or {}).items() if x.dynamic or x.widths}
        rows = {
            a
            for a, x in (i.axes or {}).items()
            if shared is not None and x.source is not None and _same_dimension(x, shared)
        }
        if i is q:
            rows.add(query_axis(i))
        traced = d.traced is not None
        name = i.parameter or i.name
        tensor = symbolic(i.value, rows, axes, name, width, traced=traced)
        if tensor is not None and tensor.dtype.startswith(("int", "uint", "bool")):
            tensor = tagged(tensor, TOKENS if i is q else BESIDE)
        out.append(Input(name, i.value, tensor, n))
    return tuple(out)


def _same_dimension(a: Dimension, b: Dimension) -> bool:
    """Whether two axes have one length: by one dimension, by two of `torch.export` with one name, or by one list."""
    listed = bool(a.widths) and a.widths == b.widths  # enumerated shapes go together by their index
    return listed or (not is_hint(a.source) and (a.source is b.source or a.label == b.label != ""))


def _example(d: Declaration, inputs: Sequence[Input]) -> dict[dims.Atom, int] | None:
    """What the flexible dimensions were in the trace; one that two inputs tell differently is left out."""
    if d.traced is None:
        return None
    seen: dict[dims.Atom, set[int]] = {}
    for i in inputs:
        given = d.traced.get(i.name)
        shape = given.shape if isinstance(given, Tensor) else None
        for mine, theirs in zip((i.tensor.shape if i.tensor else None) or (), shape or (), strict=False):
            if isinstance(mine, dims.Poly) and isinstance(theirs, int):
                for atom in mine.atoms:
                    seen.setdefault(atom, set()).add(theirs)
    return {atom: found.pop() for atom, found in seen.items() if len(found) == 1}


def with_ranks(d: Declaration) -> Declaration:
    """The declaration with as much of an unknown example's shape as `forward` says: its number of axes."""
    unshaped = [i for i in d.inputs if isinstance(i.value, Tensor) and i.value.shape is None]
    function = _forward_of(d) if unshaped else None
    if function is None:
        return d
    inputs = list(d.inputs)
    for i in unshaped:
        rank = unpacked_rank(function, i.parameter or i.name)
        if rank is not None and isinstance(i.value, Tensor):
            shape = tuple(dims.symbol(dims.Atom(f"{i.name}.shape[{axis}]")) for axis in range(rank))
            inputs[inputs.index(i)] = replace(i, value=replace(i.value, shape=shape, reason=None))
    return replace(d, inputs=tuple(inputs))


def _forward_of(d: Declaration) -> Function | None:
    """The `forward` of the exported module, when it is a function of the sources."""
    if not isinstance(d.module, Instance):
        return None
    found, _ = class_lookup(d.module.cls, "forward")
    return found if isinstance(found, Function) and found.wrapped is None and "forward" not in d.module.attrs else None
