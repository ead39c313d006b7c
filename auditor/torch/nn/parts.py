"""What is asked of the parts of a module: sub-modules, parameters and buffers by name."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.interpreter import Handler, Interpreter
from auditor.joins import present, union
from auditor.objects.inheritance import unread_base
from auditor.places import Site, here
from auditor.torch.nn.module import is_module, self_of
from auditor.torch.pairs import named_pair
from auditor.values import (
    Args,
    Const,
    Instance,
    Mapping,
    NativeClass,
    Pattern,
    Seq,
    Star,
    Tensor,
    Union,
    Unknown,
    Value,
    text_of,
)
from auditor.values.absence import Absent
from auditor.views import attribute_view


def children(obj: Instance) -> Iterator[tuple[str, Value]]:
    """(name, child) for every sub-module; repeated children of a list of unknown length have the name `*`."""
    if isinstance(obj.payload, Seq):
        starred = False
        for n, v in enumerate(obj.payload.items):
            starred = starred or isinstance(v, Star)
            for one in v.items if isinstance(v, Star) else (v,):
                yield ("*" if starred else str(n)), one
    elif isinstance(obj.payload, Mapping):
        for key, v in obj.payload.entries.values():
            for one in v.options if isinstance(v, Union) else (v,):
                if not isinstance(one, Absent):
                    yield text_of(key) or "*", one
    for name, v in obj.attrs.items():
        if is_module(v):
            yield name, v
        elif isinstance(v, Union):
            for o in v.options:
                if is_module(o):
                    yield name, o


def walk(obj: Instance, prefix: str = "", seen: set[int] | None = None) -> Iterator[tuple[str, Instance]]:
    seen = set() if seen is None else seen
    if id(obj) in seen:
        return
    seen.add(id(obj))
    yield prefix, obj
    for name, child in children(obj):
        if isinstance(child, Instance):
            yield from walk(child, f"{prefix}.{name}" if prefix else name, seen)


def tensors(obj: Instance) -> Iterator[tuple[str, Tensor]]:
    """(name, tensor) of a module and of its sub-modules; each that there may be, where it is set on some ways only."""
    for _, m in walk(obj):
        for name, v in m.attrs.items():
            for one in v.options if isinstance(v, Union) else (v,):
                if isinstance(one, Tensor):
                    yield name, one


def _name(text: str) -> Value:
    return Pattern(text) if "*" in text else Const(text)


def _open(obj: Instance) -> Unknown | None:
    """Set when the module may have parts that were not read."""
    for _, m in walk(obj):
        if m.taint is not None:
            return m.taint
        base = unread_base(m.cls)
        if base is not None:
            return Unknown("the parts of a class whose source is not among those read", places=base.places)
    return None


def _named_modules(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = self_of(args)
    return Seq("list", [Seq("tuple", [_name(n), m]) for n, m in walk(obj)], _open(obj))


def _modules(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = self_of(args)
    return Seq("list", [m for _, m in walk(obj)], _open(obj))


def _named_children(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Seq("list", [Seq("tuple", [_name(n), m]) for n, m in children(self_of(args))])


def _children(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Seq("list", [m for _, m in children(self_of(args))])


def _parameters(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Seq("list", [Star((Tensor(None, reason=Unknown("a parameter of a module")),))])


def _named_parameters(it: Interpreter, args: Args, site: Site | None) -> Value:
    row = Seq("tuple", [Pattern("*"), Tensor(None, reason=Unknown("a parameter of a module"))])
    return Seq("list", [Star((row,))])


def _buffer_rows(obj: Instance) -> list[tuple[str, Tensor]]:
    """The registered buffers; `*` stands in the name of one that is in a repeated part."""
    return [
        (f"{prefix}.{name}" if prefix else name, v)
        for prefix, m in walk(obj)
        for name, own in m.attrs.items()
        if isinstance(v := present(own), Tensor) and v.base is not None and v.base.role == "buffer"
    ]


def _unread_part(obj: Instance) -> Unknown | None:
    """Set when a part of the module may have buffers that were not seen; the layers of torch have none."""
    for _, m in walk(obj):
        if isinstance(m.payload, (Seq, Mapping)) and m.payload.rest is not None:
            return m.payload.rest
        base = unread_base(m.cls)
        if m.taint is not None or (base is not None and not isinstance(base, NativeClass)):
            return m.taint or _open(obj)
    return None


def _named_buffers(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = self_of(args)
    rows = [(n, Seq("tuple", [_name(n), v])) for n, v in _buffer_rows(obj)]
    return Seq("list", [Star((row,)) if "*" in n else row for n, row in rows], _unread_part(obj))


def _buffers(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = self_of(args)
    return Seq("list", [Star((v,)) if "*" in n else v for n, v in _buffer_rows(obj)], _unread_part(obj))


def _state_dict(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Mapping(rest=Unknown("the weights of a module", "state_dict()", "dict"))


def _load_state_dict(it: Interpreter, args: Args, site: Site | None) -> Value:
    return named_pair(
        Seq("list", [], Unknown("keys missing from the weights")),
        Seq("list", [], Unknown("keys unexpected in the weights")),
        ("missing_keys", "unexpected_keys"),
    )


def _get_submodule(it: Interpreter, args: Args, site: Site | None) -> Value:
    path = text_of(args.pos[1])
    if path is None:
        return Unknown("a sub-module whose name is not known", "get_submodule()", places=here(site))
    found: list[Value] = [args.pos[0]]
    for part in path.split(".") if path else ():
        found = [c for o in found if isinstance(o, Instance) for n, c in children(o) if n == part or "*" in (n, part)]

    return union(found) if found else Unknown(f"no sub-module `{path}` was seen", "get_submodule()", places=here(site))


def _apply(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = self_of(args)
    for _, m in list(walk(obj)):
        it.call(args.pos[1], Args([m]), site)
    return obj


def parts_by_name(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`_modules`: the sub-modules by name; writing to it replaces one."""
    obj = self_of(args)
    return attribute_view(obj, dict(children(obj)))


METHODS: dict[str, Handler] = {
    "named_modules": _named_modules,
    "modules": _modules,
    "named_children": _named_children,
    "children": _children,
    "parameters": _parameters,
    "named_parameters": _named_parameters,
    "buffers": _buffers,
    "named_buffers": _named_buffers,
    "state_dict": _state_dict,
    "load_state_dict": _load_state_dict,
    "get_submodule": _get_submodule,
    "get_parameter": lambda it, args, site: Tensor(None, reason=Unknown("a parameter of a module")),
    "apply": _apply,
}
