"""States that go in and come out again as ordinary tensors."""

from __future__ import annotations

from collections.abc import Sequence

from auditor import dims
from auditor.forward import Outcome, query_dim
from auditor.graph_facts.declaration import Declaration, Declared
from auditor.graph_facts.evidence import evidence
from auditor.graph_facts.query import has_one_row
from auditor.roles import NO_STATE, cache_names, carried, is_cache_name, role_by_name, words
from auditor.values import Storage, Tensor
from auditor.values.tags import ANEW, MOVED
from rules.facts import Role, State


def carried_states(d: Declaration, others: Sequence[Declared], q: Declared | None) -> dict[str, Role]:
    """Inputs that come out again and are said to be a state, but no keys or values."""
    names = carried([i.name for i in others if i is not q], d.output_names or ())
    roles = {n: role_by_name(n) for n in names}
    states = {"state", "states", "cache"}
    found: dict[str, Role] = {
        n: r
        for n, r in roles.items()
        if r in (Role.CONV, Role.RECURRENT) or (r is Role.UNKNOWN and set(words(n)) & states)
    }
    if carries_only(others, q):
        found = {n: Role.RECURRENT if r is Role.UNKNOWN else r for n, r in found.items()}
    return found


def carries_only(others: Sequence[Declared], q: Declared | None) -> bool:
    """Whether all that goes in beside the token is numbers of fixed shape, and one token goes in at a time.

    Nothing then says at which position it stands, as a position, a mask or a length would: what comes out again cannot
    be a cache that is indexed by positions, and a network computes its next value from the one before. Hidden states
    that go through a part of a model are no such thing.
    """
    rest = [i for i in others if i is not q]
    return bool(rest) and has_one_row(q) and all(_is_fixed_numbers(i) for i in rest)


def _is_fixed_numbers(i: Declared) -> bool:
    v = i.value
    fixed = isinstance(v, Tensor) and i.axes == {} and v.dtype.startswith(("float", "bfloat"))
    return fixed and not set(words(i.name)) & _PLACED


_PLACED = {"position", "positions", "pos", "offset", "cos", "sin", "rope", "length", "len", "index", "step", *NO_STATE}


def by_outputs(d: Declaration, i: Declared, role: Role) -> State:
    """The state that an input is which comes out again."""
    shape = i.value.shape or () if isinstance(i.value, Tensor) else ()
    reason = f"`{i.name}` goes in and comes out as an ordinary tensor"
    return State(i.name, role, evidence(d.site, i.value), reason, tuple(map(str, shape)))


def through_outputs(
    d: Declaration, outcome: Outcome, states: set[str], width: int | None, placeless: bool
) -> list[State]:
    """Inputs of fixed shape that come out again computed from themselves: states by another way.

    Where more than one row goes in (`width`), those that keep the last rows are those of a convolution.
    """
    out = []
    caches = cache_names([i.name for i in d.inputs]) if cache_names(d.output_names or ()) else []
    back = carried([i.name for i in d.inputs], d.output_names or ())
    for i in d.inputs:
        if (
            i.name in {*states, *caches}
            or i.varying
            or is_cache_name(i.name)
            or not isinstance(i.value, Tensor)
            or i.value.shape is None
        ):
            continue
        tag = Storage(i.parameter or i.name).tag
        shape = i.value.shape
        given = [v for _, v in outcome.outputs if isinstance(v, Tensor) and tag in v.tags]
        if any(v.shape == shape or (placeless and _of_one_row(v) == shape) for v in given):
            role = role_by_name(i.name)
            anew = i.name in back and any(ANEW + tag in v.tags for v in given)  # else a hidden state goes through
            slides = width != 1 and i.name in back and any(MOVED in v.tags for v in given)
            known = role in (Role.CONV, Role.RECURRENT)
            computed = Role.RECURRENT if placeless or anew else Role.CONV if slides else Role.UNKNOWN
            role = role if known else computed
            reason = f"the input `{i.name}` comes out again, computed from itself"
            out.append(State(i.name, role, evidence(d.site, i.value), reason, tuple(map(str, shape))))
    return out


def comes_out_anew(i: Declared, outcome: Outcome) -> bool:
    """Whether an output is computed anew from all that the input `i` holds."""
    tag = ANEW + Storage(i.parameter or i.name).tag
    return any(isinstance(v, Tensor) and tag in v.tags for _, v in outcome.outputs)


def _of_one_row(v: Tensor) -> tuple[dims.Dim, ...]:
    """The shape for a query of one token, which may be an item of a batch: `[1]`."""
    return tuple(1 if d == query_dim() else d for d in v.shape or ())
