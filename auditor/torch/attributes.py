"""Attributes of a tensor."""

from __future__ import annotations

from auditor.interpreter import Interpreter
from auditor.places import Site
from auditor.torch.methods import METHODS, OPS
from auditor.torch.ops import to_python, views, writes
from auditor.torch.tensors import shape_value, unknown_tensor
from auditor.values import FALSE, Args, Bound, External, Native, Tensor, Unknown, Value


def tensor_attribute(it: Interpreter, t: Tensor, name: str, site: Site | None) -> Value:
    """`t.name`; a method of which nothing is known gives a tensor of which nothing is."""
    if name == "shape":
        return shape_value(t)
    if name in METHODS and name != "data":
        return Bound(METHODS[name], t)
    match name:
        case "data" | "real" | "grad":
            return t
        case "T" | "mT" | "H":
            return views.transpose(it, Args([t]), site)
        case "dtype":
            if t.dtype:
                return it.loader.external(f"torch.{t.dtype}")
            return Unknown("the type of a tensor", "dtype", "dtype")
        case "ndim":
            return to_python.rank(it, Args([t]), site)
        case "device":
            return External("torch.device()")
        case "is_cuda" if it.events is not None:
            return FALSE  # what is exported for Apple's devices is traced where there is no CUDA
        case "is_meta" | "requires_grad" | "is_cuda":
            return Unknown("a property of a tensor", name, "bool")
        case "nbytes" | "itemsize":
            return Unknown("the size of a tensor", name, "int")
    if name.endswith("_") and name[:-1] in OPS:
        return Bound(Native(name, writes.in_place(OPS[name[:-1]])), t)

    def unread(it: Interpreter, args: Args, site: Site | None) -> Value:
        return unknown_tensor(f"`Tensor.{name}` is not known", site, t)

    return Bound(Native(name, unread), t)


_OF_TENSORS = frozenset(METHODS) - {n for kind in (dict, list, str, float, set) for n in dir(kind)} - {"item", "tolist"}
"""Methods that nothing but a tensor or an array has, as far as plain data goes."""


def method_of_data(it: Interpreter, data: Unknown, name: str, site: Site | None) -> Value | None:
    """A tensor's method, called on what was read from a file: that it is called says that it is a tensor."""
    if name not in _OF_TENSORS:
        return None
    return tensor_attribute(it, Tensor(None, reason=data, places=data.places, flags=data.flags), name, site)
