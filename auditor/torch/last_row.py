"""One row of what nobody could read: a slice of the script's own, on the way from a model without source to the output.

    hidden = backbone(ids, cache)               # a model of a package that is not at hand
    return self.head(hidden[:, -1:, :])         # whatever it gives, one row of it goes on

Whether such an output has one row does not hang on the code that was not read: what only one row goes into cannot
give the others. Where the whole goes on as well, nothing is told.

    def __init__(self, model, head: nn.Linear):
        ...
    return self.head(hidden)[:, 0]              # a linear layer leaves the rows along their axis: one of them goes on

An annotation is enough to say that a row is taken. That rows are kept is never believed of it.
"""

from __future__ import annotations

from auditor import dims
from auditor.interpreter import Frame, Interpreter
from auditor.places import Site
from auditor.syntax import spelled
from auditor.values import Args, Bound, Const, Env, Function, NativeClass, Num, Seq, Tensor, Unknown, Value, is_none

_LAYER = "Linear"


class SaidLinear(Unknown):
    """What nobody could read, where the constructor that takes it says that it is a linear layer."""

    def twin(self, cls: type[Unknown] | None = None) -> Unknown:
        return super().twin(cls or SaidLinear)


def annotated(it: Interpreter, function: Function, env: Env) -> None:
    """Note the parameters of a constructor that are said to be linear layers and are not known."""
    p = function.node.params
    for param in (*p.params, *p.kwonly_params):
        value = env.names[param.name.value]
        if type(value) is Unknown and param.annotation is not None and not value.typed:
            said = param.annotation.annotation
            if spelled(said).rpartition(".")[2] == _LAYER and function.site is not None:
                frame = Frame(function.env, function.site.statement, it.loader.module_of(function.env))
                cls = it.eval(said, frame)
                if isinstance(cls, NativeClass) and cls.name == f"torch.nn.{_LAYER}":
                    env.names[param.name.value] = value.twin(SaidLinear)


def _through(it: Interpreter, function: Value, args: Args, result: Value) -> None:
    """The rows of what a linear layer gives lie where they lay in what goes in."""
    given = args.pos[0] if len(args.pos) == 1 and not args.kw and args.more is None else None
    if it.events is None or not isinstance(function, SaidLinear) or not isinstance(given, Tensor) or not given.shape:
        return
    axes = [n for n, d in enumerate(given.shape[:-1]) if dims.depends_on_query(d)]
    if len(axes) == 1:
        it.events.row_axes[id(result)] = (result, axes[0])


def taken(it: Interpreter, source: Value, key: Value, part: Value, site: Site) -> Value:
    """The item of an unknown value under a key: the last row of it, or a part of what is one row already."""
    if it.events is not None:
        _, axis = it.events.row_axes.get(id(source), (None, None))
        if _is_last_row(key) or (axis is not None and _is_row(key, axis)):
            it.events.last_rows[id(part)] = (part, site)
        else:
            go_on(it, source, part)
    return part


def called(it: Interpreter, function: Value, args: Args, result: Value) -> None:
    """The result of a call that nobody can read has one row when nothing but one row goes into it."""
    _through(it, function, args, result)
    if it.events is None or not it.events.last_rows:
        return
    receiver = function.of if isinstance(function, Unknown) else None
    found = it.events.last_rows.get(id(receiver))
    if args.more is not None or (found is None and _made_since(receiver, it.events.started)):
        return
    for value in _parts(args):
        one = it.events.last_rows.get(id(value))
        if one is None:
            return
        found = found or one
    if found is not None:
        it.events.last_rows[id(result)] = (result, found[1])


def _made_since(value: Unknown | None, started: int) -> bool:
    """Whether `forward` has made a value: data, where the parts of a module were there before."""
    while value is not None and value.of is not None:
        value = value.of
    return value is not None and value.born >= started


def go_on(it: Interpreter, source: Value, part: Value) -> None:
    """What is made of one row and of nothing else is one row."""
    found = it.events.last_rows.get(id(source)) if it.events is not None else None
    if found is not None:
        it.events.last_rows[id(part)] = (part, found[1])


def _parts(args: Args) -> list[Value]:
    """What may hold rows among the arguments of a call; types and numbers do not."""
    return [v for v in args.all() if not isinstance(v, Const) and _may_hold_rows(v)]


def _may_hold_rows(value: Value) -> bool:
    match value:
        case Unknown(kind=kind):
            return kind not in ("int", "float", "bool", "str")
        case Seq(items=items, rest=rest):
            return rest is not None or any(map(_may_hold_rows, items))
        case Bound(receiver=receiver):
            return _may_hold_rows(receiver)
    return isinstance(value, Tensor)


def _is_last_row(key: Value) -> bool:
    """`[:, -1]`, `[:, -1:]`, and the same with whole axes behind."""
    if not isinstance(key, Seq) or key.kind != "tuple" or not key.exact or len(key.items) < 2:
        return False
    first, second, *others = key.items
    return _is_whole(first) and all(map(_is_whole, others)) and _is_last(second)


def _is_row(key: Value, axis: int) -> bool:
    """One number on the axis of the rows, and all of every other."""
    if not isinstance(key, Seq) or key.kind != "tuple" or not key.exact or len(key.items) <= axis:
        return False
    row = key.items[axis]
    number = (isinstance(row, Const) and type(row.value) is int) or isinstance(row, Num)
    return number and all(_is_whole(k) for n, k in enumerate(key.items) if n != axis)


def _is_whole(key: Value) -> bool:
    bounds = key.items if isinstance(key, Seq) and key.kind == "slice" else ()
    return bool(bounds) and all(is_none(b) for b in bounds)


def _is_last(key: Value) -> bool:
    if isinstance(key, Seq) and key.kind == "slice":
        first, *others = key.items
        return _is(first, -1) and all(_is(o, None) for o in others)
    return _is(key, -1)


def _is(value: Value, wanted: int | None) -> bool:
    return isinstance(value, Const) and value.value == wanted and type(value.value) is type(wanted)
