"""`torch.nn.Module`: what a module is, how it is called, and the containers of modules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from auditor import families, operators
from auditor.containers import get_item, iterate, length
from auditor.interpreter import Interpreter, RaiseSignal
from auditor.joins import present
from auditor.objects import OBJECT, class_lookup, mro, unread_base
from auditor.places import Site
from auditor.roles import is_state_name
from auditor.torch import last_row
from auditor.torch.tensors import as_tensor
from auditor.values import (
    NONE,
    Args,
    Bound,
    Class,
    Const,
    ExternalObject,
    Instance,
    Mapping,
    Native,
    NativeClass,
    Pattern,
    Seq,
    Star,
    Storage,
    Tensor,
    Union,
    Unknown,
    Value,
    text_of,
)

Handler = Callable[[Interpreter, Args, "Site | None"], Value]


def _self(args: Args) -> Instance:
    obj = args.pos[0]
    assert isinstance(obj, Instance)
    return obj


def _returns_self(it: Interpreter, args: Args, site: Site | None) -> Value:
    return args.pos[0]


def _nothing(it: Interpreter, args: Args, site: Site | None) -> Value:
    return NONE


def _register(role: str) -> Handler:
    def register(it: Interpreter, args: Args, site: Site | None) -> Value:
        obj, name, value = _self(args), text_of(args.pos[1]), args.get(2, "tensor", "param", "module") or NONE
        if name is None or not name.strip("*"):
            return NONE
        if isinstance(value, Tensor) and role:
            given, value = value, replace(named_storage(value, name, role), places=(site,) if site else ())
            if given.base is None and it.events is None:
                given.base = value.base  # whoever else holds the tensor writes to this buffer
        if "*" in name:
            families.register(it, obj, name, value, site)
            return NONE
        it.heap.touch(obj)
        obj.attrs[name] = value
        return NONE

    return register


def named_storage(t: Tensor, name: str, role: str) -> Tensor:
    return replace(t, base=Storage(name, role, watched=role == "buffer" and is_state_name(name), shape=t.shape))


_INSIDES = frozenset({"_call_impl", "_wrapped_call_impl", "_slow_forward", "_forward_hooks", "_forward_pre_hooks"})
"""What calling a module goes through beside its `forward`."""


def _setattr(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj, name, value = _self(args), text_of(args.pos[1]) or "?", args.pos[2]
    it.heap.touch(obj)
    if name in _INSIDES:
        obj.taint = obj.taint or Unknown(f"`{name}` of a module is set", places=(site,) if site else ())
    old = obj.attrs.get(name)
    if isinstance(value, Tensor) and isinstance(old, Tensor) and old.base is not None and old.base.role == "buffer":
        if it.events is not None and site is not None:
            it.events.written(old, site, None, value)
        obj.attrs[name] = value if it.events is not None else named_storage(value, name, "buffer")
        return NONE
    if (
        isinstance(old, Tensor)
        and old.base is not None
        and isinstance(value, Tensor)
        and value.shape is None
        and it.events is None
    ):
        return NONE  # weights read from a checkpoint fit the parameter that they fill
    if isinstance(value, Tensor) and value.base is None and it.events is None:
        value = named_storage(value, name, "attribute")
    obj.attrs[name] = value
    return NONE


def is_module(v: Value) -> bool:
    return isinstance(v, Instance) and any(c is MODULE for c in mro(v.cls))


def kept_module(args: Args) -> Value | None:
    """The first argument that is a module, or one of several values of which one is, or an object that holds one."""
    for v in args.all():
        if find_module(Args([v])) is not None:
            return v if not isinstance(v, ExternalObject) else find_module(Args([v]))
    return None


def unknown_module(args: Args) -> Unknown | None:
    """The first argument of a call that takes a module, or of the object that it belongs to, when nobody knows it."""
    head = args.pos[0] if args.pos else None
    while isinstance(head, ExternalObject):
        if len(args.pos) > 1 and isinstance(args.pos[1], Unknown):
            return args.pos[1]
        args, head = head.args, head.args.pos[0] if head.args.pos else None
    return head if isinstance(head, Unknown) else None


def find_module(args: Args) -> Instance | None:
    """The first module among the arguments, or among those of an object that holds one."""
    for v in args.all():
        if isinstance(v, Instance) and is_module(v):
            return v
        if isinstance(v, Union):
            inner = find_module(Args(list(v.options)))
            if inner is not None:
                return inner
        if isinstance(v, ExternalObject):
            inner = find_module(v.args)
            if inner is not None:
                return inner
    return None


def call_module(it: Interpreter, obj: Instance, args: Args, site: Site | None) -> Value:
    """`module(...)`: its `__call__` where the sources have one, else its `forward`."""
    own, _ = class_lookup(obj.cls, "__call__")
    if own is not None and not isinstance(own, Native):
        return it.call(own, Args([obj, *args.pos], args.kw, args.more), site)
    return _called(it, obj, args, site)


def _called(it: Interpreter, obj: Instance, args: Args, site: Site | None) -> Value:
    """The `forward` of a module and its hooks, unless a call that nobody can read has changed the module."""
    cause = obj.taint or it.poison
    if cause is not None:
        return Unknown(cause.reason, "forward()", "unread", places=cause.places)
    args = _before(it, obj, args, site)
    return _after(it, obj, args, _forward(it, obj, args, site), site)


def _before(it: Interpreter, obj: Instance, args: Args, site: Site | None) -> Args:
    for hook in _hooks(obj, _PRE):
        given = it.call(hook, Args([obj, Seq("tuple", list(args.pos))]), site)
        if not (isinstance(given, Const) and given.value is None):
            new = list(given.items) if isinstance(given, Seq) and given.exact else [given]
            args = Args(new, args.kw, args.more)
    return args


def _after(it: Interpreter, obj: Instance, args: Args, result: Value, site: Site | None) -> Value:
    for hook in _hooks(obj, _POST):
        given = it.call(hook, Args([obj, Seq("tuple", list(args.pos)), result]), site)
        if not (isinstance(given, Const) and given.value is None):
            result = given
    return result


_PRE, _POST = HOOKS = "(forward pre-hooks)", "(forward hooks)"


def _hooks(obj: Instance, name: str) -> list[Value]:
    found = obj.attrs.get(name)
    return list(found.items) if isinstance(found, Seq) else []


def _hook(name: str) -> Handler:
    def register(it: Interpreter, args: Args, site: Site | None) -> Value:
        obj = _self(args)
        it.heap.touch(obj)
        obj.attrs[name] = Seq("list", [*_hooks(obj, name), args.get(1, "hook") or NONE])
        return Unknown("the handle of a hook", "handle", "handle")

    return register


def _forward(it: Interpreter, obj: Instance, args: Args, site: Site | None) -> Value:
    try:
        forward = it.get(obj, "forward", site)
    except RaiseSignal:
        base = unread_base(obj.cls)
        reason = getattr(base, "reason", "") or "a module without a `forward` that could be read"
        return Unknown(reason, "forward()", "unread", places=(site,) if site else ())
    if isinstance(forward, Unknown):
        return Unknown(forward.reason, "forward()", "unread", places=forward.places or ((site,) if site else ()))
    result = it.call(forward, args, site)
    if isinstance(result, Unknown) and not result.kind:
        given = result
        result = Unknown(result.reason, result.name, "unread", places=result.places, flags=result.flags)
        last_row.go_on(it, given, result)
    return result


# -- walking ----------------------------------------------------------------------------------------------------


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
            yield text_of(key) or "*", v
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
    obj = _self(args)
    return Seq("list", [Seq("tuple", [_name(n), m]) for n, m in walk(obj)], _open(obj))


def _modules(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = _self(args)
    return Seq("list", [m for _, m in walk(obj)], _open(obj))


def _named_children(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Seq("list", [Seq("tuple", [_name(n), m]) for n, m in children(_self(args))])


def _children(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Seq("list", [m for _, m in children(_self(args))])


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
        base = unread_base(m.cls)
        if m.taint is not None or (base is not None and not isinstance(base, NativeClass)):
            return m.taint or _open(obj)
    return None


def _named_buffers(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = _self(args)
    rows = [(n, Seq("tuple", [_name(n), v])) for n, v in _buffer_rows(obj)]
    return Seq("list", [Star((row,)) if "*" in n else row for n, row in rows], _unread_part(obj))


def _buffers(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = _self(args)
    return Seq("list", [Star((v,)) if "*" in n else v for n, v in _buffer_rows(obj)], _unread_part(obj))


def _state_dict(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Mapping(rest=Unknown("the weights of a module", "state_dict()", "dict"))


def _load_state_dict(it: Interpreter, args: Args, site: Site | None) -> Value:
    return named_pair(
        Seq("list", [], Unknown("keys missing from the weights")),
        Seq("list", [], Unknown("keys unexpected in the weights")),
        ("missing_keys", "unexpected_keys"),
    )


PAIR = NativeClass("torch.return_types", bases=(OBJECT,))


def named_pair(a: Value, b: Value, names: tuple[str, str]) -> Value:
    """Two values that unpack as a tuple and have names."""
    return Instance(PAIR, {names[0]: a, names[1]: b}, Seq("tuple", [a, b]))


def _get_submodule(it: Interpreter, args: Args, site: Site | None) -> Value:
    path = text_of(args.pos[1])
    if path is None:
        return Unknown("a sub-module whose name is not known", "get_submodule()", places=(site,) if site else ())
    found: list[Value] = [args.pos[0]]
    for part in path.split(".") if path else ():
        found = [c for o in found if isinstance(o, Instance) for n, c in children(o) if n == part or "*" in (n, part)]
    from auditor.joins import union

    return (
        union(found)
        if found
        else Unknown(f"no sub-module `{path}` was seen", "get_submodule()", places=(site,) if site else ())
    )


def _apply(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = _self(args)
    for _, m in list(walk(obj)):
        it.call(args.pos[1], Args([m]), site)
    return obj


def _parts(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`_modules`: the sub-modules by name; writing to it replaces one."""
    from auditor.views import attribute_view

    obj = _self(args)
    return attribute_view(obj, dict(children(obj)))


