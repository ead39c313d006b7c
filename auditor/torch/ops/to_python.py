"""What Python learns of a tensor: a number, a list, its sizes."""

from __future__ import annotations

from auditor import dims
from auditor.interpreter import Interpreter
from auditor.places import Site, here
from auditor.torch import progressions, shared_positions
from auditor.torch.ops.op import first
from auditor.torch.tensors import dim_value, shape_value
from auditor.values import Args, Const, Seq, Unknown, Value, number
from auditor.values.tags import PICKED, WRAPS


def item(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = first(args)
    if t.data is not None:
        return t.data
    shared_positions.places(it.events, t)
    baked: Value | None = it.events.bakes(t, site, "item()") if it.events is not None else None
    if baked is not None:
        return baked
    if t.dtype.startswith("float"):
        return Unknown("a number computed at run time", "item", "float", places=t.places, flags=t.flags)
    known = progressions.one(t)
    if known is not None and t.tags.isdisjoint(PICKED | {WRAPS}):
        return number(known, (t,))
    atom = dims.Atom("item", wraps=WRAPS in t.tags, chosen=not t.tags.isdisjoint(PICKED))
    return number(dims.symbol(atom), (t,))


def tolist(it: Interpreter, args: Args, site: Site | None) -> Value:
    if first(args).numbers:
        return Seq("list", list(first(args).numbers), places=here(site))
    if it.events is not None:
        it.events.bakes(first(args), site, "tolist()")
    return Unknown("the values of a tensor", "tolist()", "list", places=here(site))


def size(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = first(args)
    axis = args.get(1, "dim")
    if axis is None:
        return shape_value(t)
    if t.shape is None or not isinstance(axis, Const):
        reason = t.reason or Unknown("the shape of a tensor that is not known", places=t.places)
        return Unknown(reason.reason, "size", "int", places=reason.places)
    return dim_value(t.shape[axis.value], t)


def rank(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = first(args)
    return (
        Const(len(t.shape)) if t.shape is not None else Unknown("the rank of a tensor that is not known", "dim", "int")
    )


def numel(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = first(args)
    if t.shape is None:
        return Unknown("the size of a tensor that is not known", "numel", "int")
    return number(dims.product(t.shape), (t,))
