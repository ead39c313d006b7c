"""Functions of PyTorch that are no operations: contexts, checks, decorators, and what is asked of types and values."""

from __future__ import annotations

from auditor import operators
from auditor.handlers import first_argument, nothing
from auditor.interpreter import Interpreter
from auditor.objects.inheritance import OBJECT
from auditor.places import Site
from auditor.torch.ops import creation, to_python
from auditor.torch.ops.op import Op
from auditor.values import NONE, Args, Const, External, Instance, Native, Tensor, Unknown, Value


def _context(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`with torch.no_grad():`, and the decorator, with and without a call."""
    return args.pos[0] if args.pos else Native("decorator", lambda it, inner, site: inner.pos[0] if inner.pos else NONE)


def _limits(kind: str) -> Op:
    """`torch.finfo(type)`: numbers that depend on the type."""
    names = ("min", "max", "eps", "tiny", "smallest_normal", "bits")

    def run(it: Interpreter, args: Args, site: Site | None) -> Value:
        return Instance(OBJECT, {n: Unknown("a limit of a type of numbers", n, kind) for n in names})

    return run


def _is_tensor(it: Interpreter, args: Args, site: Site | None) -> Value:
    value = args.pos[0]
    if isinstance(value, (Tensor, Const)):
        return Const(isinstance(value, Tensor))
    return operators.unknown_from("whether a value is a tensor", "bool", value)


_TYPES = {
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "double": "float64",
    "float": "float32",
    "half": "float16",
    "cfloat": "complex64",
    "cdouble": "complex128",
    "bool": "bool",
    "bfloat16": "bfloat16",
}
"""Types that have two names, or the name of a method."""

_CONTEXTS = (
    "torch.no_grad",
    "torch.inference_mode",
    "torch.enable_grad",
    "torch.set_grad_enabled",
    "torch.autocast",
    "torch.amp.autocast",
)
_CHECKS_AND_SETTINGS = (
    "torch._check",
    "torch._check_is_size",
    "torch._check_value",
    "torch.manual_seed",
    "torch.set_num_threads",
    "torch._check_tensor_all",
    "torch.set_default_dtype",
    "torch.cuda.empty_cache",
)

NATIVES: dict[str, Value] = {
    "torch.finfo": Native("torch.finfo", _limits("float")),
    "torch.iinfo": Native("torch.iinfo", _limits("int")),
    "torch.numel": Native("torch.numel", to_python.numel),
    **{name: Native(name, _context) for name in _CONTEXTS},
    **{name: Native(name, nothing) for name in _CHECKS_AND_SETTINGS},
    "torch.nn.attention.bias.causal_lower_right": Native("causal_lower_right", creation.causal_bias(last=True)),
    "torch.nn.attention.bias.causal_upper_left": Native("causal_upper_left", creation.causal_bias(last=False)),
    **{f"torch.{name}": External(f"torch.{same}") for name, same in _TYPES.items()},
    "torch.is_tensor": Native("is_tensor", _is_tensor),
    "torch.sym_int": Native("sym_int", first_argument),
    "torch.jit.ignore": Native("ignore", first_argument),
    "torch.jit.unused": Native("unused", first_argument),
    "torch.compiler.disable": Native("disable", first_argument),
    "torch.fx.wrap": Native("wrap", first_argument),
}
