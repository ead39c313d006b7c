"""`tensor[...]`: integers, slices, `None`, `...`, masks and index tensors."""

from __future__ import annotations

from auditor import dims
from auditor.dims import Dim
from auditor.interpreter import Interpreter
from auditor.places import Site
from auditor.torch import positions, rows, shared_positions
from auditor.torch.keys import in_one_place, wraps_at
from auditor.torch.masks import first_rows
from auditor.torch.shapes import Shape, broadcast, slice_length
from auditor.torch.tensors import result, size, unknown_tensor
from auditor.values import Const, Num, Seq, Tensor, Union, Unknown, Value, altered, is_none
from auditor.values.tags import BEHIND, GROWN, MOVED, ONE_PLACE, ROWWISE, TRIANGLE, TURNED, WRAPS


def index_tensor(it: Interpreter, tensor: Tensor, key: Value, site: Site) -> Value:
    """The tensor that `tensor[key]` is. A slice or integer that leaves one row of several is recorded as a cut."""
    if tensor.shape is None:
        return altered(tensor, places=tensor.places or (site,))
    parts = list(key.items) if isinstance(key, Seq) and key.kind == "tuple" else [key]
    if any(isinstance(p, Union) for p in parts):
        n = next(i for i, p in enumerate(parts) if isinstance(p, Union))
        return it.each(
            parts[n], lambda o: index_tensor(it, tensor, Seq("tuple", [*parts[:n], o, *parts[n + 1 :]]), site)
        )
    shape = tensor.shape
    used = sum(1 for p in parts if not is_none(p) and not _is_ellipsis(p))
    if any(isinstance(p, Tensor) and p.dtype == "bool" for p in parts):
        return unknown_tensor("a boolean mask selects rows", site, tensor)
    if used > len(shape):
        return unknown_tensor("more indices than dimensions", site, tensor)
    out: list[Dim] = []
    cut = elsewhere = False
    indices: list[Shape] = []
    starts: list[tuple[int, Dim | None]] = []
    numbers: list[Value] = []
    spans: list[Seq] = []
    index_at = 0
    axis = 0
    for p in parts:
        if _is_ellipsis(p):
            skip = len(shape) - used
            out += shape[axis : axis + skip]
            axis += skip
        elif is_none(p):
            out.append(1)
        elif isinstance(p, Seq) and p.kind == "slice":
            kept = _sliced(shape[axis], p)
            if kept is None:
                return unknown_tensor("a slice whose bounds are not known", site, tensor)
            cut = cut or (dims.depends_on_query(shape[axis]) and not dims.depends_on_query(kept))
            stepped = isinstance(p.items[2], Const) and p.items[2].value in (None, 1)
            elsewhere = elsewhere or (dims.depends_on_query(shape[axis]) and not stepped)
            if TRIANGLE in tensor.tags:
                starts.append((axis, 0 if is_none(p.items[0]) else size(p.items[0])))
            if Tensor in map(type, p.items):
                shared_positions.places(it.events, p)
                spans.append(p)
            if kept == 1 and (type(shape[axis]) is not int or not isinstance(p.items[0], Const)):
                numbers.append(p.items[0])
            out.append(kept)
            axis += 1
        elif isinstance(p, (Tensor, Seq)):
            if not indices:
                index_at = len(out)
            inner = _index_shape(p)
            if inner is None:
                return unknown_tensor("an index tensor of unknown shape", site, tensor, p)
            if dims.depends_on_query(shape[axis]) and not any(dims.depends_on_query(d) for d in inner):
                cut = True
            elsewhere = elsewhere or dims.depends_on_query(shape[axis])
            indices.append(inner)
            axis += 1
        elif isinstance(p, (Const, Num)) or (isinstance(p, Unknown) and p.kind in ("int", "data")):
            cut = cut or dims.depends_on_query(shape[axis])
            if type(shape[axis]) is not int or not isinstance(p, Const):
                numbers.append(p)
            axis += 1
        else:
            return unknown_tensor("an index that is not known", site, tensor, p)
    out += shape[axis:]
    if indices:
        out[index_at:index_at] = broadcast(indices)
    made = result(tuple(out), tensor, *(p for p in parts if isinstance(p, Tensor)), site=site)
    if indices and not made.tags.isdisjoint(ROWWISE):
        made = positions.looked_up(made)
    elif numbers:
        made = positions.taken(made, tensor, *numbers)
    for span in spans:
        made = positions.spanned(made, tensor, span)
    made.base = tensor.base
    if made.base is None and not indices:
        made.of = tensor
    if tensor.pick is not None and all(map(_is_new_axis_or_all, parts)):
        made.pick = tensor.pick.seen
    made = rows.other(it, made, elsewhere)
    for at, start in starts:
        made = first_rows(made, tensor, at, start)
    if BEHIND in tensor.tags:
        made = rows.cut_behind(made, parts, site)
    if made.base is not None and wraps_at(key):
        made.tags = made.tags | {WRAPS}
    if made.base is not None and in_one_place(key):
        made.tags = made.tags | {ONE_PLACE}
        made = positions.from_zero(made, tensor)
    elif made.base is None and TURNED in tensor.tags and in_one_place(key):
        made = positions.from_zero(made, tensor)
    if GROWN in made.tags and any(isinstance(p, Seq) for p in parts):
        made.tags = made.tags | {MOVED}
    if cut:
        made.cuts = (*made.cuts, site) if site not in made.cuts else made.cuts
    return made


def _is_new_axis_or_all(p: Value) -> bool:
    whole = isinstance(p, Seq) and p.kind == "slice" and all(map(is_none, p.items))
    return whole or is_none(p) or _is_ellipsis(p)


def _is_ellipsis(p: Value) -> bool:
    return isinstance(p, Const) and p.value is ...


def _index_shape(p: Value) -> Shape | None:
    if isinstance(p, Tensor):
        return p.shape
    if isinstance(p, Seq) and p.exact:
        return (len(p.items),)
    return None


def _sliced(length: Dim, bounds: Seq) -> Dim | None:
    values: list[Dim | None] = []
    for v in bounds.items:
        if is_none(v):
            values.append(None)
            continue
        if isinstance(v, Union) and any(is_none(o) for o in v.options):
            return None  # a bound that may be left out
        d = size(v)
        if d is None and isinstance(v, Unknown):
            d = v.dim
        if d is None:
            return None
        values.append(d)
    start, stop, step = values
    if step is not None and not isinstance(step, int):
        return None
    return slice_length(length, start, stop, step or 1)
