"""What calling a module comes to: its `__call__`, its hooks and its `forward`."""

from __future__ import annotations

from itertools import zip_longest

from auditor.interpreter import Handler, Interpreter, RaiseSignal
from auditor.joins import union, union_of
from auditor.objects.inheritance import OBJECT, class_lookup, unread_base
from auditor.places import Site, here
from auditor.torch import last_row
from auditor.torch.nn.module import self_of
from auditor.values import NONE, Args, Instance, Native, NativeClass, Seq, Union, Unknown, Value, is_none


def call_module(it: Interpreter, obj: Instance, args: Args, site: Site | None) -> Value:
    """`module(...)`: its `__call__` where the sources have one, else its `forward`."""
    own, _ = class_lookup(obj.cls, "__call__")
    if own is not None and not isinstance(own, Native):
        return it.call(own, Args([obj, *args.pos], args.kw, args.more), site)
    return called(it, obj, args, site)


def called(it: Interpreter, obj: Instance, args: Args, site: Site | None) -> Value:
    """The `forward` of a module and its hooks, unless a call that nobody can read has changed the module."""
    cause = obj.taint or it.poison
    if cause is not None:
        return Unknown(cause.reason, "forward()", "unread", places=cause.places)
    args = _before(it, obj, args, site)
    return _after(it, obj, args, _forward(it, obj, args, site), site)


def _before(it: Interpreter, obj: Instance, args: Args, site: Site | None) -> Args:
    for hook, sure in _hooks(obj, _PRE):
        given = it.call(hook, Args([obj, Seq("tuple", list(args.pos))]), site)
        if not is_none(given):
            new = list(given.items) if isinstance(given, Seq) and given.exact else [given]
            if not sure:
                reason = Unknown("what a hook that may be there gives", places=here(site))
                new = [union(pair) for pair in zip_longest(args.pos, new, fillvalue=reason)]
            args = Args(new, args.kw, args.more)
    return args


def _after(it: Interpreter, obj: Instance, args: Args, result: Value, site: Site | None) -> Value:
    for hook, sure in _hooks(obj, _POST):
        given = it.call(hook, Args([obj, Seq("tuple", list(args.pos)), result]), site)
        if not is_none(given):
            result = given if sure else union([result, given])
    return result


_PRE, _POST = HOOKS = "(forward pre-hooks)", "(forward hooks)"


def _hooks(obj: Instance, name: str) -> list[tuple[Value, bool]]:
    """The hooks of a module, each with whether it has it in every world: `one of several.register_forward_hook(f)`."""
    if name not in obj.attrs:
        return []
    worlds = [_listed(o) for o in _options(obj, name)]
    every = {id(h): h for hooks in worlds for h in hooks}
    return [(h, all(any(h is o for o in hooks) for hooks in worlds)) for h in every.values()]


def _options(obj: Instance, name: str) -> tuple[Value | None, ...]:
    found = obj.attrs.get(name)
    return found.options if isinstance(found, Union) else (found,)


def _listed(found: Value | None) -> list[Value]:
    return list(found.items) if isinstance(found, Seq) else []


def _hook(name: str) -> Handler:
    def register(it: Interpreter, args: Args, site: Site | None) -> Value:
        obj = self_of(args)
        hook = args.get(1, "hook") or NONE
        it.heap.touch(obj)
        obj.attrs[name] = union_of([Seq("list", [*_listed(o), hook]) for o in _options(obj, name)])
        return Instance(HANDLE, payload=(obj, name, hook))

    return register


def _removed(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`handle.remove()`: the module is as it was before the hook, unless another world has it still."""
    obj, name, hook = self_of(args).payload
    it.heap.touch(obj)
    obj.attrs[name] = union_of([Seq("list", [h for h in _listed(o) if h is not hook]) for o in _options(obj, name)])
    return NONE


HANDLE = NativeClass(
    "torch.utils.hooks.RemovableHandle",
    {"remove": _removed, "__enter__": lambda it, args, site: args.pos[0], "__exit__": _removed},
    (OBJECT,),
)


def _forward(it: Interpreter, obj: Instance, args: Args, site: Site | None) -> Value:
    try:
        forward = it.get(obj, "forward", site)
    except RaiseSignal:
        base = unread_base(obj.cls)
        reason = getattr(base, "reason", "") or "a module without a `forward` that could be read"
        return Unknown(reason, "forward()", "unread", places=here(site))
    if isinstance(forward, Unknown):
        return Unknown(forward.reason, "forward()", "unread", places=forward.places or here(site))
    result = it.call(forward, args, site)
    if isinstance(result, Unknown) and not result.kind:
        given = result
        result = Unknown(result.reason, result.name, "unread", places=result.places, flags=result.flags)
        last_row.go_on(it, given, result)
    return result


METHODS: dict[str, Handler] = {
    "__call__": lambda it, args, site: called(it, self_of(args), Args(args.pos[1:], args.kw, args.more), site),
    "register_forward_hook": _hook(_POST),
    "register_forward_pre_hook": _hook(_PRE),
}