def _unseen(it: Interpreter, args: Args, site: Site | None) -> Value:
    name = text_of(args.pos[1])
    if name == "_modules":
        return _parts(it, args, site)
    family = families.find(_self(args), name or "")
    if family is not None:
        return family
    if name in _INSIDES:  # a dict or a method, by which the script may change what a call does
        obj = _self(args)
        it.heap.touch(obj)
        obj.taint = obj.taint or Unknown(f"`{name}` of a module is taken", places=(site,) if site else ())
        return obj.taint
    if name == "save" and TRACED_WITH in _self(args).attrs:
        return Bound(it.loader.external("torch.jit.save"), args.pos[0])
    if name in _UNFOLLOWED or (name in _COMPILED and TRACED_WITH in _self(args).attrs):
        return Unknown(f"`{name}` of a module is not followed", f".{name}", places=(site,) if site else ())
    raise RaiseSignal(
        "AttributeError", Unknown(f"no attribute `{text_of(args.pos[1])}`", places=(site,) if site else ())
    )


TRACED_WITH = "(traced with)"
"""Where a traced module keeps its example inputs."""

_COMPILED = frozenset(
    {"graph", "inlined_graph", "code", "code_with_constants", "original_name", "_c", "save_to_buffer"}
)
"""What only a traced module has, beside `save`."""

