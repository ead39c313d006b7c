"""Names of PyTorch: which function, method or attribute is which operation of `auditor.torch.ops`."""

from __future__ import annotations

from auditor import operators
from auditor.interpreter import Interpreter
from auditor.objects.inheritance import OBJECT
from auditor.places import Site
from auditor.torch.ops import (
    arithmetic,
    conversions,
    convolution,
    creation,
    elementwise,
    joining,
    normalization,
    products,
    reductions,
    selection,
    sorting,
    to_python,
    views,
    writes,
)
from auditor.torch.ops.op import Op, lifted
from auditor.torch.tensors import shape_value, unknown_tensor
from auditor.values import FALSE, NONE, Args, Bound, Const, External, Instance, Native, Seq, Tensor, Unknown, Value

_SAME = """
abs absolute neg negative sign threshold dropout nan_to_num
logical_not bitwise_not isnan isinf isfinite fliplr flipud type_as renorm sgn
positive deg2rad diag_embed tanhshrink special_expit real imag conj angle
"""
_ACTIVATIONS = """
expm1 log log2 log10 log1p sigmoid logsigmoid tanh relu relu6 silu gelu mish selu celu elu
sqrt rsqrt square tan asin acos atan sinh cosh erf erfinv reciprocal
softplus leaky_relu hardswish hardsigmoid hardtanh prelu local_response_norm
"""
_VIEWS = """
detach contiguous cpu cuda requires_grad_ data alias numpy pin_memory share_memory_ view_as_real
view_as_complex resolve_conj to_dense dequantize
"""
_COMPARE = "eq ne lt le gt ge not_equal greater less greater_equal less_equal"
_BROADCAST = """
pow float_power atan2 equal_ logical_and logical_or
logical_xor bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift
hypot copysign rsub xlogy where_ __and__ __or__
"""
_SCATTER = "scatter index_fill index_copy slice_scatter select_scatter index_put"
_ACCUMULATE = "scatter_add index_add"
_REDUCE = """
mean amax amin prod std var norm any all logsumexp nanmean linalg_norm
"""

