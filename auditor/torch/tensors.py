"""Making tensors from arguments, and carrying along what went into them."""

from __future__ import annotations

from collections.abc import Sequence

from auditor import dims
from auditor.containers.iteration import iterate
from auditor.dims import Dim
from auditor.interpreter import Interpreter
from auditor.places import Site, here
from auditor.torch import recurrences, shared_positions
from auditor.torch.masks import still_unmasked
from auditor.torch.shapes import Shape
from auditor.values import (
    NO_FLAGS,
    Args,
    Const,
    External,
    Num,
    Seq,
    Star,
    Tensor,
    Union,
    Unknown,
    Value,
    altered,
    as_data,
    as_dim,
    is_none,
    merge_places,
)
from auditor.values.tags import OF_ALL, OWN, RENEWED, ROWWISE, WRAPS


def result(
    shape: Shape | None, *sources: Value, site: Site | None = None, reason: Unknown | None = None, dtype: str = ""
) -> Tensor:
    """A tensor computed from `sources`: cuts, tags and unread parts are carried along."""
    tensors: list[Tensor] = []
    tags = flags = NO_FLAGS
    cuts: tuple[Site, ...] = ()
    places: tuple[Site, ...] = ()
    for s in sources:
        if s.flags:
            flags = flags | s.flags
        if isinstance(s, Tensor):
            tensors.append(s)
            if s.base is not None:
                s.base.read = True
                tags = tags | s.handed_on
            elif s.tags:
                tags = tags | s.tags
        elif isinstance(s, Unknown) and not is_scalar(s):
            reason = reason or s
    if tensors:
        dtype = dtype or tensors[0].dtype
        cuts, places = tensors[0].cuts, tensors[0].places
        if len(tensors) > 1:
            cuts, places = merge_places(*[t.cuts for t in tensors]), merge_places(*[t.places for t in tensors])
        if tags and len(tensors) > 1:
            kept = still_unmasked(tags, tensors)
            rowwise = not tags.isdisjoint(ROWWISE)
            tags = tags - OWN | kept
            if tags & OF_ALL:
                tags = tags - (OF_ALL - frozenset.intersection(*(t.tags for t in tensors)))
            if rowwise:
                tags = shared_positions.carried(tags, tensors)
            if RENEWED in tags:
                tags = recurrences.carried(tags, tensors)
        if reason is None:
            reason = next((t.reason for t in tensors if t.reason is not None), None)
    return Tensor(
        shape,
        dtype,
        reason,
        cuts,
        tags,
        places=places if site is None else merge_places(places, (site,)),
        flags=flags,
    )


def unknown_tensor(reason: str, site: Site | None, *sources: Value) -> Tensor:
    """A tensor of unknown shape; the first unread source gives the reason."""
    reasons = [s.reason for s in sources if isinstance(s, Tensor) and s.shape is None and s.reason is not None]
    first = next((r for r in reasons if r.kind != "data"), reasons[0] if reasons else None)
    unread = next((s for s in sources if isinstance(s, Unknown)), None)
    cause = first or unread or Unknown(reason, places=here(site))
    return result(None, *sources, site=site, reason=cause)


def as_tensor(value: Value, site: Site | None = None) -> Tensor | None:
    """The value as a tensor; None when it is none. An unknown may be one, of unknown shape."""
    if isinstance(value, Tensor):
        return value
    value = as_data(value)
    if isinstance(value, Unknown):
        return Tensor(None, reason=value, places=value.places, flags=value.flags)
    if isinstance(value, Union):
        options = [as_tensor(o) for o in value.options]
        known = [o for o in options if o is not None]
        if len(known) == len(options) and known and all(o.shape == known[0].shape for o in known):
            return known[0]
        return Tensor(None, reason=Unknown("one of several tensors", places=value.places), flags=value.flags)
    return None


def is_scalar(value: Value) -> bool:
    return isinstance(value, (Const, Num)) or (
        isinstance(value, Unknown) and value.kind in ("int", "float", "bool", "data")
    )


def sizes(it: Interpreter, values: Sequence[Value], site: Site | None) -> list[Dim] | None:
    """Dimensions given as separate arguments or as one sequence; None when their number is not known."""
    items: Sequence[Value] = values
    if len(values) == 1 and isinstance(values[0], Unknown) and values[0].kind not in ("int", "data"):
        return None  # it may be a whole shape
    if len(values) == 1 and isinstance(values[0], Union) and (one := size(values[0])) is not None:
        return [one]
    if len(values) == 1 and not isinstance(values[0], (Const, Num)) and as_dim(values[0]) is None:
        if site is None:
            return None
        source = iterate(it, values[0], site)
        if not source.exact:
            return None
        items = source.items
    elif len(values) == 1 and isinstance(values[0], Seq):
        items = values[0].items
    out: list[Dim] = []
    for v in items:
        d = size(v)
        if d is None:
            return None
        out.append(d)
    return out


def size(value: Value) -> Dim | None:
    """One dimension. A number that nobody knows becomes a symbol."""
    d = as_dim(value)
    if d is not None:
        return d
    value = as_data(value) if isinstance(value, External) else value
    if isinstance(value, Unknown):
        return value.dim
    if isinstance(value, Union):
        # A dimension that is None ends the program: those that go on have another.
        found = [size(o) for o in value.options if not is_none(o)]
        known = [f for f in found if f is not None]
        if len(known) != len(found) or not known:
            return None
        out = known[0]
        for k in known[1:]:
            out = dims.either(out, k)
        return out
    if isinstance(value, Tensor) and value.data is not None:
        return size(value.data)
    if isinstance(value, Tensor):
        return dims.symbol(dims.Atom("item", wraps=WRAPS in value.tags))
    return None


def dtype_of(args: Args, default: str = "") -> str:
    """The type that a call asks for: `default` when it asks for none, empty when which one is not known."""
    given = args.kw.get("dtype")
    if isinstance(given, External):
        return given.dotted.rsplit(".", 1)[-1]
    return "" if isinstance(given, (Unknown, Union)) else default


def shape_value(tensor: Tensor) -> Value:
    """`tensor.shape` as a tuple of numbers."""
    if tensor.shape is None:
        reason = tensor.reason or Unknown("the shape of a tensor that is not known", places=tensor.places)
        return Unknown(reason.reason, "shape", places=reason.places, flags=tensor.flags)
    return Seq("tuple", [dim_value(d, tensor) for d in tensor.shape], places=tensor.places, flags=tensor.flags)


def dim_value(d: Dim, like: Tensor) -> Value:
    return (
        Num(d, places=like.places, flags=like.flags)
        if isinstance(d, dims.Poly)
        else Const(d, places=like.places, flags=like.flags)
    )


def tagged(tensor: Tensor, *tags: str) -> Tensor:
    return altered(tensor, tags=tensor.tags | frozenset(tags))


def flatten_items(value: Value) -> list[Value]:
    if isinstance(value, Seq):
        return [v for i in value.items for v in flatten_items(i)]
    if isinstance(value, Star):
        return [v for i in value.items for v in flatten_items(i)]
    return [value]
