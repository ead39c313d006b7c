"""What is kept in a module: buffers, parameters, sub-modules and other attributes that are set."""

from __future__ import annotations

from dataclasses import replace

from auditor import families
from auditor.interpreter import Handler, Interpreter
from auditor.places import Site, here
from auditor.roles import is_state_name
from auditor.torch import positions
from auditor.torch.nn.module import self_of
from auditor.torch.tensors import as_tensor
from auditor.values import NONE, Args, Native, Storage, Tensor, Unknown, Value, text_of


def _register(role: str) -> Handler:
    def register(it: Interpreter, args: Args, site: Site | None) -> Value:
        given_name = args.get(1, "name") or NONE
        obj, name, value = self_of(args), text_of(given_name), args.get(2, "tensor", "param", "module") or NONE
        if not role and (name is None or "*" in name):
            return it.call(it.loader.builtins["setattr"], Args([obj, given_name, value]), site)
        if name is None or not name.strip("*"):
            return NONE
        if role and isinstance(value, Unknown):
            value = Tensor(None, reason=value, places=value.places, flags=value.flags)
        if isinstance(value, Tensor) and role:
            given, value = value, replace(_named_storage(it, value, name, role), places=here(site))
            value = positions.counter(value, name) if role == "buffer" else value
            if given.base is None and it.events is None:
                given.base = value.base  # whoever else holds the tensor writes to this buffer
        if "*" in name:
            families.register(it, obj, name, value, site)
            return NONE
        it.heap.touch(obj)
        obj.attrs[name] = value
        return NONE

    return register


def _named_storage(it: Interpreter, t: Tensor, name: str, role: str) -> Tensor:
    watched, each = role == "buffer" and is_state_name(name), bool(it.rounds.open)
    if t.pick is not None and (role == "parameter" or watched):
        t = replace(t, pick=None)  # what it is at first is not what it is after training, or in a later call
    return replace(t, base=Storage(name, role, watched=watched, shape=t.shape, each=each))


CALL_PROTOCOL = frozenset({"_call_impl", "_wrapped_call_impl", "_slow_forward", "_forward_hooks", "_forward_pre_hooks"})
"""What calling a module goes through beside its `forward`."""


def set_attribute(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj, name, value = self_of(args), text_of(args.pos[1]) or "?", args.pos[2]
    it.heap.touch(obj)
    if name in CALL_PROTOCOL:
        obj.taint = obj.taint or Unknown(f"`{name}` of a module is set", places=here(site))
    old = obj.attrs.get(name)
    if isinstance(value, Tensor) and isinstance(old, Tensor) and old.base is not None and old.base.role == "buffer":
        if it.events is None or site is None:
            obj.attrs[name] = _named_storage(it, value, name, "buffer")
            return NONE
        lost = "is bound to another tensor, which no trace records" if it.events.example is not None else ""
        if it.events.puts_back(old, site, None, value, lost):
            return NONE  # the state itself, with what was written to its copy
        it.events.written(old, site, None, value, lost)
        obj.attrs[name] = value
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
        value = _named_storage(it, value, name, "attribute")
    obj.attrs[name] = value
    return NONE


def _parameter(it: Interpreter, args: Args, site: Site | None) -> Value:
    value = args.get(0, "data")
    t = as_tensor(value) if value is not None else None
    if t is None:
        return Tensor(None, reason=Unknown("a parameter"))
    if t.shape is None and t.reason is not None:  # weights, wherever they come from, fit what they are combined with
        why = t.reason
        t = replace(t, reason=Unknown(why.reason, why.name, "data", places=why.places, flags=why.flags))
    return _named_storage(it, t, "parameter", "parameter")


def _buffer(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = as_tensor(args.get(0, "data") or NONE)
    return _named_storage(it, t, "buffer", "buffer") if t is not None else Tensor(None, reason=Unknown("a buffer"))


METHODS: dict[str, Handler] = {
    "__setattr__": set_attribute,
    "register_buffer": _register("buffer"),
    "register_parameter": _register("parameter"),
    "add_module": _register(""),
    "register_module": _register(""),
}
NATIVES: dict[str, Value] = {
    "torch.nn.Parameter": Native("Parameter", _parameter),
    "torch.nn.parameter.Parameter": Native("Parameter", _parameter),
    "torch.nn.Buffer": Native("Buffer", _buffer),
}