_UNFOLLOWED = frozenset(
    {"_parameters", "_buffers", "_apply", "_get_name", "_version", "dump_patches", "call_super_init", "T_destination"}
    | {"get_buffer", "set_submodule", "get_extra_state", "set_extra_state", "xpu", "ipu", "mtia"}
    | {"register_backward_hook", "register_full_backward_hook", "register_full_backward_pre_hook"}
    | {"register_state_dict_pre_hook", "register_state_dict_post_hook", "register_load_state_dict_pre_hook"}
)
"""What every module has and nothing here models: it is there, so that asking for it ends no run."""

_SELF = ["to", "eval", "train", "half", "float", "double", "bfloat16", "cuda", "cpu"]
_SELF += ["requires_grad_", "share_memory", "to_empty", "compile", "type"]
MODULE = NativeClass(
    "torch.nn.Module",
    {
        "__init__": _nothing,
        "__call__": lambda it, args, site: _called(it, _self(args), Args(args.pos[1:], args.kw, args.more), site),
        "__setattr__": _setattr,
        "register_buffer": _register("buffer"),
        "register_parameter": _register("parameter"),
        "add_module": _register(""),
        "register_module": _register(""),
        "register_forward_hook": _hook(_POST),
        "register_forward_pre_hook": _hook(_PRE),
        "register_load_state_dict_post_hook": _nothing,
        "_register_load_state_dict_pre_hook": _nothing,
        **dict.fromkeys(_SELF, _returns_self),
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
        "__getattr__": lambda it, args, site: _unseen(it, args, site),
        "zero_grad": _nothing,
        "extra_repr": lambda it, args, site: Const(""),
    },
    (OBJECT,),
    {"training": Const(False)},
    closed=True,
)


