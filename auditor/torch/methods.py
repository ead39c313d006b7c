"""Names of PyTorch and numpy: which function or method is which operation of `auditor.torch.ops`."""

from __future__ import annotations

from auditor.handlers import nothing
from auditor.interpreter import Interpreter
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
from auditor.torch.tensors import unknown_tensor
from auditor.values import Args, Const, Native, Seq, Unknown, Value

_SAME = """
sign threshold dropout nan_to_num
isnan isinf isfinite sgn
positive deg2rad diag_embed tanhshrink special_expit real imag conj angle
"""
_ACTIVATIONS = """
expm1 log2 log10 log1p sigmoid logsigmoid tanh relu relu6 silu gelu mish selu celu elu
sqrt rsqrt square tan asin acos atan sinh cosh erf erfinv reciprocal
softplus leaky_relu hardswish hardsigmoid hardtanh prelu local_response_norm
"""
_VIEWS = """
detach contiguous cpu cuda requires_grad_ data alias numpy pin_memory share_memory_ view_as_real
view_as_complex resolve_conj to_dense dequantize
"""
_COMPARE = {
    "==": "eq",
    "!=": "ne not_equal",
    "<": "lt less",
    "<=": "le less_equal",
    ">": "gt greater",
    ">=": "ge greater_equal",
}
_NEGATED = {"-": "neg negative", "~": "logical_not bitwise_not"}
_BOTH = {"&": "logical_and bitwise_and __and__", "|": "logical_or bitwise_or __or__"}
_BROADCAST = """
pow float_power atan2 equal_
logical_xor bitwise_xor bitwise_left_shift bitwise_right_shift
hypot copysign rsub xlogy where_
"""
_SCATTER = "scatter index_fill index_copy slice_scatter select_scatter index_put"
_ACCUMULATE = "scatter_add index_add scatter_reduce index_reduce"
_REDUCE = """
mean prod any all logsumexp nanmean
"""

OPS: dict[str, Op] = {
    **dict.fromkeys(_SAME.split(), elementwise.same),
    **dict.fromkeys(("abs", "absolute"), elementwise.bent),
    **dict.fromkeys(_ACTIVATIONS.split(), elementwise.activated),
    **dict.fromkeys(_VIEWS.split(), conversions.view_of),
    **dict.fromkeys(_BROADCAST.split(), arithmetic.broadcasting),
    **dict.fromkeys(_REDUCE.split(), reductions.reduction),
    **dict.fromkeys(("std", "var"), reductions.deviation),
    **dict.fromkeys(("norm", "linalg_norm", "vector_norm", "linalg_vector_norm"), reductions.norm),
    **dict.fromkeys(("sum", "nansum", "count_nonzero"), reductions.summed),
    "one_hot": conversions.one_hot,
    **dict.fromkeys(_SCATTER.split(), writes.scattered),
    "slice_scatter": writes.slice_scattered,
    "select_scatter": writes.select_scattered,
    **dict.fromkeys(_ACCUMULATE.split(), writes.accumulated),
    **{name: arithmetic.compared(op) for op, names in _COMPARE.items() for name in names.split()},
    **{name: arithmetic.both(op) for op, names in _BOTH.items() for name in names.split()},
    **{name: elementwise.negated(op) for op, names in _NEGATED.items() for name in names.split()},
    "log": elementwise.logarithm,
    **dict.fromkeys(("mul", "multiply"), arithmetic.multiplied),
    **dict.fromkeys(("div", "divide", "true_divide"), arithmetic.scaled),
    **dict.fromkeys(("clamp_max", "minimum", "fmin"), arithmetic.clamped),
    **dict.fromkeys(("clamp_min", "maximum", "fmax"), arithmetic.bounded_below),
    **dict.fromkeys(("clamp", "clip"), arithmetic.clamped_between),
    **dict.fromkeys(("round", "floor", "ceil", "trunc", "fix"), elementwise.rounded),
    **dict.fromkeys(("sin", "cos"), elementwise.turned),
    "polar": arithmetic.polar,
    "softmax": elementwise.softmax,
    **dict.fromkeys(("exp", "exp2"), elementwise.exponential),
    "tril": elementwise.triangle(lower=True),
    "triu": elementwise.triangle(lower=False),
    **dict.fromkeys(("log_softmax", "softmin"), elementwise.ordered(1, -1, blends=True)),
    **dict.fromkeys(("layer_norm", "rms_norm"), normalization.of_last_axes),
    "group_norm": normalization.of_axes_from(1),
    "instance_norm": normalization.of_axes_from(2),
    "batch_norm": normalization.of_batch,
    "normalize": normalization.along_axis,
    "cumsum": elementwise.running_sum,
    **dict.fromkeys(("cumprod", "cummax"), elementwise.ordered(1, blends=True)),
    **dict.fromkeys(("masked_fill", "masked_scatter"), elementwise.masked),
    **dict.fromkeys(("clone", "copy"), conversions.cloned),
    "add": arithmetic.added,
    "lerp": arithmetic.between,
    **dict.fromkeys(("addcmul", "addcdiv"), arithmetic.product_added),
    "flip": elementwise.flip,
    "flipud": elementwise.flip_of(0),
    "fliplr": elementwise.flip_of(1),
    "frac": elementwise.fraction,
    "roll": elementwise.rolled,
    "to": conversions.converted,
    "type": conversions.converted,
    "type_as": conversions.converted,
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
    **dict.fromkeys(("median", "nanmedian"), reductions.extremum),
    "max": reductions.bound(reductions.extremum, True),
    "min": reductions.bound(reductions.extremum, False),
    "amax": reductions.bound(reductions.reduction, True),
    "amin": reductions.bound(reductions.reduction, False),
    "aminmax": reductions.extrema,
    "fake_quantize_per_tensor_affine": arithmetic.quantized,
    "argmax": reductions.argmax,
    "argmin": reductions.argmax,
    "multinomial": reductions.argmax,
    "topk": sorting.topk,
    "sort": sorting.sort,
    "argsort": sorting.argsort,
    "quantile": reductions.quantile,
    "nanquantile": reductions.quantile,
    "searchsorted": sorting.positions,
    "bucketize": sorting.buckets,
    "reshape": views.reshape,
    "view": views.reshape,
    **dict.fromkeys(("view_as", "reshape_as"), views.view_as),
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
    "backward": nothing,
    "register_hook": nothing,
    "retain_grad": nothing,
}
METHODS = {n: Native(n, lifted(f)) for n, f in _METHODS.items()}
"""The methods of a tensor, and of an array of numpy."""


def _natives() -> dict[str, Value]:
    out: dict[str, Value] = {}
    for name in OPS:
        native = METHODS[name]
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
            out[prefix + name] = METHODS[name]
        out[f"torch.ops.aten.{name}.default"] = METHODS[name]
    return out


NATIVES = _natives()
