"""Methods of strings, also of those that are known in part."""

from __future__ import annotations

from typing import Any

from auditor import operators
from auditor.containers.iteration import iterate
from auditor.interpreter import Handler, Interpreter
from auditor.methods.scalars import large, wrapped
from auditor.places import Site
from auditor.values import Args, Const, Seq, Star, Value, merge_places, text_of

_PREDICATES = (
    "startswith",
    "endswith",
    "isdigit",
    "isalpha",
    "islower",
    "isupper",
    "isalnum",
    "isidentifier",
    "isspace",
    "isnumeric",
)
_LISTS = ("split", "rsplit", "splitlines")


def text_method(name: str) -> Handler:
    def method(it: Interpreter, args: Args, site: Site | None) -> Value:
        receiver, *rest = args.pos
        if name == "join":
            return _join_text(it, receiver, rest[0], site)
        if name == "format":
            return _format(receiver, args)
        plain = _plain([*rest, *args.kw.values()])
        text = text_of(receiver)
        if plain is not None and any(map(large, plain)):
            plain = None  # a text that is padded too wide to be made
        if isinstance(receiver, Const) and plain is not None and text is not None and len(text) < 100_000:
            count = len(rest)
            kw = dict(zip(args.kw, plain[count:], strict=True))
            try:
                result = getattr(receiver.value, name)(*plain[:count], **kw)
            except (TypeError, ValueError, LookupError):
                return operators.unknown_from(f"str.{name} raises", "str", receiver)
            value = wrapped(result)
            value.places, value.flags = merge_places(receiver.places), receiver.flags
            for v in value.items if isinstance(value, Seq) else ():
                v.places, v.flags = receiver.places, receiver.flags
            return value
        return _unknown_text(name, receiver, rest)

    return method


def _plain(values: list[Value]) -> list[Any] | None:
    out: list[Any] = []
    for v in values:
        if isinstance(v, Const):
            out.append(v.value)
        elif isinstance(v, Seq) and v.kind == "tuple" and all(isinstance(i, Const) for i in v.items):
            out.append(tuple(i.value for i in v.items if isinstance(i, Const)))
        else:
            return None
    return out


def _unknown_text(name: str, receiver: Value, rest: list[Value]) -> Value:
    text = text_of(receiver) or "*"
    if name in _PREDICATES:
        return _predicate(name, text, receiver, rest)
    if name in ("count", "find", "rfind", "index", "rindex"):
        return operators.unknown_from("a position in a text that is not known", "int", receiver, *rest, name=name)
    if name in _LISTS:
        return Seq("list", [Star((operators.pattern("*", receiver),))], flags=receiver.flags)
    if name in ("partition", "rpartition"):
        return Seq("tuple", [operators.pattern("*", receiver) for _ in range(3)], flags=receiver.flags)
    if name == "encode":
        return operators.unknown_from("bytes of a text that is not known", "bytes", receiver)
    if name in ("lower", "upper", "strip", "lstrip", "rstrip", "casefold"):
        return operators.pattern(getattr(text, name)(), receiver, *rest)
    if name == "replace" and len(rest) >= 2 and (plain := _plain(rest)) is not None and "*" not in str(plain[0]):
        return operators.pattern(text.replace(str(plain[0]), str(plain[1])), receiver, *rest)
    return operators.pattern("*", receiver, *rest)


def _predicate(name: str, text: str, receiver: Value, rest: list[Value]) -> Value:
    unknown = operators.unknown_from("a test of a text that is not known", "bool", receiver, *rest)
    plain = _plain(rest)
    if name not in ("startswith", "endswith") or plain is None:
        return unknown
    wanted = plain[0] if isinstance(plain[0], tuple) else (plain[0],)
    fixed = text.split("*")[0 if name == "startswith" else -1]
    if any(getattr(fixed, name)(w) for w in wanted):
        return operators.derived(True, receiver)
    if all(len(w) <= len(fixed) for w in wanted):
        return operators.derived(False, receiver)
    return unknown


def _join_text(it: Interpreter, separator: Value, items: Value, site: Site | None) -> Value:
    assert site is not None
    source = iterate(it, items, site)
    sep = text_of(separator)
    texts = [text_of(i) if not isinstance(i, Star) else "*" for i in source.items]
    if source.rest is not None or sep is None:
        return operators.pattern("*", separator, items)
    return operators.pattern(sep.join(t if t is not None else "*" for t in texts), separator, items, *source.items)


def _format(receiver: Value, args: Args) -> Value:
    template = text_of(receiver)
    plain = _plain(args.pos[1:])
    named = _plain(list(args.kw.values()))
    if isinstance(receiver, Const) and plain is not None and named is not None:
        try:
            return operators.derived(
                receiver.value.format(*plain, **dict(zip(args.kw, named, strict=True))), receiver, *args.all()
            )
        except (KeyError, IndexError, ValueError):
            pass
    out, depth = "", 0
    for c in template or "*":
        if c == "{":
            depth += 1
            out += "*" if depth == 1 else ""
        elif c == "}":
            depth = max(0, depth - 1)
        elif not depth:
            out += c
    return operators.pattern(out, receiver, *args.all())
