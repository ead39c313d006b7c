"""Copies and casts: the same numbers, as another tensor or of another type."""

from __future__ import annotations

from auditor.interpreter import Interpreter
from auditor.places import Site
from auditor.torch import placing, state_copies
from auditor.torch.ops.op import Op, first
from auditor.torch.tensors import dtype_of, result, size, unknown_tensor
from auditor.values import NONE, Args, External, Pick, Tensor, Value, altered, serial
from auditor.values.tags import CAST, CHOSEN, COPY


def one_hot(it: Interpreter, args: Args, site: Site | None) -> Value:
    t, count = first(args), size(args.get(1, "num_classes") or NONE)
    if t.shape is None or count is None or count == -1:
        return unknown_tensor("one_hot() with a number of classes that is not known", site, t)
    return placing.one_hot(t, result((*t.shape, count), t, dtype="int64"))


def view_of(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = first(args)
    return altered(t, dtype=dtype_of(args) or t.dtype, of=t if t.base is None else None)


def cloned(it: Interpreter, args: Args, site: Site | None) -> Value:
    return _copy(first(args))


def converted(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = first(args)
    given = [*args.pos[1:], *args.kw.values()]
    like = next((a for a in given if isinstance(a, Tensor)), None)
    if like is not None:
        return _as_type(t, like.dtype)
    named = [a.dotted.rpartition(".")[2] for a in given if isinstance(a, External) and "." in a.dotted]
    return _as_type(t, next((_ALSO.get(n, n) for n in named if n.startswith(_TYPES)), ""))


_ALSO = {"half": "float16", "float": "float32", "double": "float64", "long": "int64", "int": "int32", "short": "int16"}
_TYPES = ("float", "bfloat", "half", "double", "int", "uint", "long", "short", "bool", "complex")


def _copy(t: Tensor) -> Tensor:
    """The same numbers in memory of their own: what is written there leaves the input or buffer as it was."""
    tags = t.tags | {t.base.tag, COPY} if t.base is not None and t.base.role in ("input", "buffer") else t.tags
    copy = state_copies.of(t)
    if copy is None and t.pick is None:
        t.pick = Pick("same", serial())
    return altered(t, base=None, of=None, tags=tags, born=serial(), pick=copy or t.pick)


def _as_type(t: Tensor, dtype: str) -> Tensor:
    """Numbers of another type are a copy; a state stays known as one. Whole numbers made of others choose."""
    if dtype not in ("", t.dtype) and t.dtype and t.base is not None and t.base.role in ("input", "buffer"):
        return altered(t, dtype=dtype, tags=t.tags | {CAST})
    copied = dtype not in ("", t.dtype) and (t.base is None or t.base.role == "parameter")
    if not copied:
        return altered(t, dtype=dtype or t.dtype, of=t if t.base is None else None)
    chooses = dtype.startswith(("int", "uint")) and t.dtype.startswith(("float", "bfloat", "half"))
    tags = t.tags | {CHOSEN} if chooses else t.tags
    return altered(t, dtype=dtype, base=None, of=None, born=serial(), tags=tags)


def cast(dtype: str) -> Op:
    return lambda it, args, site: _as_type(first(args), dtype)
