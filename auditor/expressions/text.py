"""Literals, f-strings, and the text that a value gives."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

import libcst as cst

from auditor import operators
from auditor.interpreter import Frame, Interpreter
from auditor.values import Const, Instance, Pattern, Union, Value, as_dim, merge_places, text_of

_WIDEST = 1_000
"""Characters that a format may pad a value to; a wider one is not made."""


def literal(it: Interpreter, node: Any, frame: Frame) -> Value:
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


def concatenated(it: Interpreter, node: cst.ConcatenatedString, frame: Frame) -> Value:
    return operators.binary("+", it.eval(node.left, frame), it.eval(node.right, frame))


def formatted(it: Interpreter, node: cst.FormattedString, frame: Frame) -> Value:
    out = ""
    sources: list[Value] = []
    unknown: list[Value] = []
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
        text = format_value(value, _format_spec(it, part, frame), part.conversion)
        out += text
        unknown += [value] if "*" in text else []
    result = operators.pattern(out, *sources)
    if type(result) is Pattern and len(unknown) == 1:
        result.number = as_dim(unknown[0])
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


_CONVERSIONS: dict[str, Callable[[Any], str]] = {"r": repr, "s": str, "a": ascii}


def format_value(value: Value, spec: str | None, conversion: str | None) -> str:
    """The text that an f-string or `str()` gives, with `*` for what is unknown."""
    if isinstance(value, Const):
        if spec is None or any(int(n) > _WIDEST for n in re.findall(r"\d{1,9}", spec)) or len(spec) > 40:
            return "*"
        try:
            return format(value.value if conversion is None else _CONVERSIONS[conversion](value.value), spec)
        except (TypeError, ValueError):
            return "*"
    text = text_of(value)
    if text is not None and spec in ("", "s"):
        return text if conversion != "r" else f"'{text}'"
    if isinstance(value, Instance) and spec == "":
        inner = value.payload
        if isinstance(inner, (Const, Pattern)):
            return text_of(inner) or "*"
    if isinstance(value, Union):
        texts = {format_value(o, spec, conversion) for o in value.options}
        return texts.pop() if len(texts) == 1 else "*"
    return "*"
