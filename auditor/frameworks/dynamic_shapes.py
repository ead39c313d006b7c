"""`torch.export`: dimensions (`Dim`), and which axes of an input `dynamic_shapes` makes dynamic."""

from __future__ import annotations

from auditor import operators
from auditor.answers import common
from auditor.graph_facts.declaration import Dimension
from auditor.graph_facts.query import is_hint
from auditor.interpreter import Interpreter
from auditor.objects.inheritance import OBJECT
from auditor.places import Site, here
from auditor.values import (
    NONE,
    Args,
    Const,
    External,
    ExternalObject,
    Instance,
    Mapping,
    Native,
    NativeClass,
    Num,
    Seq,
    Union,
    Unknown,
    Value,
    merge_flags,
    text_of,
)
from auditor.values.absence import options_present


def _dim(it: Interpreter, args: Args, site: Site | None) -> Value:
    given = args.pos[1:]
    attrs = dict(zip(("name", "min", "max"), given, strict=False)) | args.kw
    return Instance(DIM, attrs, places=here(site), flags=merge_flags(args.all()))


def _derived(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = args.pos[0]
    return obj if isinstance(obj, Instance) else NONE


DIM = NativeClass(
    "torch.export.Dim",
    {
        "__new__": _dim,
        **dict.fromkeys(("__mul__", "__rmul__", "__add__", "__radd__", "__sub__", "__truediv__"), _derived),
    },
    (OBJECT,),
)
_HINT = Instance(DIM, {"name": Const("AUTO")})
DIM.attributes.update({"AUTO": _HINT, "DYNAMIC": _HINT, "STATIC": NONE})


def _dims(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Seq("tuple", [_dim(it, Args([DIM, a], args.kw), site) for a in args.pos])


def dynamic_entry(dynamic: Value | None, name: str, position: int) -> Value | None:
    """The entry of one input in `dynamic_shapes`: None when there is none (a static input)."""
    if isinstance(dynamic, Union):
        dynamic = Unknown("the dynamic shapes are one of several", places=dynamic.places, flags=dynamic.flags)
    match dynamic:
        case None:
            return None
        case Mapping():
            found = dynamic.get(name)
            if found is not None:
                return found
            nested = dynamic.get("args") or dynamic.get("kwargs")
            if isinstance(nested, Mapping):
                return nested.get(name)
            return dynamic.rest
        case Seq(exact=True):
            return dynamic.items[position] if position < len(dynamic.items) else None
        case Seq() | Unknown() | ExternalObject() | Instance():
            return operators.unknown_from("the dynamic shapes are not known", "", dynamic)
    return None


def dynamic_dims(entry: Value | None, rank: int | None = None) -> dict[int, Dimension] | None:
    """Axis -> dimension of one entry: {} when static, None when it is not known which axes are dynamic.

    Of an axis whose dimension is not known, the others may be: the batch, or one of the two of a tensor of that `rank`.
    """
    match entry:
        case None | Const(value=None):
            return {}
        case Mapping(rest=None):
            out: dict[int, Value] = {}
            for key, v in entry.entries.values():
                if not isinstance(key, Const) or not isinstance(key.value, int):
                    return None
                out[key.value] = v
            return _dynamic_of(out, rank)
        case Seq(exact=True):
            return _dynamic_of(dict(enumerate(entry.items)), rank)
    return None


def _dynamic_of(axes: dict[int, Value], rank: int | None) -> dict[int, Dimension] | None:
    told = {n: _is_dynamic(v) for n, v in axes.items()}
    if any(t is None and not stands_apart(n, rank) for n, t in told.items()):
        return None
    return {
        n: Dimension(bool(told[n]), label=_label(v), source=v, unread=told[n] is None)
        for n, v in axes.items()
        if told[n] is not False
    }


def stands_apart(axis: int, rank: int | None) -> bool:
    """Whether what is not known of an axis leaves no doubt about where the query lies: it tells no layouts apart."""
    return axis == 0 or (rank is not None and rank <= 2)


def _label(v: Value) -> str:
    """The name of a dimension; `Dim.AUTO` is another one at each axis."""
    if is_hint(v):
        return ""
    return text_of(v.attrs["name"]) or "" if isinstance(v, Instance) and "name" in v.attrs else ""


def _is_dynamic(v: Value) -> bool | None:
    match v:
        case Const(value=None | int()):
            return False
        case Union(options=options):
            return common([_is_dynamic(o) for o in options])
        case Unknown() | Num() | ExternalObject():
            return None
        case External(dotted=dotted):
            return True if dotted.startswith("torch.") else None
        case Instance(attrs={"max": most}):
            return _leaves_room(most)
    return True


def _leaves_room(most: Value) -> bool | None:
    """Whether a dimension of at most `most` can be more than 1: what a checkpoint or an option says is taken to be."""
    match most:
        case Const(value=1):
            return False
        case Union():
            return common([_leaves_room(o) for o in options_present(most)])
        case Unknown(kind=kind) if kind != "data":
            return None
    return True


NATIVES: dict[str, Value] = {
    "torch.export.Dim": DIM,
    "torch.export.dynamic_shapes.Dim": DIM,
    "torch.export.dims": Native("dims", _dims),
}
