"""Example inputs of a model, by the parameters of its `forward`."""

from __future__ import annotations

import libcst as cst

from auditor import operators
from auditor.containers.iteration import iterate
from auditor.interpreter import Interpreter, RaiseSignal
from auditor.places import Site
from auditor.values import (
    Bound,
    Function,
    Instance,
    Mapping,
    Union,
    Unknown,
    Value,
    is_given,
    is_none,
    text_of,
)


def forward_of(it: Interpreter, module: Value, site: Site | None) -> Function | None:
    """The `forward` of a module, when it is a function of the sources."""
    if not isinstance(module, Instance):
        return None
    try:
        found = it.get(module, "forward", site)
    except RaiseSignal:
        return None
    while isinstance(found, Bound):
        found = found.function
    return found if isinstance(found, Function) else None


def parameter_names(function: Function | None) -> list[str]:
    if function is None:
        return []
    p = function.node.params
    names = [x.name.value for x in (*p.posonly_params, *p.params, *p.kwonly_params)]
    return names[1:] if function.owner is not None and names else names


def called(function: Function | None, name: str) -> str:
    """What a reader calls an input: one of `*past` is `past_0`, `past_1`, ... by its place among them."""
    rest = function.node.params.star_arg if function is not None else None
    if not isinstance(rest, cst.Param) or not name.startswith("arg") or not name[3:].isdigit():
        return name
    return f"{rest.name.value}_{int(name[3:]) - len(parameter_names(function))}"


def bind_inputs(
    it: Interpreter, module: Value, positional: Value | None, keywords: Value | None, site: Site | None
) -> tuple[list[tuple[str, Value]], Unknown | None]:
    """(inputs by forward parameter, unknown further inputs)."""
    names = parameter_names(forward_of(it, module, site))
    out: list[tuple[str, Value]] = []
    more: Unknown | None = None
    if is_given(positional) and site is not None:
        source = iterate(it, positional, site)
        more = source.rest
        for n, v in enumerate(source.items):
            out.append((names[n] if n < len(names) else f"arg{n}", v))
    if isinstance(keywords, Union):
        given = [o for o in keywords.options if not is_none(o)]
        keywords = given[0] if len(given) == 1 else Unknown("one of several sets of inputs", places=keywords.places)
    if isinstance(keywords, Mapping):
        for key, v in keywords.entries.values():
            out.append((text_of(key) or "*", v))
        more = more or keywords.rest
    elif is_given(keywords):
        more = more or operators.unknown_from("the example inputs are not known", "dict", keywords)
    return out, more
