"""What `torch.jit.trace` decides once for all calls: constants, branches taken, the least of two lengths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from auditor import dims, operators
from auditor.joins import union
from auditor.places import Site, here
from auditor.roles import role_by_name
from auditor.values import Const, Num, Seq, Tensor, Union, Value, as_dim, merge_places
from auditor.values.tags import INPUT
from rules.facts import Role

Example = Mapping[dims.Atom, int]
"""What the flexible dimensions of the inputs were when the model was traced, as far as it is known."""


def differs(v: Value) -> bool:
    """Whether a number, or the numbers in a tensor or sequence, differ from one call of the graph to the next."""
    match v:
        case Tensor(tags=tags, base=base):
            # the content of a state, too: of other buffers it is the same in any call
            kept = base is not None and base.role == "buffer" and role_by_name(base.name) is not Role.UNKNOWN
            return INPUT in tags or kept
        case Seq(items=items) | Union(options=items):
            return any(map(differs, items))
    return operators.is_flexible(v)


def told(v: Value) -> str:
    if isinstance(v, Num):
        return f"the length `{v.dim}`"
    return "the values of a tensor" if isinstance(v, Tensor) else "a length"


def constant(value: Value, site: Site | None, what: str) -> Num:
    """The number that `what` makes of `value`: whatever it was in the example, in every later call."""
    dim = value.dim if isinstance(value, Num) else None
    atom = dims.Atom(f"{what[:-1]}{dim or ''})" if what.endswith(")") else what, traced=True, minimum=0)
    return Num(dims.symbol(atom), places=merge_places(value.places, here(site)), flags=value.flags)


def compared(example: Example, op: str, a: Value, b: Value) -> Value | None:
    """A comparison of dimensions as it went in the example; None where it can be decided for every call."""
    if op in ("in", "not in") and isinstance(b, Seq) and b.exact and (differs(a) or any(map(differs, b.items))):
        seen = [_at(v, example) for v in (a, *b.items)]
        found = None if None in seen else (seen[0] in seen[1:]) == (op == "in")
    elif op in operators.COMPARE and (differs(a) or differs(b)):
        x, y = _at(a, example), _at(b, example)
        found = None if x is None or y is None else bool(operators.COMPARE[op](x, y))
    else:
        return None
    if found is None:
        return operators.unknown_from("which way a comparison went when the model was traced", "bool", a, b)
    return operators.derived(found, a, b)


def least(example: Example, values: Sequence[Value], name: str) -> Value | None:
    """The `min` or `max` of dimensions as the example picked it: one of them, in every later call."""
    if not any(map(differs, values)):
        return None
    seen = [_at(v, example) for v in values]
    known = [s for s in seen if s is not None]
    if len(known) < len(seen):
        return union(values)
    return values[seen.index(min(known) if name == "min" else max(known))]


def _at(v: Value, example: Example) -> int | float | None:
    if isinstance(v, Const) and isinstance(v.value, (int, float)):
        return v.value
    d = as_dim(v)
    return dims.at(d, example) if d is not None else None