OPS: dict[str, Op] = {
    **dict.fromkeys(_SAME.split(), elementwise.same),
    **dict.fromkeys(_ACTIVATIONS.split(), elementwise.activated),
    **dict.fromkeys(_VIEWS.split(), conversions.view_of),
    **dict.fromkeys(_BROADCAST.split(), arithmetic.broadcasting),
    **dict.fromkeys(_REDUCE.split(), reductions.reduction),
    **dict.fromkeys(("sum", "nansum", "count_nonzero"), reductions.summed),
    "one_hot": conversions.one_hot,
    **dict.fromkeys(_SCATTER.split(), writes.scattered),
    **dict.fromkeys(_ACCUMULATE.split(), writes.accumulated),
    **dict.fromkeys(_COMPARE.split(), arithmetic.compared),
    **dict.fromkeys(("mul", "multiply", "div", "divide", "true_divide"), arithmetic.scaled),
    **dict.fromkeys(("clamp_max", "minimum", "fmin"), arithmetic.clamped),
    **dict.fromkeys(("clamp_min", "maximum", "fmax"), arithmetic.broadcasting),
    **dict.fromkeys(("clamp", "clip"), arithmetic.clamped_between),
    **dict.fromkeys(("round", "floor", "ceil", "trunc", "fix"), elementwise.rounded),
    **dict.fromkeys(("sin", "cos"), elementwise.turned),
    "polar": arithmetic.polar,
    "softmax": elementwise.softmax,
    **dict.fromkeys(("exp", "exp2"), elementwise.exponential),
    **dict.fromkeys(("tril", "triu"), elementwise.triangle),
    **dict.fromkeys(("log_softmax", "softmin"), elementwise.ordered(1, -1, blends=True)),
    **dict.fromkeys(("layer_norm", "rms_norm"), normalization.of_last_axes),
    "group_norm": normalization.of_axes_from(1),
    "instance_norm": normalization.of_axes_from(2),
    "batch_norm": normalization.of_batch,
    "normalize": normalization.along_axis,
    **dict.fromkeys(("cumsum", "cumprod", "cummax"), elementwise.ordered(1, blends=True)),
    **dict.fromkeys(("masked_fill", "masked_scatter"), elementwise.masked),
    **dict.fromkeys(("clone", "copy"), conversions.cloned),
    "add": arithmetic.added,
    "lerp": arithmetic.between,
    **dict.fromkeys(("addcmul", "addcdiv"), arithmetic.product_added),
    "flip": elementwise.flip,
    "frac": elementwise.fraction,
    "roll": elementwise.rolled,
    "to": conversions.converted,
    "type": conversions.converted,
    "float": conversions.cast("float32"),
    "half": conversions.cast("float16"),
    "bfloat16": conversions.cast("bfloat16"),
    "double": conversions.cast("float64"),
    "int": conversions.cast("int32"),
    "long": conversions.cast("int64"),
    "bool": conversions.cast("bool"),
    "astype": conversions.converted,
    "remainder": arithmetic.modulo,
    "floor_divide": arithmetic.floored,
    "sub": arithmetic.subtracted,
    "subtract": arithmetic.subtracted,
    "fmod": arithmetic.modulo,
    "where": arithmetic.where,
    **dict.fromkeys(("max", "min", "median", "nanmedian"), reductions.extremum),
    "aminmax": reductions.extrema,
    "fake_quantize_per_tensor_affine": arithmetic.quantized,
    "argmax": reductions.argmax,
    "argmin": reductions.argmax,
    "multinomial": reductions.argmax,
    "topk": sorting.topk,
    "sort": sorting.sort,
    "argsort": elementwise.same,
    "quantile": reductions.quantile,
    "nanquantile": reductions.quantile,
    "searchsorted": sorting.positions,
    "bucketize": sorting.buckets,
    "reshape": views.reshape,
    "view": views.reshape,
    "view_as": views.expand,
    "flatten": views.flatten,
    "ravel": views.flatten,
    "unflatten": views.unflatten,
    "permute": views.permute,
    "transpose": views.transpose,
    "swapaxes": views.transpose,
    "swapdims": views.transpose,
    "t": views.transpose,
    "movedim": views.movedim,
    "unsqueeze": views.unsqueeze,
    "expand_dims": views.unsqueeze,
    "squeeze": views.squeeze,
    "expand": views.expand,
    "expand_as": views.expand,
    "broadcast_to": views.expand,
    "repeat": joining.repeat,
    "tile": joining.repeat,
    "repeat_interleave": joining.repeat_interleave,
    "narrow": selection.narrow,
    "select": selection.select,
    "index_select": selection.index_select,
    "gather": selection.gather,
    "take_along_dim": selection.take_along,
    "cat": joining.cat,
    "concat": joining.cat,
    "concatenate": joining.cat,
    "stack": joining.stack,
    "split": selection.split,
    "tensor_split": selection.tensor_split,
    "chunk": selection.chunk,
    "unbind": selection.unbind,
    "pad": joining.pad,
    "matmul": products.matmul,
    "mm": products.matmul,
    "bmm": products.matmul,
    "baddbmm": arithmetic.added_to,
    "addmm": arithmetic.added_to,
    "linear": products.linear,
    "einsum": products.einsum,
    "scaled_dot_product_attention": products.attention,
    "embedding": products.embedding,
    "outer": products.outer,
    "conv1d": convolution.convolution(1),
    "conv2d": convolution.convolution(2),
    "conv3d": convolution.convolution(3),
    "conv_transpose1d": convolution.convolution(1, transposed=True),
    "conv_transpose2d": convolution.convolution(2, transposed=True),
    "item": to_python.item,
    "interpolate": convolution.interpolate,
    "glu": elementwise.glu,
}
_MAKERS: dict[str, Op] = {
    "zeros": creation.filled_with(0),
    "ones": creation.filled_with(1),
    **dict.fromkeys(("empty", "rand", "randn"), creation.filled),
    "zeros_like": creation.like_with(0),
    "ones_like": creation.like_with(1),
    "full_like": creation.like_with(None),
    **dict.fromkeys(("empty_like", "rand_like", "randn_like"), creation.like),
    "full": creation.full,
    "randint": creation.randint,
    "arange": creation.arange,
    "linspace": creation.linspace,
    "eye": creation.eye,
    "tensor": creation.from_data,
    "as_tensor": creation.from_data,
    "from_numpy": creation.from_data,
    "asarray": creation.from_data,
    "array": creation.from_data,
    "stack": joining.stack,
    "meshgrid": creation.meshgrid,
}
_IN_PLACE = {
    "copy_": writes.copy_shape,
    "add_": arithmetic.added,
    "sub_": arithmetic.subtracted,
    "mul_": arithmetic.multiplied,
    "div_": arithmetic.scaled,
    "clamp_": elementwise.same,
    "zero_": creation.like,
    "fill_": creation.like,
    **{f"{n}_": writes.scattered for n in _SCATTER.split()},
    **{f"{n}_": writes.accumulated for n in _ACCUMULATE.split()},
    "masked_fill_": elementwise.masked,
    "normal_": elementwise.same,
    "uniform_": elementwise.same,
    "set_": elementwise.same,
    "relu_": elementwise.same,
    "squeeze_": views.squeeze,
    "unsqueeze_": views.unsqueeze,
    "transpose_": views.transpose,
    "t_": views.transpose,
}


