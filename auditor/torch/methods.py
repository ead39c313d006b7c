"""Names of PyTorch: which function, method or attribute is which operation of `auditor.torch.ops`."""

from __future__ import annotations

from auditor import dims, operators
from auditor.interpreter import Interpreter
from auditor.places import Site
from auditor.torch import ops
from auditor.torch.tensors import dim_value, shape_value, unknown_tensor
from auditor.values import NONE, Args, Bound, Const, External, Native, Seq, Tensor, Unknown, Value, number

_SAME = """
abs absolute neg negative exp expm1 exp2 log log2 log10 log1p sigmoid logsigmoid tanh relu relu6 silu gelu mish selu
celu elu sqrt rsqrt square sin cos tan asin acos atan sinh cosh erf erfinv reciprocal sign
softplus leaky_relu hardswish hardsigmoid hardtanh prelu threshold dropout layer_norm rms_norm
group_norm batch_norm instance_norm normalize local_response_norm tril triu nan_to_num
logical_not bitwise_not isnan isinf isfinite fliplr flipud fake_quantize_per_tensor_affine type_as renorm sgn
positive deg2rad diag_embed softmin tanhshrink special_expit polar real imag conj angle
"""
_VIEWS = """
detach contiguous cpu cuda requires_grad_ data alias numpy pin_memory share_memory_ view_as_real
view_as_complex resolve_conj to_dense dequantize
"""
_COMPARE = "eq ne lt le gt ge not_equal greater less greater_equal less_equal"
_BROADCAST = """
pow float_power atan2 lerp addcmul addcdiv equal_ logical_and logical_or
logical_xor bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift
hypot copysign rsub xlogy where_ __and__ __or__
"""
_SCATTER = "scatter scatter_add index_fill index_copy slice_scatter select_scatter index_put index_add"
_REDUCE = """
sum mean amax amin prod std var norm any all logsumexp nansum nanmean median count_nonzero linalg_norm
"""

OPS: dict[str, ops.Op] = {
    **dict.fromkeys(_SAME.split(), ops.same),
    **dict.fromkeys(_VIEWS.split(), ops.view_of),
    **dict.fromkeys(_BROADCAST.split(), ops.broadcasting),
    **dict.fromkeys(_REDUCE.split(), ops.reduction),
    **dict.fromkeys(_SCATTER.split(), ops.scattered),
    **dict.fromkeys(_COMPARE.split(), ops.compared),
    **dict.fromkeys(("mul", "multiply", "div", "divide", "true_divide"), ops.scaled),
    **dict.fromkeys(("clamp_max", "minimum", "fmin"), ops.clamped),
    **dict.fromkeys(("clamp_min", "maximum", "fmax"), ops.broadcasting),
    **dict.fromkeys(("clamp", "clip"), ops.clamped_between),
    **dict.fromkeys(("round", "floor", "ceil", "trunc", "fix"), ops.rounded),
    **dict.fromkeys(("softmax", "log_softmax", "cumsum", "cumprod", "cummax"), ops.ordered(1)),
    **dict.fromkeys(("masked_fill", "masked_scatter"), ops.masked),
    **dict.fromkeys(("clone", "copy"), ops.cloned),
    "add": ops.added,
    "flip": ops.flip,
    "frac": ops.fraction,
    "roll": ops.rolled,
    "to": ops.converted,
    "type": ops.converted,
    "float": ops.cast("float32"),
    "half": ops.cast("float16"),
    "bfloat16": ops.cast("bfloat16"),
    "double": ops.cast("float64"),
    "int": ops.cast("int32"),
    "long": ops.cast("int64"),
    "bool": ops.cast("bool"),
    "astype": ops.converted,
    "remainder": ops.modulo,
    "floor_divide": ops.floored,
    "sub": ops.subtracted,
    "subtract": ops.subtracted,
    "fmod": ops.modulo,
    "where": ops.where,
    "max": ops.extremum,
    "min": ops.extremum,
    "argmax": ops.argmax,
    "argmin": ops.argmax,
    "multinomial": ops.argmax,
    "topk": ops.topk,
    "sort": ops.sort,
    "argsort": ops.same,
    "quantile": ops.quantile,
    "nanquantile": ops.quantile,
    "searchsorted": ops.positions,
    "bucketize": ops.buckets,
    "reshape": ops.reshape,
    "view": ops.reshape,
    "view_as": ops.expand,
    "flatten": ops.flatten,
    "ravel": ops.flatten,
    "unflatten": ops.unflatten,
    "permute": ops.permute,
    "transpose": ops.transpose,
    "swapaxes": ops.transpose,
    "swapdims": ops.transpose,
    "t": ops.transpose,
    "movedim": ops.movedim,
    "unsqueeze": ops.unsqueeze,
    "expand_dims": ops.unsqueeze,
    "squeeze": ops.squeeze,
    "expand": ops.expand,
    "expand_as": ops.expand,
    "broadcast_to": ops.expand,
    "repeat": ops.repeat,
    "tile": ops.repeat,
    "repeat_interleave": ops.repeat_interleave,
    "narrow": ops.narrow,
    "select": ops.select,
    "index_select": ops.index_select,
    "gather": ops.gather,
    "take_along_dim": ops.gather,
    "cat": ops.cat,
    "concat": ops.cat,
    "concatenate": ops.cat,
    "stack": ops.stack,
    "split": ops.split,
    "tensor_split": ops.split,
    "chunk": ops.chunk,
    "unbind": ops.unbind,
    "pad": ops.pad,
    "matmul": ops.matmul,
    "mm": ops.matmul,
    "bmm": ops.matmul,
    "linear": ops.linear,
    "einsum": ops.einsum,
    "scaled_dot_product_attention": ops.attention,
    "embedding": ops.embedding,
    "outer": ops.outer,
    "conv1d": ops.convolution(1),
    "conv2d": ops.convolution(2),
    "conv3d": ops.convolution(3),
    "conv_transpose1d": ops.convolution(1, transposed=True),
    "conv_transpose2d": ops.convolution(2, transposed=True),
    "item": ops.item,
    "interpolate": ops.interpolate,
    "glu": ops.glu,
}
_MAKERS: dict[str, ops.Op] = {
    **dict.fromkeys(("zeros", "ones", "empty", "rand", "randn"), ops.filled),
    **dict.fromkeys(("zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like"), ops.like),
    "full": ops.full,
    "randint": ops.randint,
    "arange": ops.arange,
    "linspace": ops.linspace,
    "eye": ops.eye,
    "tensor": ops.from_data,
    "as_tensor": ops.from_data,
    "from_numpy": ops.from_data,
    "asarray": ops.from_data,
    "array": ops.from_data,
    "stack": ops.stack,
    "meshgrid": ops.meshgrid,
}
_IN_PLACE = {
    "copy_": ops.copy_shape,
    "add_": ops.added,
    "sub_": ops.subtracted,
    "mul_": ops.scaled,
    "div_": ops.scaled,
    "clamp_": ops.same,
    "zero_": ops.same,
    "fill_": ops.same,
    **{f"{n}_": ops.scattered for n in _SCATTER.split()},
    "masked_fill_": ops.masked,
    "normal_": ops.same,
    "uniform_": ops.same,
    "set_": ops.same,
    "relu_": ops.same,
    "squeeze_": ops.squeeze,
    "unsqueeze_": ops.unsqueeze,
    "transpose_": ops.transpose,
    "t_": ops.transpose,
}


