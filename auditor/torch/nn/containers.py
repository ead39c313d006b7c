"""Containers of modules: `ModuleList`, `Sequential`, `ModuleDict` and `ParameterList`."""

from __future__ import annotations

from auditor.containers.iteration import iterate
from auditor.containers.lengths import length
from auditor.containers.reading import get_item
from auditor.containers.writing import set_item
from auditor.interpreter import Handler, Interpreter
from auditor.joins import join
from auditor.places import Site
from auditor.sameness import same
from auditor.torch.nn.module import MODULE, self_of
from auditor.torch.nn.storage import set_attribute
from auditor.torch.nn.unlisted import unlisted
from auditor.values import (
    NONE,
    Args,
    Instance,
    Mapping,
    NativeClass,
    Seq,
    Star,
    Unknown,
    Value,
    is_given,
    text_of,
)


def _list_init(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = self_of(args)
    given = args.get(1, "modules")
    source = iterate(it, given, site) if is_given(given) and site is not None else Seq("list", [])
    it.heap.touch(obj)
    obj.payload = Seq("list", list(source.items), source.rest)
    return NONE


def _sequential_init(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = self_of(args)
    items = list(args.pos[1:])
    if len(items) == 1 and isinstance(items[0], Mapping):
        items = items[0].values()
    it.heap.touch(obj)
    obj.payload = Seq("list", items, args.more)
    return NONE


def _payload(args: Args) -> Seq:
    payload = self_of(args).payload
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
        return Instance(self_of(args).cls, payload=found)
    return found


def _list_set(it: Interpreter, args: Args, site: Site | None) -> Value:
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
    it.heap.touch(self_of(args))
    self_of(args).payload = made
    return NONE


def _dict_method(name: str) -> Handler:
    return lambda it, args, site: it.call(it.get(self_of(args).payload, name, site), Args(args.pos[1:], args.kw), site)


def _dict_item(it: Interpreter, args: Args, site: Site | None) -> Value:
    assert site is not None
    return get_item(it, self_of(args).payload, args.pos[1], site)


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
    inner, name = self_of(args).payload, text_of(args.pos[1])
    return isinstance(inner, Mapping) and name is not None and inner.get(name) is not None


def _dict_attribute(it: Interpreter, args: Args, site: Site | None) -> Value:
    return _dict_item(it, args, site) if site is not None and _holds(args) else unlisted(it, args, site)


def _dict_setattr(it: Interpreter, args: Args, site: Site | None) -> Value:
    return _set_entry(it, args, site) if _holds(args) else set_attribute(it, args, site)


def _set_entry(it: Interpreter, args: Args, site: Site | None) -> Value:
    assert site is not None
    set_item(it, self_of(args).payload, args.pos[1], args.pos[2], site)
    return NONE


NATIVES: dict[str, Value] = {
    "torch.nn.ModuleList": MODULE_LIST,
    "torch.nn.ParameterList": PARAMETER_LIST,
    "torch.nn.ModuleDict": MODULE_DICT,
    "torch.nn.Sequential": SEQUENTIAL,
}