def _new(maker: Op) -> Op:
    return lambda it, args, site: maker(it, Args(args.pos[1:], args.kw), site)


def _unfold(it: Interpreter, args: Args, site: Site | None) -> Value:
    return unknown_tensor("unfold()", site, *args.pos[:1])


def _nothing(it: Interpreter, args: Args, site: Site | None) -> Value:
    return NONE


def _of_numpy(op: Op) -> Op:
    """A function of numpy, which takes numbers and arrays: a trace does not follow a dimension through it."""

    def run(it: Interpreter, args: Args, site: Site | None) -> Value:
        if it.events is not None:
            it.events.bakes(Seq("tuple", args.all()), site, "numpy")
        return op(it, args, site)

    return run


_METHODS: dict[str, Op] = {
    **OPS,
    **{n: writes.in_place(f) for n, f in _IN_PLACE.items()},
    "size": to_python.size,
    "dim": to_python.rank,
    "ndimension": to_python.rank,
    "numel": to_python.numel,
    "nelement": to_python.numel,
    "new_zeros": _new(creation.filled_with(0)),
    "new_ones": _new(creation.filled_with(1)),
    "new_empty": _new(creation.filled),
    "new_full": _new(creation.full),
    "new_tensor": _new(creation.from_data),
    "unfold": _unfold,
    "tolist": to_python.tolist,
    "is_floating_point": lambda it, args, site: Unknown("the type of a tensor", "is_floating_point()", "bool"),
    "is_contiguous": lambda it, args, site: Const(True),
    "backward": _nothing,
    "register_hook": _nothing,
    "retain_grad": _nothing,
}
_LIFTED = {n: Native(n, lifted(f)) for n, f in _METHODS.items()}


def tensor_attribute(it: Interpreter, t: Tensor, name: str, site: Site | None) -> Value:
    if name == "shape":
        return shape_value(t)
    if name in _LIFTED and name != "data":
        return Bound(_LIFTED[name], t)
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


def _limits(kind: str) -> Op:
    """`torch.finfo(type)`: numbers that depend on the type."""
    names = ("min", "max", "eps", "tiny", "smallest_normal", "bits")

    def run(it: Interpreter, args: Args, site: Site | None) -> Value:
        return Instance(OBJECT, {n: Unknown("a limit of a type of numbers", n, kind) for n in names})

    return run


def _is_tensor(it: Interpreter, args: Args, site: Site | None) -> Value:
    if isinstance(args.pos[0], Tensor):
        return Const(True)
    return (
        Const(False)
        if isinstance(args.pos[0], Const)
        else operators.unknown_from("whether a value is a tensor", "bool", args.pos[0])
    )


_TYPES = {
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "double": "float64",
    "float": "float32",
    "half": "float16",
    "cfloat": "complex64",
    "cdouble": "complex128",
}
"""Types that have two names."""


def _natives() -> dict[str, Value]:
    out: dict[str, Value] = {}
    for name in OPS:
        native = _LIFTED[name]
        for prefix in ("torch.", "torch.nn.functional.", "torch.Tensor.", "torch.special.", "torch.linalg."):
            out[prefix + name] = native
        out[f"numpy.{name}"] = Native(name, lifted(_of_numpy(OPS[name])))
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
    out["torch.finfo"] = Native("torch.finfo", _limits("float"))
    out["torch.iinfo"] = Native("torch.iinfo", _limits("int"))
    out["torch.numel"] = Native("torch.numel", to_python.numel)
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
    out["torch.nn.attention.bias.causal_lower_right"] = Native("causal_lower_right", creation.causal_bias(last=True))
    out["torch.nn.attention.bias.causal_upper_left"] = Native("causal_upper_left", creation.causal_bias(last=False))
    out |= {f"torch.{name}": External(f"torch.{same}") for name, same in _TYPES.items()}
    out["torch.is_tensor"] = Native("is_tensor", _is_tensor)
    out["torch.sym_int"] = Native("sym_int", _first_argument)
    out["torch.jit.ignore"] = Native("ignore", _first_argument)
    out["torch.jit.unused"] = Native("unused", _first_argument)
    out["torch.compiler.disable"] = Native("disable", _first_argument)
    out["torch.fx.wrap"] = Native("wrap", _first_argument)
    return out


NATIVES = _natives()
