"""New tensors: filled, counted, or made of Python's data."""

from __future__ import annotations

from collections.abc import Sequence

from auditor import dims
from auditor.interpreter import Interpreter
from auditor.places import Site, here
from auditor.torch import mask_sides, positions, progressions, shapes, vectors
from auditor.torch.masks import alike, triangular
from auditor.torch.ops.op import Op, first
from auditor.torch.shapes import Shape
from auditor.torch.tensors import (
    as_tensor,
    dtype_of,
    flatten_items,
    is_scalar,
    result,
    size,
    sizes,
    tagged,
    unknown_tensor,
)
from auditor.values import (
    NO_FLAGS,
    NONE,
    Args,
    Const,
    Num,
    Seq,
    Star,
    Tensor,
    Unknown,
    Value,
    altered,
    merge_flags,
    merge_places,
)
from auditor.values.tags import WRAPS


def filled(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`empty`, `rand`, `randn`, ...: sizes first."""
    given = args.pos or [args.kw[k] for k in ("size", "shape") if k in args.kw]
    return _made(it, given, args, site)


def filled_with(number: int) -> Op:
    """`zeros` and `ones`: sizes first."""
    return lambda it, args, site: _constant(it, filled(it, args, site), Const(number))


def full(it: Interpreter, args: Args, site: Site | None) -> Value:
    made, value = _made(it, [args.get(0, "size", "shape") or NONE], args, site), args.get(1, "fill_value") or NONE
    whole = isinstance(value, Num) or (isinstance(value, Const) and type(value.value) is int)
    if isinstance(made, Tensor) and whole and not dtype_of(args):
        made.dtype = "int64"
    return _constant(it, made, value)


def like(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`zeros_like`, ...: the shape of a tensor, and nothing of what it holds."""
    t = first(args)
    made = result(t.shape, t, site=site, dtype=dtype_of(args))
    made.tags = NO_FLAGS
    return made


def like_with(number: int | None) -> Op:
    """`zeros_like`, `ones_like` and (None) `full_like`."""

    def run(it: Interpreter, args: Args, site: Site | None) -> Value:
        value = Const(number) if number is not None else args.get(1, "fill_value") or NONE
        return _constant(it, like(it, args, site), value)

    return run


def _constant(it: Interpreter, made: Value, value: Value) -> Value:
    """`made`, filled with one number: what `forward` makes so is no parameter or buffer, which a file may fill."""
    if not isinstance(made, Tensor) or not is_scalar(value):
        return made
    if it.events is None:
        return mask_sides.filled(made, value)
    made.data = value if isinstance(value, Num) or (isinstance(value, Const) and value.value is not None) else None
    made = made if made.data is not None else mask_sides.filled(made, value)
    made = alike(made)
    return positions.of_length(made, value) if isinstance(value, Num) else made


def randint(it: Interpreter, args: Args, site: Site | None) -> Value:
    given = next((a for a in (*reversed(args.pos), args.kw.get("size")) if isinstance(a, Seq)), None)
    if given is None:
        return unknown_tensor("randint() with sizes that are not known", site)
    made = _made(it, [given], args, site)
    return altered(made, dtype=dtype_of(args) or "int64") if isinstance(made, Tensor) else made


def arange(it: Interpreter, args: Args, site: Site | None) -> Value:
    bounds = [size(a) for a in args.pos] or [size(args.kw.get("end", NONE))]
    if any(b is None for b in bounds) or not bounds:
        return unknown_tensor("arange() with bounds that are not known", site, *args.pos)
    known = [b for b in bounds if b is not None]
    start, stop = (0, known[0]) if len(known) == 1 else (known[0], known[1])
    if len(known) > 2 and known[2] == -1:
        length = dims.sub(start, stop)
    elif isinstance(start, dims.Poly):
        length = dims.sub(stop, start)
    else:
        length = shapes.slice_length(stop, start, None, known[2] if len(known) > 2 and isinstance(known[2], int) else 1)
    made = Tensor((length,), dtype_of(args) or "int64", places=here(site), flags=_flags(args.pos))
    by = known[2] if len(known) > 2 else 1
    progressions.progression(made, start, by if isinstance(by, int) else None)
    return positions.of_length(made, *args.pos) if length == 1 else made


def linspace(it: Interpreter, args: Args, site: Site | None) -> Value:
    steps = size(args.get(2, "steps", "num") or NONE)
    if steps is None:
        return unknown_tensor("linspace()", site)
    made = Tensor((steps,), "float32", places=here(site))
    start, end = (size(args.get(n, name) or NONE) for n, name in enumerate(("start", "end")))
    if start is not None and end is not None and dims.sub(end, start) == dims.sub(steps, 1):
        return progressions.progression(made, start, 1)
    return progressions.progression(made, 0, None) if dims.is_query(steps) else made


def eye(it: Interpreter, args: Args, site: Site | None) -> Value:
    n = size(args.pos[0])
    m = size(args.pos[1]) if len(args.pos) > 1 else n
    return (
        Tensor((n, m), dtype_of(args, "float32")) if n is not None and m is not None else unknown_tensor("eye()", site)
    )


def causal_bias(last: bool) -> Op:
    """`torch.nn.attention.bias`: a triangle in which the first row sees the first key, or the `last` one the last."""

    def run(it: Interpreter, args: Args, site: Site | None) -> Value:
        shape = sizes(it, args.pos, site)
        if shape is None or len(shape) != 2:
            return unknown_tensor("a causal bias of a size that is not known", site, *args.pos)
        made = Tensor(tuple(shape), "bool", places=here(site), flags=_flags(args.pos))
        return triangular(made, dims.sub(shape[1], shape[0]) if last else 0)

    return run


def meshgrid(it: Interpreter, args: Args, site: Site | None) -> Value:
    tensors = [as_tensor(a) for a in (args.pos[0].items if args.pos and isinstance(args.pos[0], Seq) else args.pos)]
    known = [t for t in tensors if t is not None and t.shape]
    if len(known) != len(tensors):
        return Seq("tuple", [unknown_tensor("meshgrid()", site)] * len(tensors))
    shape = tuple((t.shape or (1,))[0] for t in known)
    return Seq("tuple", [result(shape, *known)] * len(known))


def from_data(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`torch.tensor` and the like: nested sequences or numbers."""
    value = args.get(0, "data", "object")
    if value is None:
        return unknown_tensor("a tensor of data that is not known", site)
    if isinstance(value, Tensor):
        return altered(value, dtype=dtype_of(args) or value.dtype)
    shape = None if isinstance(value, Unknown) and value.kind == "data" else data_shape(value)
    if shape is None:
        return unknown_tensor("a tensor of data that is not known", site, value)
    leaves = flatten_items(value)
    if it.events is not None:
        it.events.bakes(Seq("list", [n for n in leaves if not isinstance(n, Tensor)]), site, "torch.tensor()")
    whole = "int64" if leaves and all(map(_is_whole, leaves)) else ""
    made = Tensor(shape, dtype_of(args, whole), places=here(site), flags=_flags([value]))
    if len(leaves) == 1:
        made.data = leaves[0]
    else:
        made = vectors.of_numbers(made, leaves)
    if Num in map(type, leaves):
        made = positions.of_length(made, *leaves)
    tags = [t for leaf in leaves for t in _leaf_tags(leaf)]
    return tagged(made, *tags) if tags else made


def _is_whole(leaf: Value) -> bool:
    return isinstance(leaf, Num) or (isinstance(leaf, Const) and type(leaf.value) is int)


def _leaf_tags(leaf: Value) -> frozenset[str]:
    if isinstance(leaf, Tensor):
        return leaf.tags
    return frozenset({WRAPS}) if isinstance(leaf, Num) and leaf.dim.wraps else frozenset()


def data_shape(value: Value) -> Shape | None:
    if isinstance(value, Seq):
        if value.count is None:
            return None
        head = value.items[0] if value.items else None
        inner = () if head is None else data_shape(head.items[0] if isinstance(head, Star) else head)
        return None if inner is None else (value.count, *inner)
    if isinstance(value, Tensor):
        return value.shape
    if isinstance(value, (Const, Num)) or (
        isinstance(value, Unknown) and value.kind in ("int", "float", "bool", "data")
    ):
        return ()
    return None


def _made(it: Interpreter, given: Sequence[Value], args: Args, site: Site | None) -> Value:
    target = sizes(it, given, site)
    if target is None:
        return unknown_tensor("a tensor made with sizes that are not known", site, *given)
    places: tuple[Site, ...] = here(site)
    sized: tuple[frozenset[str], ...] = ()
    flags = _flags(given)
    if it.events is None:  # an example input: its sizes are told back to where they stand
        items = [v for s in given for v in flatten_items(s)]
        places = _told_back(places, items, len(target))
        sized = tuple(v.flags for v in items) if flags and len(items) == len(target) else ()
    made = Tensor(tuple(target), dtype_of(args, "float32"), places=places, flags=flags, sized=sized)
    if any(isinstance(d, dims.Poly) and d.wraps for d in target):
        made = tagged(made, WRAPS)
    return made


def _told_back(made: tuple[Site, ...], sizes: list[Value], rank: int) -> tuple[Site, ...]:
    """Where the sizes of an example stand, the number of positions last: with the call itself when it is a literal."""
    if rank != len(sizes) or not 1 < rank < 4:
        return merge_places(made, *(v.places for v in sizes))
    last = merge_places(made, sizes[1].places)
    lines = {(p.path, p.line) for p in last}
    others = merge_places(*(v.places for n, v in enumerate(sizes) if n != 1))
    return merge_places([p for p in others if (p.path, p.line) not in lines], last)


def _flags(values: Sequence[Value]) -> frozenset[str]:
    return merge_flags([*values, *(v for s in values for v in flatten_items(s))])
