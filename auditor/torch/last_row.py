"""One row of what nobody could read: a slice of the script's own, on the way from a model without source to the output.

    hidden = backbone(ids, cache)               # a model of a package that is not at hand
    return self.head(hidden[:, -1:, :])         # whatever it gives, one row of it goes on

Whether such an output has one row does not hang on the code that was not read: what only one row goes into cannot
give the others. Where the whole goes on as well, nothing is told.
"""

from __future__ import annotations

from auditor.interpreter import Interpreter
from auditor.places import Site
from auditor.values import Args, Bound, Const, Seq, Tensor, Unknown, Value


def taken(it: Interpreter, source: Value, key: Value, part: Value, site: Site) -> Value:
    """The item of an unknown value under a key: the last row of it, or a part of what is one row already."""
    if it.events is not None:
        if _is_last_row(key):
            it.events.last_rows[id(part)] = (part, site)
        else:
            go_on(it, source, part)
    return part


def called(it: Interpreter, function: Value, args: Args, result: Value) -> None:
    """The result of a call that nobody can read has one row when nothing but one row goes into it."""
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


def _is_whole(key: Value) -> bool:
    bounds = key.items if isinstance(key, Seq) and key.kind == "slice" else ()
    return bool(bounds) and all(isinstance(b, Const) and b.value is None for b in bounds)


def _is_last(key: Value) -> bool:
    if isinstance(key, Seq) and key.kind == "slice":
        first, *others = key.items
        return _is(first, -1) and all(_is(o, None) for o in others)
    return _is(key, -1)


def _is(value: Value, wanted: int | None) -> bool:
    return isinstance(value, Const) and value.value == wanted and type(value.value) is type(wanted)
