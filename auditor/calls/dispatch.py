"""What calling each kind of value gives."""

from __future__ import annotations

from auditor.calls.external import call_external
from auditor.calls.functions import call_function
from auditor.calls.unread import unread
from auditor.interpreter import Interpreter, RaiseSignal
from auditor.objects.instances import instantiate
from auditor.places import Site, here
from auditor.torch.modules import call_module, is_module
from auditor.torch.ops.writes import filled_in
from auditor.torch.rows import overwritten
from auditor.values import (
    Args,
    Bound,
    Class,
    Const,
    External,
    ExternalObject,
    Function,
    Instance,
    Native,
    NativeClass,
    Tensor,
    Union,
    Unknown,
    Value,
)

_SHAPES = (".reshape", ".view")


def call(it: Interpreter, function: Value, args: Args, site: Site | None) -> Value:
    """What a call of a value of any kind gives. Raises `RaiseSignal` when the code surely raises."""
    it.tick(site)
    while type(function) is Bound:
        args = Args([function.receiver, *args.pos], args.kw, args.more)
        function = function.function
        it.tick(site)
    match function:
        case Native():
            return _native(it, function, args, site)
        case Function():
            return call_function(it, function, args, site)
        case Class() | NativeClass():
            return instantiate(it, function, args, site)
        case Instance():
            return _call_instance(it, function, args, site)
        case Union():
            return it.each(function, lambda f: call(it, f, args, site))
        case External():
            return call_external(it, function, args, site)
        case ExternalObject():
            return call_external(it, External(f"{function.dotted}()", places=function.places), args, site)
        case Unknown(kind="data", of=Unknown() as whole):
            method = it.meaning.method_of_data(it, whole, function.name.rpartition(".")[2], site)
            if method is not None:
                return call(it, method, args, site)
        case Unknown(of=Unknown() as whole) if it.events is None and function.name.endswith(_SHAPES):
            method = it.meaning.method_of_data(it, whole, function.name.rpartition(".")[2], site)
            if method is not None:  # an example input, of which no more than its shape is asked
                return call(it, method, args, site)
        case Const(value=None):
            raise RaiseSignal("TypeError", Unknown("None is called", places=here(site)))
    return unread(it, function, args, site)


def _native(it: Interpreter, function: Native, args: Args, site: Site | None) -> Value:
    try:
        result = function.function(it, args, site)
        out = args.kw.get("out") if it.events is not None else None
        if isinstance(out, Tensor) and site is not None:
            _written_out(it, out, result, site)
        return result
    except (IndexError, KeyError, TypeError, ValueError, AttributeError, AssertionError) as error:
        return Unknown(
            f"`{function.name}` could not be evaluated with these arguments ({type(error).__name__})",
            places=here(site),
        )


def _written_out(it: Interpreter, out: Tensor, result: Value, site: Site) -> None:
    """`torch.add(a, b, out=c)`."""
    it.events.written(out, site, None, result)
    if out.base is None and isinstance(result, Tensor):
        filled_in(out, result)
        overwritten(it, out, None, result.tags)


def _call_instance(it: Interpreter, obj: Instance, args: Args, site: Site | None) -> Value:
    if is_module(obj):
        return call_module(it, obj, args, site)
    try:
        method = it.get(obj, "__call__", site)
    except RaiseSignal:
        return Unknown("an object that is not callable is called", places=here(site))
    return it.call(method, args, site)