def _size(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = ops.first(args)
    axis = args.get(1, "dim")
    if axis is None:
        return shape_value(t)
    if t.shape is None or not isinstance(axis, Const):
        reason = t.reason or Unknown("the shape of a tensor that is not known", places=t.places)
        return Unknown(reason.reason, "size", "int", places=reason.places)
    return dim_value(t.shape[axis.value], t)


def _rank(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = ops.first(args)
    return (
        Const(len(t.shape)) if t.shape is not None else Unknown("the rank of a tensor that is not known", "dim", "int")
    )


def _numel(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = ops.first(args)
    if t.shape is None:
        return Unknown("the size of a tensor that is not known", "numel", "int")
    return number(dims.product(t.shape), (t,))


def _new(maker: ops.Op) -> ops.Op:
    return lambda it, args, site: maker(it, Args(args.pos[1:], args.kw), site)


def _unfold(it: Interpreter, args: Args, site: Site | None) -> Value:
    return unknown_tensor("unfold()", site, *args.pos[:1])


def _nothing(it: Interpreter, args: Args, site: Site | None) -> Value:
    return NONE


def _tolist(it: Interpreter, args: Args, site: Site | None) -> Value:
    if it.events is not None:
        it.events.bakes(ops.first(args), site, "tolist()")
    return Unknown("the values of a tensor", "tolist()", "list", places=(site,) if site else ())


def _of_numpy(op: ops.Op) -> ops.Op:
    """A function of numpy, which takes numbers and arrays: a trace does not follow a dimension through it."""

    def run(it: Interpreter, args: Args, site: Site | None) -> Value:
        if it.events is not None:
            it.events.bakes(Seq("tuple", args.all()), site, "numpy")
        return op(it, args, site)

    return run


_METHODS: dict[str, ops.Op] = {
    **OPS,
    **{n: ops.in_place(f) for n, f in _IN_PLACE.items()},
    "size": _size,
    "dim": _rank,
    "ndimension": _rank,
    "numel": _numel,
    "nelement": _numel,
    "new_zeros": _new(ops.filled),
    "new_ones": _new(ops.filled),
    "new_empty": _new(ops.filled),
    "new_full": _new(ops.full),
    "new_tensor": _new(ops.from_data),
    "unfold": _unfold,
    "tolist": _tolist,
    "is_floating_point": lambda it, args, site: Unknown("the type of a tensor", "is_floating_point()", "bool"),
    "is_contiguous": lambda it, args, site: Const(True),
    "backward": _nothing,
    "register_hook": _nothing,
    "retain_grad": _nothing,
}
_LIFTED = {n: Native(n, ops.lifted(f)) for n, f in _METHODS.items()}


def tensor_attribute(it: Interpreter, t: Tensor, name: str, site: Site | None) -> Value:
    if name == "shape":
        return shape_value(t)
    if name in _LIFTED and name != "data":
        return Bound(_LIFTED[name], t)
    match name:
        case "data" | "real" | "grad":
            return t
        case "T" | "mT" | "H":
            return ops.transpose(it, Args([t]), site)
        case "dtype":
            if t.dtype:
                return it.loader.external(f"torch.{t.dtype}")
            return Unknown("the type of a tensor", "dtype", "dtype")
        case "ndim":
            return _rank(it, Args([t]), site)
        case "device":
            return External("torch.device()")
        case "is_meta" | "requires_grad" | "is_cuda":
            return Unknown("a property of a tensor", name, "bool")
        case "nbytes" | "itemsize":
            return Unknown("the size of a tensor", name, "int")
    if name.endswith("_") and name[:-1] in OPS:
        return Bound(Native(name, ops.in_place(OPS[name[:-1]])), t)

    def unread(it: Interpreter, args: Args, site: Site | None) -> Value:
        return unknown_tensor(f"`Tensor.{name}` is not known", site, t)

    return Bound(Native(name, unread), t)


_OF_TENSORS = frozenset(_LIFTED) - {n for kind in (dict, list, str, float, set) for n in dir(kind)} - {"item", "tolist"}
"""Methods that nothing but a tensor or an array has, as far as plain data goes."""


def method_of_data(it: Interpreter, data: Unknown, name: str, site: Site | None) -> Value | None:
    """A tensor's method, called on what was read from a file: that it is called says that it is a tensor."""
    if name not in _OF_TENSORS:
        return None
    return tensor_attribute(it, Tensor(None, reason=data, places=data.places, flags=data.flags), name, site)


def _no_grad(it: Interpreter, args: Args, site: Site | None) -> Value:
    return args.pos[0] if args.pos else Native("decorator", lambda it, inner, site: inner.pos[0] if inner.pos else NONE)


def _first_argument(it: Interpreter, args: Args, site: Site | None) -> Value:
    return args.pos[0] if args.pos else NONE


def _is_tensor(it: Interpreter, args: Args, site: Site | None) -> Value:
    if isinstance(args.pos[0], Tensor):
        return Const(True)
    return (
        Const(False)
        if isinstance(args.pos[0], Const)
        else operators.unknown_from("whether a value is a tensor", "bool", args.pos[0])
    )


def _natives() -> dict[str, Value]:
    out: dict[str, Value] = {}
    for name in OPS:
        native = _LIFTED[name]
        for prefix in ("torch.", "torch.nn.functional.", "torch.Tensor.", "torch.special.", "torch.linalg."):
            out[prefix + name] = native
        out[f"numpy.{name}"] = Native(name, ops.lifted(_of_numpy(OPS[name])))
        for space in ("aten", "coreaten"):
            out[f"torch.ops.{space}.{name}.default"] = native
            out[f"torch.ops.{space}.{name}"] = native
    for name, op in _MAKERS.items():
        out[f"torch.{name}"] = Native(name, op)
        out[f"numpy.{name}"] = Native(name, _of_numpy(op))
    for name in _IN_PLACE:
        for prefix in ("torch.Tensor.", "torch.ops.aten."):
            out[prefix + name] = _LIFTED[name]
        out[f"torch.ops.aten.{name}.default"] = _LIFTED[name]
    out["torch.numel"] = Native("torch.numel", _numel)
    for name in (
        "torch.no_grad",
        "torch.inference_mode",
        "torch.enable_grad",
        "torch.set_grad_enabled",
        "torch.autocast",
        "torch.amp.autocast",
    ):
        out[name] = Native(name, _no_grad)
    for name in (
        "torch._check",
        "torch._check_is_size",
        "torch._check_value",
        "torch.manual_seed",
        "torch.set_num_threads",
        "torch._check_tensor_all",
        "torch.set_default_dtype",
        "torch.cuda.empty_cache",
    ):
        out[name] = Native(name, _nothing)
    out["torch.is_tensor"] = Native("is_tensor", _is_tensor)
    out["torch.sym_int"] = Native("sym_int", _first_argument)
    out["torch.jit.ignore"] = Native("ignore", _first_argument)
    out["torch.jit.unused"] = Native("unused", _first_argument)
    out["torch.compiler.disable"] = Native("disable", _first_argument)
    out["torch.fx.wrap"] = Native("wrap", _first_argument)
    return out


NATIVES = _natives()
