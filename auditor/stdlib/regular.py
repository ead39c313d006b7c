"""`re`: what an expression finds in a text that is known, where finding it surely takes no time."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from auditor import operators
from auditor.interpreter import Interpreter
from auditor.places import Site
from auditor.stdlib.data import plain_value
from auditor.values import NONE, Args, Const, Instance, Native, NativeClass, Seq, Value

_LONGEST = 200
_MOST_STEPS = 20_000_000
"""Of an expression that tries all ways before it fails: under a second."""
_ATOM = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?[^|)]", re.DOTALL)
"""An escape, a class of characters, the beginning of a group: no repetition and no choice, whatever is in it."""
_REPEATED_GROUP = re.compile(r"\)[*+{]")


def _steps(pattern: str, text: str) -> int:
    """How many ways a search may try at the most: one more for each repetition is as many as the text is long."""
    bare = _ATOM.sub("a", pattern)
    repeated, either = sum(map(bare.count, "*+{")), sum(map(bare.count, "?|"))
    if _REPEATED_GROUP.search(bare) and repeated + either > 1:
        return _MOST_STEPS + 1  # a choice inside a repetition
    return int((len(text) + 1) ** (repeated + 1)) << either


def _found(name: str, args: Args) -> Any:
    """What the real function gives; `...` where an argument is not known or finding it might take too long."""
    texts = [a.value for a in args.pos if isinstance(a, Const) and isinstance(a.value, str)]
    if args.kw or args.more is not None or len(texts) < len(args.pos) or len(texts) < 2:
        return ...
    if len(texts[0]) > _LONGEST or _steps(texts[0], texts[-1]) > _MOST_STEPS:
        return ...
    try:
        return getattr(re, name)(*texts)
    except (re.error, TypeError):
        return ...


def _function(name: str) -> Native:
    def run(it: Interpreter, args: Args, site: Site | None) -> Value:
        match _found(name, args):
            case None:
                return NONE
            case str() as text:
                return operators.derived(text, *args.pos)
            case list() as parts:
                return plain_value(parts)
            case re.Match() as found:
                return _match(found, args)
        if name == "sub":
            return operators.pattern("*", *args.pos)
        return operators.unknown_from("a match in a text that is not known", "", *args.pos, name=f"re.{name}")

    return Native(f"re.{name}", run)


def _match(found: re.Match[str], args: Args) -> Value:
    """A match object; a group that it has not, or that nobody knows, is what `_native` of a call makes of an error."""

    def asked(method: Callable[..., Any]) -> Callable[..., Value]:
        def run(it: Interpreter, inner: Args, site: Site | None) -> Value:
            keys = [k.value for k in inner.pos[1:] if isinstance(k, Const)]
            if len(keys) < len(inner.pos) - 1 or inner.kw:
                return operators.unknown_from("a group of a match that is not known", "", *inner.pos[1:])
            answer = method(*keys)
            if isinstance(answer, tuple):
                return Seq("tuple", [operators.derived(a, *args.pos) for a in answer])
            return operators.derived(answer, *args.pos)

        return run

    methods = {name: asked(getattr(found, name)) for name in ("group", "groups", "start", "end", "span")}
    return Instance(NativeClass("re.Match", {**methods, "__getitem__": methods["group"]}))


NATIVES: dict[str, Value] = {
    f"re.{name}": _function(name) for name in ("sub", "match", "search", "fullmatch", "findall", "split")
}
