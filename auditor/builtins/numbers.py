"""Built-in functions that make and round numbers."""

from __future__ import annotations

from collections.abc import Callable

from auditor import dims, operators
from auditor.interpreter import Interpreter, RaiseSignal
from auditor.methods.scalars import large
from auditor.places import Site, here
from auditor.values import FALSE, Args, Const, Num, Seq, Tensor, Union, Unknown, Value, number


def _int(it: Interpreter, args: Args, site: Site | None) -> Value:
    if not args.pos:
        return Const(0)
    value, base = args.pos[0], args.get(1, "base")
    if isinstance(value, Union):
        return it.each(value, lambda o: _int(it, Args([o, *args.pos[1:]], args.kw), site))
    if isinstance(value, Const) and (base is None or isinstance(base, Const)):
        try:
            return operators.derived(int(value.value) if base is None else int(value.value, base.value), value)
        except (TypeError, ValueError) as error:
            raise _no_number("int", value, error, site) from None
    baked = traced_constant(it, value, site, "int()")
    if baked is not None or isinstance(value, Num):
        return baked or value
    if isinstance(value, Tensor) and value.data is not None:
        return _int(it, Args([value.data]), site)
    if (
        isinstance(value, Tensor)
        and value.dtype.startswith(("int", "uint"))
        and it.events is not None
        and site is not None
    ):
        return it.call(it.get(value, "item", site), Args(), site)
    if isinstance(value, Unknown):
        if value.kind not in ("int", "float", "bool"):
            it.may_raise("ValueError")
        return value if value.kind == "int" else value.child(".int", "int")
    return operators.unknown_from("int() of a value that is not known", "int", value, name="int")


def _float(it: Interpreter, args: Args, site: Site | None) -> Value:
    value = args.pos[0] if args.pos else Const(0.0)
    if isinstance(value, Union):
        return it.each(value, lambda o: _float(it, Args([o]), site))
    if isinstance(value, Const):
        try:
            return operators.derived(float(value.value), value)
        except (TypeError, ValueError) as error:
            raise _no_number("float", value, error, site) from None
    baked = traced_constant(it, value, site, "float()")
    if baked is not None or isinstance(value, Num):
        return baked or value
    return (
        value.child(".float", "float")
        if isinstance(value, Unknown)
        else operators.unknown_from("float() of a value that is not known", "float", value, name="float")
    )


def _no_number(name: str, value: Const, error: Exception, site: Site | None) -> RaiseSignal:
    return RaiseSignal(type(error).__name__, Unknown(f"{name}({value.value!r})", places=here(site)))


def _bool(it: Interpreter, args: Args, site: Site | None) -> Value:
    if not args.pos:
        return FALSE
    known = operators.truth(args.pos[0])
    return (
        operators.derived(known, args.pos[0])
        if known is not None
        else operators.unknown_from("bool() of a value that is not known", "bool", args.pos[0])
    )


def _abs(it: Interpreter, args: Args, site: Site | None) -> Value:
    v = args.pos[0]
    if isinstance(v, Const):
        return operators.derived(abs(v.value), v)
    if isinstance(v, Num) and v.dim.counted:
        return number(dims.opaque("max", v.dim, dims.neg(v.dim)), (v,))
    return v if isinstance(v, (Num, Tensor)) else operators.unknown_from("abs() of a value that is not known", "", v)


def _round(it: Interpreter, args: Args, site: Site | None) -> Value:
    if not isinstance(args.pos[0], Tensor) and (baked := traced_constant(it, args.pos[0], site, "round()")) is not None:
        return baked
    value, digits = args.pos[0], args.get(1, "ndigits")
    if isinstance(value, Const) and (digits is None or (isinstance(digits, Const) and not large(digits.value))):
        return operators.derived(round(value.value, None if digits is None else digits.value), *args.all())
    if isinstance(value, Tensor) or (isinstance(value, Num) and digits is None):
        return value
    return operators.unknown_from("round()", "int" if digits is None else "float", *args.all(), name="round")


def _divmod(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Seq("tuple", [operators.binary("//", *args.pos), operators.binary("%", *args.pos)])


def _pow(it: Interpreter, args: Args, site: Site | None) -> Value:
    if len(args.pos) != 2 or args.kw:
        return operators.unknown_from("a power modulo a number", "int", *args.all(), name="pow")
    return operators.binary("**", args.pos[0], args.pos[1])


def traced_constant(it: Interpreter, value: Value, site: Site | None, what: str) -> Value | None:
    """The constant that a traced `forward` makes of a number that differs from call to call; None for any other."""
    return it.events.bakes(value, site, what) if it.events is not None else None


FUNCTIONS: dict[str, Callable[..., Value]] = {
    "int": _int,
    "float": _float,
    "bool": _bool,
    "complex": lambda it, args, site: Unknown("a complex number"),
    "abs": _abs,
    "round": _round,
    "divmod": _divmod,
    "pow": _pow,
}
