"""What each expression node means: `EXPRESSIONS` at the end has the function for each kind of node."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import libcst as cst

from auditor import operators
from auditor.calls import sought
from auditor.containers import get_item, iterate, make_slice
from auditor.interpreter import ExitSignal, Frame, Interpreter, RaiseSignal
from auditor.joins import Deleted, join_all, maybe_absent, present, union
from auditor.objects.inheritance import class_lookup
from auditor.places import Site
from auditor.values import (
    NONE,
    Args,
    Const,
    Env,
    Function,
    Instance,
    Mapping,
    Num,
    Pattern,
    Seq,
    Tensor,
    Union,
    Unknown,
    Value,
    altered,
    key_of,
    merge_places,
    text_of,
)


def lookup(it: Interpreter, name: str, frame: Frame, node: Any) -> Value:
    env: Env | None = frame.env
    while env is not None:
        if env.redirect and name in env.redirect:
            env = env.redirect[name]
        found = env.names.get(name)
        if found is not None:
            if env.module is not None and env.module.noted:
                it.loader.keeper.recall(it, env.module, name)
            if type(found) is Union and it.assumed.made:
                found = it.assumed.chosen(found)
            return found if type(found) is not Deleted else _deleted(it, found, frame, node)
        if env.module is not None:
            found = it.loader.name_in(it, env.module, name)
            if found is not None:
                return found
        env = env.parent
    builtin = it.loader.builtins.get(name)
    if builtin is not None:
        return builtin
    return Unknown(
        f"the name `{name}` is not defined anywhere that was read", name, places=(frame.statement.site(node),)
    )


def _deleted(it: Interpreter, found: Deleted, frame: Frame, node: Any) -> Value:
    return _would_raise(it, RaiseSignal("NameError", found), frame.statement.site(node))


_WIDEST = 1_000
"""Characters that a format may pad a value to; a wider one is not made."""

_CONSTANTS = {"None": None, "True": True, "False": False}


def _name(it: Interpreter, node: cst.Name, frame: Frame) -> Value:
    env = frame.env
    if env.module is None and not env.redirect:  # what most names are: locals, with one value
        local = env.names.get(node.value)
        if local is not None and type(local) is not Union and type(local) is not Deleted:
            return local
    if node.value in _CONSTANTS:
        found = it.literals.get(id(node))
        if found is None:
            found = it.literals[id(node)] = Const(_CONSTANTS[node.value], places=(frame.statement.site(node),))
        return found
    return lookup(it, node.value, frame, node)


def _literal(it: Interpreter, node: Any, frame: Frame) -> Value:
    found = it.literals.get(id(node))
    if found is None:
        found = it.literals[id(node)] = Const(_literal_value(node), places=(frame.statement.site(node),))
    return found


def _literal_value(node: Any) -> Any:
    if type(node) is cst.Ellipsis:
        return ...
    text: str = node.value
    if text.isdigit() and (text[0] != "0" or text == "0"):
        return int(text)
    if text[0] in "\"'" and "\\" not in text and len(text) > 1 and text[1] != text[0]:
        return text[1:-1]
    try:
        return ast.literal_eval(node.value)
    except (ValueError, SyntaxError, MemoryError):
        return node.value


def _concatenated(it: Interpreter, node: cst.ConcatenatedString, frame: Frame) -> Value:
    return operators.binary("+", it.eval(node.left, frame), it.eval(node.right, frame))


def _formatted(it: Interpreter, node: cst.FormattedString, frame: Frame) -> Value:
    out = ""
    sources: list[Value] = []
    parts: list[Any] = list(node.parts)
    for part in parts:
        if type(part) is cst.FormattedStringText:
            raw = part.value.replace("{{", "{").replace("}}", "}")
            out += raw if "r" in node.prefix.lower() or "\\" not in raw else _unescape(raw)
            continue
        value = it.eval(part.expression, frame)
        sources.append(value)
        if part.equal is not None:
            out += cst.Module([]).code_for_node(part.expression) + "="
            if part.conversion is None and not part.format_spec:
                out += format_value(value, "", "r")
                continue
        out += format_value(value, _format_spec(it, part, frame), part.conversion)
    result = operators.pattern(out, *sources)
    result.places = merge_places((frame.statement.site(node),), result.places)
    return result


def _unescape(raw: str) -> str:
    try:
        return str(ast.literal_eval('"""' + raw.replace('"', '\\"') + '"""'))
    except (ValueError, SyntaxError):
        return raw


def _format_spec(it: Interpreter, part: cst.FormattedStringExpression, frame: Frame) -> str | None:
    if part.format_spec is None:
        return ""
    spec = ""
    pieces: list[Any] = list(part.format_spec)
    for p in pieces:
        if isinstance(p, cst.FormattedStringText):
            spec += p.value
        else:
            text = format_value(it.eval(p.expression, frame), "", None)
            if "*" in text:
                return None
            spec += text
    return spec


def format_value(value: Value, spec: str | None, conversion: str | None) -> str:
    """The text that an f-string or `str()` gives, with `*` for what is unknown."""
    if isinstance(value, Const):
        if spec is None or any(int(n) > _WIDEST for n in re.findall(r"\d{1,9}", spec)) or len(spec) > 40:
            return "*"
        try:
            return f"{value.value!r}" if conversion == "r" else format(value.value, spec)
        except (TypeError, ValueError):
            return "*"
    text = text_of(value)
    if text is not None:
        return text if conversion != "r" else f"'{text}'"
    if isinstance(value, Instance):
        inner = value.payload
        if isinstance(inner, (Const, Pattern)):
            return text_of(inner) or "*"
    if isinstance(value, Union):
        texts = {format_value(o, spec, conversion) for o in value.options}
        return texts.pop() if len(texts) == 1 else "*"
    return "*"


def _collect(it: Interpreter, elements: Any, frame: Frame) -> tuple[list[Value], Unknown | None]:
    items: list[Value] = []
    rest: Unknown | None = None
    for e in elements:
        if type(e) is cst.StarredElement:
            more = iterate(it, it.eval(e.value, frame), frame.statement.site(e))
            items += more.items
            rest = rest or more.rest
        else:
            items.append(it.eval(e.value, frame))
    return items, rest


def _sequence(kind: str) -> Callable[[Interpreter, Any, Frame], Value]:
    def handler(it: Interpreter, node: Any, frame: Frame) -> Value:
        items, rest = _collect(it, node.elements, frame)
        if kind == "set":
            items = unique(items)
        return Seq(kind, items, rest, places=(frame.statement.site(node),), flags=it.conditions)

    return handler


def unique(items: list[Value]) -> list[Value]:
    out: dict[Any, Value] = {}
    for i in items:
        out.setdefault(key_of(i) or ("id", id(i)), i)
    return list(out.values())


def _dict(it: Interpreter, node: cst.Dict, frame: Frame) -> Value:
    result = Mapping(places=(frame.statement.site(node),), flags=it.conditions)
    elements: list[Any] = list(node.elements)
    for e in elements:
        if type(e) is cst.StarredDictElement:
            update_mapping(it, result, it.eval(e.value, frame))
            continue
        key, value = it.eval(e.key, frame), it.eval(e.value, frame)
        put(result, key, value, frame.statement.site(e))
    return result


def put(target: Mapping, key: Value, value: Value, site: Site | None) -> None:
    k = key_of(key)
    if k is None:
        target.rest = target.rest or operators.unknown_from("an entry under a key that is not known", "", key)
        target.entries = {n: (name, union([old, value])) for n, (name, old) in target.entries.items()}
        return
    target.entries[k] = (key, value)


def update_mapping(it: Interpreter, target: Mapping, source: Value) -> None:
    it.heap.touch(target)
    if isinstance(source, Mapping):
        for k, e in source.entries.items():
            target.entries[k] = operators.over(target.entries.get(k), e)
        target.rest = target.rest or source.rest
        it.remember(target)
        target.flags = target.flags | source.flags
    elif isinstance(source, Seq) and source.exact:
        for pair in source.items:
            if isinstance(pair, Seq) and len(pair.items) == 2:
                put(target, pair.items[0], pair.items[1], None)
    elif not (isinstance(source, Const) and source.value is None):
        cause = operators.unknown_from("entries of a dict that is not known", "", source)
        target.rest = target.rest or cause
        target.entries = {n: (name, union([old, cause])) for n, (name, old) in target.entries.items()}


def _binary(it: Interpreter, node: cst.BinaryOperation, frame: Frame) -> Value:
    return binary(
        it,
        _BINARY[type(node.operator)],
        it.eval(node.left, frame),
        it.eval(node.right, frame),
        frame.statement.site(node),
    )


def binary(it: Interpreter, op: str, a: Value, b: Value, site: Site) -> Value:
    """`a op b` for every kind of value."""
    if isinstance(a, Union) or isinstance(b, Union):
        if isinstance(a, Union):
            return it.each(a, lambda x: binary(it, op, x, b, site))
        return it.each(b, lambda y: binary(it, op, a, y, site))
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        return it.meaning.tensor_binary(it, op, a, b, site)
    for x, name, other in ((a, _DUNDER.get(op), b), (b, _RDUNDER.get(op), a)):
        if isinstance(x, Instance) and name:
            try:
                method = it.get(x, name, site)
            except RaiseSignal:
                continue
            return it.call(method, Args([other]), site)
    result = operators.binary(op, a, b)
    if isinstance(result, Unknown) and not result.places:
        result.places = (site,)
    return result


_DUNDER = {
    "+": "__add__",
    "-": "__sub__",
    "*": "__mul__",
    "/": "__truediv__",
    "//": "__floordiv__",
    "%": "__mod__",
    "|": "__or__",
}
_RDUNDER = {"+": "__radd__", "*": "__rmul__", "/": "__rtruediv__", "-": "__rsub__"}


def _boolean(it: Interpreter, node: cst.BooleanOperation, frame: Frame) -> Value:
    left = it.eval(node.left, frame)
    stop = isinstance(node.operator, cst.Or)
    return _short_circuit(it, left, stop, node, frame)


def _short_circuit(it: Interpreter, left: Value, stop: bool, node: cst.BooleanOperation, frame: Frame) -> Value:
    if isinstance(left, Union):
        kept = [o for o in left.options if operators.truth(o) is stop]
        if len(kept) == len(left.options):
            return left
        if not kept and all(operators.truth(o) is (not stop) for o in left.options):
            return _flagged(it, it.eval(node.right, frame), left)
        maybe = [o for o in left.options if operators.truth(o) is not (not stop)]
        return it.choose([lambda: join_all(maybe), lambda: it.eval(node.right, frame)])
    known = it.truth(left)
    if known is stop:
        return left
    if known is not None:
        saved, it.conditions = it.conditions, it.conditions | left.flags
        try:
            return _flagged(it, it.eval(node.right, frame), left)
        finally:
            it.conditions = saved
    return it.choose([lambda: left, lambda: it.eval(node.right, frame)])


def _flagged(it: Interpreter, value: Value, source: Value) -> Value:
    """`value`, which depends on the flags of `source` too."""
    if not source.flags or source.flags <= value.flags:
        return value
    if isinstance(value, (Const, Pattern, Num, Tensor)):
        return altered(value, flags=value.flags | source.flags)
    if isinstance(value, (Seq, Mapping, Unknown)):
        it.remember(value)
        value.flags = value.flags | source.flags
    return value


def _comparison(it: Interpreter, node: cst.Comparison, frame: Frame) -> Value:
    left = it.eval(node.left, frame)
    result: Value | None = None
    for target in node.comparisons:
        right = it.eval(target.comparator, frame)
        op = _comparison_name(target.operator)
        if (isinstance(left, Tensor) or isinstance(right, Tensor)) and op not in ("is", "is not", "in", "not in"):
            one = it.meaning.tensor_binary(it, op, left, right, frame.statement.site(node))
        elif op in ("in", "not in") and isinstance(right, Instance) and not isinstance(right.payload, (Seq, Mapping)):
            one = _in_object(it, op, left, right, frame.statement.site(node))
        elif (own := _own_comparison(it, op, left, right, frame.statement.site(node))) is not None:
            one = own
        else:
            if isinstance(left, Unknown) and op in ("==", "in"):
                sought(it, left, right)
            decided = it.events.compare(op, left, right) if it.events is not None else None
            one = operators.compare(op, left, right) if decided is None else decided
        if isinstance(one, Unknown) and not one.places:
            one.places = (frame.statement.site(node),)
        result = one if result is None else _and(result, one)
        left = right
    assert result is not None
    return result


_REFLECTED = {"==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
_COMPARING = {"==": "__eq__", "!=": "__ne__", "<": "__lt__", ">": "__gt__", "<=": "__le__", ">=": "__ge__"}


def _own_comparison(it: Interpreter, op: str, left: Value, right: Value, site: Site) -> Value | None:
    """What a class of the script says of a comparison with one of its objects; None when none does."""
    for obj, other, own in ((left, right, op), (right, left, _REFLECTED.get(op, ""))):
        if own not in _COMPARING or not isinstance(obj, Instance):
            continue
        if class_lookup(obj.cls, _COMPARING[own])[0] is not None:
            return it.call(it.get(obj, _COMPARING[own], site), Args([other]), site)
        if own == "!=" and class_lookup(obj.cls, "__eq__")[0] is not None:
            return operators.unary("not", it.call(it.get(obj, "__eq__", site), Args([other]), site))
    return None


def _in_object(it: Interpreter, op: str, item: Value, obj: Instance, site: Site) -> Value:
    try:
        found = it.call(it.get(obj, "__contains__", site), Args([item]), site)
    except RaiseSignal:
        return operators.unknown_from("`in` on an object that does not say", "bool", item)
    return operators.unary("not", found) if op == "not in" else found


def _and(a: Value, b: Value) -> Value:
    x, y = operators.truth(a), operators.truth(b)
    if x is False or y is False:
        return operators.derived(False, a, b)
    return (
        operators.derived(True, a, b)
        if x and y
        else operators.unknown_from("a comparison that is not known", "bool", a, b)
    )


def _comparison_name(op: Any) -> str:
    return _COMPARE[type(op)]


def _unary(it: Interpreter, node: cst.UnaryOperation, frame: Frame) -> Value:
    value = it.eval(node.expression, frame)
    op = {cst.Not: "not", cst.Minus: "-", cst.Plus: "+", cst.BitInvert: "~"}[type(node.operator)]
    if isinstance(value, Tensor) and op != "not":
        return altered(value, base=None, data=None)
    return operators.unary(op, value)


def _conditional(it: Interpreter, node: cst.IfExp, frame: Frame) -> Value:
    test = it.eval(node.test, frame)
    known = it.truth(test)
    if known is None:
        from auditor.statements.narrowing import narrowed

        return it.choose(
            [
                lambda: narrowed(it, node.test, True, frame, lambda: it.eval(node.body, frame)),
                lambda: narrowed(it, node.test, False, frame, lambda: it.eval(node.orelse, frame)),
            ],
            test,
        )
    return _flagged(it, it.eval(node.body if known else node.orelse, frame), test)


def _attribute(it: Interpreter, node: cst.Attribute, frame: Frame) -> Value:
    obj, site = it.eval(node.value, frame), frame.statement.site(node)
    try:
        return it.get(obj, node.attr.value, site)
    except RaiseSignal as error:
        if it.choices.entries and isinstance(obj, Const) and obj.value is None:
            raise  # an entry of a registry that has no class for this way
        return _would_raise(it, error, site)


def _subscript(it: Interpreter, node: cst.Subscript, frame: Frame) -> Value:
    obj, site = it.eval(node.value, frame), frame.statement.site(node)
    try:
        return get_item(it, obj, index_of(it, node, frame), site)
    except RaiseSignal as error:
        return _would_raise(it, error, site)


def _would_raise(it: Interpreter, error: RaiseSignal, site: Site) -> Value:
    """A look-up that fails: raised where the script can catch it, else unknown, because scripts that ship do run."""
    if it.maybe_raised or isinstance(error, ExitSignal):
        raise error
    return Unknown(f"this look-up gives {error.kind} as far as it can be followed", places=(site,))


def index_of(it: Interpreter, node: cst.Subscript, frame: Frame) -> Value:
    parts = [_slice_part(it, e.slice, frame) for e in node.slice]
    trailing = len(node.slice) == 1 and type(node.slice[0].comma) is cst.Comma
    return parts[0] if len(parts) == 1 and not trailing else Seq("tuple", parts)


def _slice_part(it: Interpreter, part: Any, frame: Frame) -> Value:
    if type(part) is cst.Index:
        return it.eval(part.value, frame)
    lower, upper, step = [it.eval(x, frame) if x is not None else NONE for x in (part.lower, part.upper, part.step)]
    return make_slice(lower, upper, step, frame.statement.site(part))


def _lambda(it: Interpreter, node: cst.Lambda, frame: Frame) -> Value:
    from auditor.calls import make_function

    return make_function(it, node, "<lambda>", frame)


def _await(it: Interpreter, node: cst.Await, frame: Frame) -> Value:
    return it.eval(node.expression, frame)


def _yield(it: Interpreter, node: cst.Yield, frame: Frame) -> Value:
    value: Value = NONE
    if isinstance(node.value, cst.From):
        source = iterate(it, it.eval(node.value.item, frame), frame.statement.site(node))
        items, rest = source.items, source.rest
    else:
        items, rest = [it.eval(node.value, frame) if node.value is not None else NONE], None
    if frame.yields is not None:
        it.heap.touch(frame.yields)
        frame.yields.items += items
        frame.yields.rest = frame.yields.rest or rest
    return value


def _named(it: Interpreter, node: cst.NamedExpr, frame: Frame) -> Value:
    from auditor.statements.assignments import assign

    value = it.eval(node.value, frame)
    env = frame.env
    while env.parent is not None and env.redirect.get("") is not None:
        env = env.parent
    assign(it, node.target, value, replace(frame, env=env))
    return value


def _comprehension(kind: str) -> Callable[[Interpreter, Any, Frame], Value]:
    def handler(it: Interpreter, node: Any, frame: Frame) -> Value:
        site = frame.statement.site(node)
        out: Value = Mapping(places=(site,)) if kind == "dict" else Seq(kind, [], places=(site,))
        scope = Env(parent=frame.env, redirect={"": frame.env})
        inner = altered(frame, env=scope)

        def emit() -> None:
            if isinstance(out, Mapping):
                key, value = it.eval(node.key, inner), it.eval(node.value, inner)
                it.heap.touch(out)
                put(out, key, value, site)
            elif isinstance(out, Seq):
                value = it.eval(node.elt, inner)
                it.heap.touch(out)
                out.items.append(value)

        from auditor.statements.loops import run_comprehension

        run_comprehension(it, node.for_in, inner, out, emit)
        if kind == "set" and isinstance(out, Seq):
            out.items = unique(out.items)
        return out

    return handler


def _call(it: Interpreter, node: cst.Call, frame: Frame) -> Value:
    function = it.eval(node.func, frame)
    args = Args()
    site = frame.statement.site(node)
    for a in node.args:
        value = it.eval(a.value, frame)
        if not a.star:
            if a.keyword is None:
                args.pos.append(value)
            else:
                args.kw[a.keyword.value] = value
        elif a.star == "*":
            more = iterate(it, value, site)
            if more.exact:
                args.pos += more.items
            else:
                args.more = more.rest or Unknown("arguments splatted from a sequence of unknown length", places=(site,))
        else:
            _splat(it, args, value, site)
    if isinstance(function, Function) and function.name == "super":
        return function
    if type(node.func) is cst.Name and node.func.value in _FRAME_CALLS:
        handled = _FRAME_CALLS[node.func.value](it, function, args, frame, site)
        if handled is not None:
            return handled
    return it.call(function, args, site)


def _splat(it: Interpreter, args: Args, value: Value, site: Site) -> None:
    if isinstance(value, Union):
        mappings = [o for o in value.options if isinstance(o, Mapping)]
        value = mappings[0] if len(mappings) == 1 and len(value.options) == 1 else value
    if isinstance(value, Instance) and isinstance(value.payload, Mapping):
        value = value.payload
    if isinstance(value, Mapping):
        for key, entry in value.entries.values():
            name = text_of(key)
            if name is not None and "*" not in name:
                args.kw[name] = entry if not maybe_absent(entry) else _maybe_given(entry, name)
            else:
                args.more = Unknown("keyword arguments under names that are not known", places=(site,))
        args.more = args.more or value.rest
    elif not (isinstance(value, Const) and value.value is None):
        args.more = operators.unknown_from("keyword arguments splatted from a dict that is not known", "dict", value)


def _maybe_given(entry: Value, name: str) -> Value:
    return union([present(entry), Unknown(f"whether `{name}` is given is not known", places=entry.places)])


def _super(it: Interpreter, function: Value, args: Args, frame: Frame, site: Site) -> Value | None:
    from auditor.objects.attributes import make_super

    if args.pos:
        return make_super(it, args.pos[0], args.pos[1] if len(args.pos) > 1 else frame.receiver)
    if frame.function is not None and frame.function.owner is not None and frame.receiver is not None:
        return make_super(it, frame.function.owner, frame.receiver)
    return Unknown("super() outside a method", places=(site,))


def _locals(it: Interpreter, function: Value, args: Args, frame: Frame, site: Site) -> Value | None:
    if frame.env is frame.module.env:
        return _globals(it, function, args, frame, site)
    names = frame.env.names
    return Mapping({("str", n): (Const(n), v) for n, v in names.items() if not isinstance(v, Deleted)})


def _vars(it: Interpreter, function: Value, args: Args, frame: Frame, site: Site) -> Value | None:
    return None if args.pos else _locals(it, function, args, frame, site)


def _globals(it: Interpreter, function: Value, args: Args, frame: Frame, site: Site) -> Value | None:
    from auditor.views import attribute_view

    names = frame.module.env.names
    return attribute_view(frame.module, names, Unknown("names of the module that were not read"))


_FRAME_CALLS = {"super": _super, "locals": _locals, "globals": _globals, "vars": _vars}

_COMPARE: dict[type, str] = {
    cst.Equal: "==",
    cst.NotEqual: "!=",
    cst.LessThan: "<",
    cst.LessThanEqual: "<=",
    cst.GreaterThan: ">",
    cst.GreaterThanEqual: ">=",
    cst.Is: "is",
    cst.IsNot: "is not",
    cst.In: "in",
    cst.NotIn: "not in",
}
_BINARY: dict[type, str] = {
    cst.Add: "+",
    cst.Subtract: "-",
    cst.Multiply: "*",
    cst.Divide: "/",
    cst.FloorDivide: "//",
    cst.Modulo: "%",
    cst.Power: "**",
    cst.LeftShift: "<<",
    cst.RightShift: ">>",
    cst.BitAnd: "&",
    cst.BitOr: "|",
    cst.BitXor: "^",
    cst.MatrixMultiply: "@",
}


def _not_evaluated(it: Interpreter, node: Any, frame: Frame) -> Value:
    return Unknown(f"{type(node).__name__} is not evaluated", places=(frame.statement.site(node),))


class _Expressions(dict[type, Callable[[Interpreter, Any, Frame], Value]]):
    def __missing__(self, kind: type) -> Callable[[Interpreter, Any, Frame], Value]:
        return _not_evaluated


EXPRESSIONS = _Expressions(
    {
        cst.Name: _name,
        cst.SimpleString: _literal,
        cst.Integer: _literal,
        cst.Float: _literal,
        cst.Imaginary: _literal,
        cst.Ellipsis: _literal,
        cst.ConcatenatedString: _concatenated,
        cst.FormattedString: _formatted,
        cst.Tuple: _sequence("tuple"),
        cst.List: _sequence("list"),
        cst.Set: _sequence("set"),
        cst.Dict: _dict,
        cst.BinaryOperation: _binary,
        cst.BooleanOperation: _boolean,
        cst.Comparison: _comparison,
        cst.UnaryOperation: _unary,
        cst.IfExp: _conditional,
        cst.Attribute: _attribute,
        cst.Subscript: _subscript,
        cst.Lambda: _lambda,
        cst.Await: _await,
        cst.Yield: _yield,
        cst.NamedExpr: _named,
        cst.ListComp: _comprehension("list"),
        cst.SetComp: _comprehension("set"),
        cst.GeneratorExp: _comprehension("list"),
        cst.DictComp: _comprehension("dict"),
        cst.Call: _call,
    }
)
