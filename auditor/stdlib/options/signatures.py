"""The options that the signature of a function makes (typer, fire)."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from auditor.interpreter import Frame, Interpreter
from auditor.stdlib.files import PATH
from auditor.stdlib.options.option import Option
from auditor.values import FALSE, TRUE, Class, Const, Function, Instance, Seq, Value


@dataclass(slots=True)
class Declared:
    """`typer.Option(...)` or `typer.Argument(...)` as a default, or inside `Annotated`."""

    argument: bool
    default: Value | None
    names: tuple[str, ...]
    callback: Value | None = None
    envvar: Value | None = None


def signature_options(it: Interpreter, f: Function, skip: int, positional: bool = True) -> list[Option]:
    """The options that the parameters of a function make; with `positional` one without a default is an argument."""
    out = []
    p = f.node.params
    assert f.site is not None
    frame = Frame(f.env, f.site.statement, it.loader.module_of(f.env))
    for param in (*p.posonly_params, *p.params, *p.kwonly_params)[skip:]:
        name = param.name.value
        annotation = param.annotation.annotation if param.annotation is not None else None
        declared = None
        if isinstance(annotation, cst.Subscript) and _last_name(annotation.value) == "Annotated":
            parts = [e.slice.value for e in annotation.slice if isinstance(e.slice, cst.Index)]
            annotation = parts[0]
            declared = next((d for x in parts[1:] if (d := _declared(it.eval(x, frame))) is not None), None)
        default = f.defaults.get(name)
        if (found := _declared(default)) is not None:
            declared, default = found, found.default
        elif declared is not None and default is None:
            default = declared.default
        if isinstance(default, Const) and default.value is ...:
            default = None
        out.append(_option(it, param, name, annotation, declared, default, positional, frame))
    return out


def _option(
    it: Interpreter,
    param: cst.Param,
    name: str,
    annotation: cst.BaseExpression | None,
    declared: Declared | None,
    default: Value | None,
    positional: bool,
    frame: Frame,
) -> Option:
    settings: dict[str, Value] = {} if default is None else {"default": default}
    if declared is not None and declared.callback is not None:
        settings["callback"] = declared.callback
    if declared is not None and declared.envvar is not None:
        settings["envvar"] = declared.envvar
    action = "store"
    kind = _last_name(_bare(annotation)) if annotation is not None else ""
    if kind == "bool" or (isinstance(default, Const) and isinstance(default.value, bool)):
        action = "boolean"
        settings.setdefault("default", FALSE)
    elif kind in ("int", "float", "str"):
        settings["type"] = it.loader.builtins[kind]
    elif kind == "Path":
        settings["type"] = PATH
    elif annotation is not None and kind[:1].isupper():
        members = _members(it, _bare(annotation), frame)
        if members:
            settings["choices"] = Seq("list", list(members))
            settings["type"] = it.eval(_bare(annotation), frame)
    site = frame.statement.site(param)
    argument = declared.argument if declared is not None else positional and default is None and action == "store"
    if argument:
        if default is not None:
            settings["nargs"] = Const("?")
        return Option(name, (name,), name, settings, action, site)
    if default is None and action == "store":
        settings["required"] = TRUE
    written = declared.names if declared is not None else ()
    off = next((n.split("/")[1] for n in written if "/" in n), "")
    if off and action == "boolean":
        settings["off"] = Const(off)
    given = tuple(n.split("/")[0] for n in written if n.startswith("-"))
    names = given or tuple(dict.fromkeys((f"--{name.replace('_', '-')}", f"--{name}")))
    flag = next((n for n in names if n.startswith("--")), names[0])
    return Option(flag, names, name, settings, action, site)


def _members(it: Interpreter, annotation: cst.BaseExpression, frame: Frame) -> list[Value]:
    """The values of an enumeration."""
    cls = it.eval(annotation, frame)
    if not isinstance(cls, Class):
        return []
    found = [v.attrs.get("value") for v in cls.env.names.values() if isinstance(v, Instance) and v.cls is cls]
    return [v for v in found if isinstance(v, Const)]


def _declared(value: Value | None) -> Declared | None:
    return value.payload if isinstance(value, Instance) and isinstance(value.payload, Declared) else None


def _bare(annotation: cst.BaseExpression) -> cst.BaseExpression:
    """`T` of `Optional[T]`, `T | None` and `List[T]`."""
    if isinstance(annotation, cst.BinaryOperation):
        return _bare(annotation.left if _last_name(annotation.left) != "None" else annotation.right)
    if isinstance(annotation, cst.Subscript) and isinstance(annotation.slice[0].slice, cst.Index):
        return _bare(annotation.slice[0].slice.value)
    return annotation


def _last_name(node: cst.BaseExpression) -> str:
    return node.attr.value if isinstance(node, cst.Attribute) else node.value if isinstance(node, cst.Name) else ""