# -- containers -------------------------------------------------------------------------------------------------


def _list_init(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = _self(args)
    given = args.get(1, "modules")
    source = (
        iterate(it, given, site)
        if given is not None and site is not None and not (isinstance(given, Const) and given.value is None)
        else Seq("list", [])
    )
    it.heap.touch(obj)
    obj.payload = Seq("list", list(source.items), source.rest)
    return NONE


def _sequential_init(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = _self(args)
    items = list(args.pos[1:])
    if len(items) == 1 and isinstance(items[0], Mapping):
        items = [v for _, v in items[0].entries.values()]
    it.heap.touch(obj)
    obj.payload = Seq("list", items, args.more)
    return NONE


def _payload(args: Args) -> Seq:
    payload = _self(args).payload
    assert isinstance(payload, Seq)
    return payload


def _list_method(name: str) -> Handler:
    def run(it: Interpreter, args: Args, site: Site | None) -> Value:
        it.call(it.get(_payload(args), name, site), Args(args.pos[1:], args.kw), site)
        return args.pos[0]

    return run


def _list_item(it: Interpreter, args: Args, site: Site | None) -> Value:
    assert site is not None
    found = get_item(it, _payload(args), args.pos[1], site)
    if isinstance(found, Seq):
        return Instance(_self(args).cls, payload=found)
    return found


def _list_set(it: Interpreter, args: Args, site: Site | None) -> Value:
    from auditor.containers import set_item

    assert site is not None
    set_item(it, _payload(args), args.pos[1], args.pos[2], site)
    return NONE


def _sequential_forward(it: Interpreter, args: Args, site: Site | None) -> Value:
    value = args.pos[1] if len(args.pos) > 1 else next(iter(args.kw.values()))
    for m in _payload(args).items:
        if isinstance(m, Star):
            before = value
            for one in m.items:
                value = it.call(one, Args([value]), site)
            from auditor.joins import join, same

            if not same(before, value):
                value = join(before, value)
            continue
        value = it.call(m, Args([value]), site)
    rest = _payload(args).rest
    return value if rest is None else Unknown(rest.reason, "forward()", "unread", places=rest.places)


def _list_len(it: Interpreter, args: Args, site: Site | None) -> Value:
    return length(it, _payload(args), site)


def _list_iter(it: Interpreter, args: Args, site: Site | None) -> Value:
    return _payload(args)


_LIST: dict[str, Handler] = {
    "__getitem__": _list_item,
    "__setitem__": _list_set,
    "__len__": _list_len,
    "__iter__": _list_iter,
    "append": _list_method("append"),
    "extend": _list_method("extend"),
    "insert": _list_method("insert"),
    "pop": _list_method("pop"),
}
MODULE_LIST = NativeClass("torch.nn.ModuleList", {"__init__": _list_init, **_LIST}, (MODULE,), closed=True)
PARAMETER_LIST = NativeClass("torch.nn.ParameterList", {"__init__": _list_init, **_LIST}, (MODULE,))
SEQUENTIAL = NativeClass(
    "torch.nn.Sequential",
    {"__init__": _sequential_init, "forward": _sequential_forward, **_LIST},
    (MODULE,),
    closed=True,
)


def _dict_init(it: Interpreter, args: Args, site: Site | None) -> Value:
    given = args.get(1, "modules")
    made = it.call(it.loader.builtins["dict"], Args([given] if given is not None else []), site)
    it.heap.touch(_self(args))
    _self(args).payload = made
    return NONE


def _dict_method(name: str) -> Handler:
    return lambda it, args, site: it.call(it.get(_self(args).payload, name, site), Args(args.pos[1:], args.kw), site)


def _dict_item(it: Interpreter, args: Args, site: Site | None) -> Value:
    assert site is not None
    return get_item(it, _self(args).payload, args.pos[1], site)


MODULE_DICT = NativeClass(
    "torch.nn.ModuleDict",
    {
        "__init__": _dict_init,
        "__getitem__": _dict_item,
        "__setitem__": lambda it, args, site: _set_entry(it, args, site),
        "items": _dict_method("items"),
        "values": _dict_method("values"),
        "keys": _dict_method("keys"),
        "update": _dict_method("update"),
        "__getattr__": lambda it, args, site: _dict_attribute(it, args, site),
        "__setattr__": lambda it, args, site: _dict_setattr(it, args, site),
    },
    (MODULE,),
)


def _holds(args: Args) -> bool:
    """Whether a dict of modules has the attribute in question as an entry."""
    inner, name = _self(args).payload, text_of(args.pos[1])
    return isinstance(inner, Mapping) and name is not None and inner.get(name) is not None


def _dict_attribute(it: Interpreter, args: Args, site: Site | None) -> Value:
    return _dict_item(it, args, site) if site is not None and _holds(args) else _unseen(it, args, site)


def _dict_setattr(it: Interpreter, args: Args, site: Site | None) -> Value:
    return _set_entry(it, args, site) if _holds(args) else _setattr(it, args, site)


def _set_entry(it: Interpreter, args: Args, site: Site | None) -> Value:
    from auditor.containers import set_item

    assert site is not None
    set_item(it, _self(args).payload, args.pos[1], args.pos[2], site)
    return NONE


def _parameter(it: Interpreter, args: Args, site: Site | None) -> Value:
    value = args.get(0, "data")
    t = as_tensor(value) if value is not None else None
    if t is None:
        return Tensor(None, reason=Unknown("a parameter"))
    if t.shape is None and t.reason is not None:  # weights, wherever they come from, fit what they are combined with
        why = t.reason
        t = replace(t, reason=Unknown(why.reason, why.name, "data", places=why.places, flags=why.flags))
    return named_storage(t, "parameter", "parameter")


def _buffer(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = as_tensor(args.get(0, "data") or NONE)
    return named_storage(t, "buffer", "buffer") if t is not None else Tensor(None, reason=Unknown("a buffer"))


NATIVES: dict[str, Value] = {
    "torch.nn.Module": MODULE,
    "torch.nn.modules.module.Module": MODULE,
    "torch.nn.ModuleList": MODULE_LIST,
    "torch.nn.ParameterList": PARAMETER_LIST,
    "torch.nn.ModuleDict": MODULE_DICT,
    "torch.nn.Sequential": SEQUENTIAL,
    "torch.nn.Parameter": Native("Parameter", _parameter),
    "torch.nn.parameter.Parameter": Native("Parameter", _parameter),
    "torch.nn.Buffer": Native("Buffer", _buffer),
}
__all__ = ["NATIVES", "Bound", "Class", "call_module", "class_lookup", "find_module", "is_module", "operators", "walk"]
