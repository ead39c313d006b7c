"""Values by rank: sorting, top-k, and places in sorted boundaries."""

from __future__ import annotations

from auditor import dims, operators
from auditor.containers.lengths import integer
from auditor.interpreter import Interpreter
from auditor.places import Site, here
from auditor.torch import mixed_numbers, progressions, row_mixing, shapes
from auditor.torch.ops.elementwise import holds_rows_along
from auditor.torch.ops.op import first
from auditor.torch.pairs import named_pair
from auditor.torch.tensors import as_tensor, result, size, tagged, unknown_tensor
from auditor.values import NONE, Args, Const, Value, altered, merge_places
from auditor.values.tags import ARGMAX, CHOSEN, MOVED, TOPK


def topk(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = first(args)
    k = size(args.get(1, "k") or NONE)
    axis = integer(args.get(2, "dim"), -1)
    if site is not None and it.events is not None:
        it.events.experts.append(site)
    if t.shape is None or k is None or axis is None:
        made = unknown_tensor("top-k of a tensor that is not known", site, t)
    else:
        made = result(shapes.replace(t.shape, axis, k), t)
        if not dims.depends_on_query(k):  # of as many as there are nothing is left out: they are sorted
            made = row_mixing.pooled(it, made, t, (shapes.normal(axis, len(t.shape)),), site)
    made = tagged(altered(made, places=merge_places(here(site), made.places)), TOPK)
    indices = tagged(altered(made, dtype="int64"), ARGMAX)
    if axis is not None and made.shape == t.shape and mixed_numbers.are_of_rows(t, axis):
        largest = args.get(3, "largest")
        down = largest is None or operators.truth(largest) is not False
        made = mixed_numbers.sorted_(made, t, axis, down)
        indices = mixed_numbers.ranked(indices, t, axis, down)
    return named_pair(made, indices, ("values", "indices"))


def argsort(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = first(args)
    made = result(t.shape, t, dtype="int64", reason=t.reason)
    axis = integer(args.get(1, "dim"), -1)
    return mixed_numbers.ranked(tagged(made, CHOSEN), t, axis if axis is not None else -1, _goes_down(args))


def _goes_down(args: Args) -> bool:
    down = args.get(2, "descending")
    return down is not None and operators.truth(down) is not False


def sort(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = first(args)
    axis = args.get(1, "dim")
    axis = axis if isinstance(axis, Const) and type(axis.value) is int else args.kw.get("dim")
    made = row_mixing.along(it, result(t.shape, t), t, axis, -1, site, cached=False)
    along = integer(axis, -1)
    indices = tagged(altered(result(t.shape, t), dtype="int64"), CHOSEN)
    if along is not None:
        made = mixed_numbers.sorted_(made, t, along, _goes_down(args))
        indices = mixed_numbers.ranked(indices, t, along, _goes_down(args))
    if progressions.numbers(t) is not None:
        pass
    elif made.dtype.startswith(("int", "uint")):
        made = tagged(made, CHOSEN)
    elif holds_rows_along(t, along):
        made = tagged(made, MOVED)
    return named_pair(made, indices, ("values", "indices"))


def positions(it: Interpreter, args: Args, site: Site | None) -> Value:
    """Where each value would stand in sorted boundaries: as many numbers as there are values."""
    values = as_tensor(args.get(1, "input", "self") or NONE)
    if values is None:
        return unknown_tensor("searchsorted() of values that are not known", site, *args.pos)
    return altered(result(values.shape, values, first(args), reason=values.reason), dtype="int64")


def buckets(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = first(args)
    return altered(result(t.shape, t, reason=t.reason), dtype="int64")
