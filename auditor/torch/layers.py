"""The layers of `torch.nn`: constructor parameters by name, and what `forward` does to a shape."""

from __future__ import annotations

from collections.abc import Callable

from auditor import dims, operators
from auditor.dims import Dim
from auditor.handlers import nothing
from auditor.interpreter import Interpreter
from auditor.places import Site
from auditor.torch import positions, recurrences, row_mixing, rows
from auditor.torch.modules import MODULE
from auditor.torch.ops import convolution, elementwise, normalization, views
from auditor.torch.ops.op import Op
from auditor.torch.shapes import Shape
from auditor.torch.tensors import as_tensor, result, size, unknown_tensor
from auditor.values import (
    NONE,
    Args,
    Const,
    Instance,
    NativeClass,
    Seq,
    Storage,
    Tensor,
    Union,
    Unknown,
    Value,
    number,
    text_of,
)
from auditor.values.tags import LEARNED, OWN, STANDING, TOKENS

Forward = Callable[[Interpreter, Instance, Args, "Site | None"], Value]
Shaper = Callable[[Instance], dict[str, tuple[Dim, ...] | None]]
Methods = dict[str, Callable[[Interpreter, Args, "Site | None"], Value]]


def layer(
    name: str, parameters: str, forward: Forward, weights: Shaper | None = None, more: Methods | None = None
) -> NativeClass:
    """A layer class: `parameters` are the names of its constructor, in order, kept as attributes."""
    names = parameters.split()

    def init(it: Interpreter, args: Args, site: Site | None) -> Value:
        obj = args.pos[0]
        assert isinstance(obj, Instance)
        it.heap.touch(obj)
        for n, v in zip(names, args.pos[1:], strict=False):
            obj.attrs[n] = v
        for n, v in args.kw.items():
            if n in names:
                obj.attrs[n] = v
        for n, shape in (weights(obj) if weights else {}).items():
            obj.attrs[n] = Tensor(shape, base=Storage(n, "parameter"))
        return NONE

    def call(it: Interpreter, args: Args, site: Site | None) -> Value:
        obj = args.pos[0]
        assert isinstance(obj, Instance)
        return forward(it, obj, Args(args.pos[1:], args.kw, args.more), site)

    methods = {"__init__": init, "forward": _ops_lifted(call), **(more or {})}
    return NativeClass(f"torch.nn.{name}", methods, (MODULE,))


def _ops_lifted(op: Op) -> Op:
    """`op` on each option when the input (after the layer itself) is one of several values."""

    def run(it: Interpreter, args: Args, site: Site | None) -> Value:
        if len(args.pos) > 1 and isinstance(args.pos[1], Union):
            head, tail = args.pos[0], args.pos[2:]
            return it.each(args.pos[1], lambda o: op(it, Args([head, o, *tail], args.kw, args.more), site))
        return op(it, args, site)

    return run


def attribute(obj: Instance, name: str) -> Dim | None:
    value = obj.attrs.get(name)
    return size(value) if value is not None else None


def _normalized(it: Interpreter, obj: Instance, args: Args, site: Site | None) -> Value:
    return normalization.of_last(it, args, normalization.axes_of(obj.attrs.get("normalized_shape")), site)


def _batch(it: Interpreter, obj: Instance, args: Args, site: Site | None) -> Value:
    kept = obj.attrs.get("track_running_stats")
    training = Const(kept is not None and operators.truth(kept) is False)
    return normalization.of_batch(it, Args(args.pos[:1], {**args.kw, "training": training}), site)


def _by(op: Op) -> Forward:
    """A layer that is a function of its input alone."""
    return lambda it, obj, args, site: op(it, args, site)


def _along(op: Op) -> Forward:
    """A layer that is a function of its input and its `dim`."""
    return lambda it, obj, args, site: op(it, Args([*args.pos[:1], obj.attrs.get("dim", NONE)], args.kw), site)


def _linear(it: Interpreter, obj: Instance, args: Args, site: Site | None) -> Value:
    x, out = as_tensor(args.get(0, "input") or NONE), attribute(obj, "out_features")
    weight = obj.attrs.get("weight")
    if isinstance(weight, Tensor) and weight.shape is not None and len(weight.shape) == 2:
        out = weight.shape[0]
    if x is None or not x.shape or out is None:
        return unknown_tensor("a linear layer on a tensor that is not known", site, *((x,) if x is not None else ()))
    made = result((*x.shape[:-1], out), x)
    made.tags = made.tags - OWN | {LEARNED}
    return recurrences.computed(it, made)


def _linear_weights(obj: Instance) -> dict[str, tuple[Dim, ...] | None]:
    i, o = attribute(obj, "in_features"), attribute(obj, "out_features")
    known = i is not None and o is not None
    return {"weight": (o, i) if known else None, "bias": (o,) if o is not None else None}  # type: ignore[dict-item]


def _embedding(it: Interpreter, obj: Instance, args: Args, site: Site | None) -> Value:
    ids, width = as_tensor(args.get(0, "input") or NONE), attribute(obj, "embedding_dim")
    if ids is None or ids.shape is None or width is None:
        made = unknown_tensor("an embedding of a tensor that is not known", site, *((ids,) if ids is not None else ()))
        made.dtype = "float32"
        return made
    made = result((*ids.shape, width), ids, dtype="float32")
    made.tags = made.tags - OWN - {TOKENS} | ids.tags & STANDING | {LEARNED}
    return positions.looked_up(made)


def _embedding_weights(obj: Instance) -> dict[str, tuple[Dim, ...] | None]:
    n, d = attribute(obj, "num_embeddings"), attribute(obj, "embedding_dim")
    return {"weight": (n, d) if n is not None and d is not None else None}


def _norm_weights(obj: Instance) -> dict[str, tuple[Dim, ...] | None]:
    given = next((obj.attrs[n] for n in ("normalized_shape", "num_features", "num_channels") if n in obj.attrs), None)
    items = given.items if isinstance(given, Seq) else [given] if given is not None else []
    found = [size(i) for i in items]
    shape = tuple(f for f in found if f is not None)
    return {"weight": shape or None, "bias": shape or None}


def _convolution(spatial: int, transposed: bool = False) -> Forward:
    def forward(it: Interpreter, obj: Instance, args: Args, site: Site | None) -> Value:
        x, channels = as_tensor(args.get(0, "input") or NONE), attribute(obj, "out_channels")
        if x is None or x.shape is None or channels is None or len(x.shape) < spatial + 1:
            return unknown_tensor("a convolution of a tensor that is not known", site, *((x,) if x is not None else ()))
        kernel, stride = _each(obj, "kernel_size", spatial, 1), _each(obj, "stride", spatial, 1)
        padding, dilation = _each(obj, "padding", spatial, 0), _each(obj, "dilation", spatial, 1)
        if isinstance(p := obj.attrs.get("padding"), Const) and p.value == "same":
            shape: Shape = (*x.shape[: -spatial - 1], channels, *x.shape[-spatial:])
        else:
            shape = convolution.convolved_shape(x.shape, channels, kernel, stride, padding, dilation, transposed)
        made = result(shape, x)
        made.tags = made.tags - STANDING | {LEARNED}
        return recurrences.computed(it, row_mixing.convolved(made, x, kernel, site))

    return forward


def _each(obj: Instance, name: str, count: int, default: int) -> list[Dim]:
    value = obj.attrs.get(name)
    if isinstance(value, Seq):
        found = [size(i) for i in value.items]
        return [default if f is None else f for f in found] * (count if len(found) == 1 else 1)
    found_one = size(value) if value is not None else None
    return [default if found_one is None else found_one] * count


def _conv_weights(spatial: int) -> Shaper:
    def weights(obj: Instance) -> dict[str, tuple[Dim, ...] | None]:
        i, o, groups = attribute(obj, "in_channels"), attribute(obj, "out_channels"), attribute(obj, "groups") or 1
        if i is None or o is None:
            return {"weight": None, "bias": None}
        return {"weight": (o, dims.floordiv(i, groups), *_each(obj, "kernel_size", spatial, 1)), "bias": (o,)}

    return weights


def _pool(spatial: int) -> Forward:
    def forward(it: Interpreter, obj: Instance, args: Args, site: Site | None) -> Value:
        x = as_tensor(args.get(0, "input") or NONE)
        if x is None or x.shape is None or len(x.shape) < spatial + 1:
            return unknown_tensor("a pooling of a tensor that is not known", site, *((x,) if x is not None else ()))
        kernel = _each(obj, "kernel_size", spatial, 1)
        stride = _each(obj, "stride", spatial, 0)
        stride = [k if s == 0 else s for k, s in zip(kernel, stride, strict=True)]
        channels, padding = x.shape[-spatial - 1], _each(obj, "padding", spatial, 0)
        shape = convolution.convolved_shape(x.shape, channels, kernel, stride, padding, [1] * spatial, False)
        return row_mixing.convolved(result(shape, x), x, kernel, site)

    return forward


def _flatten(it: Interpreter, obj: Instance, args: Args, site: Site | None) -> Value:
    return views.flatten(
        it, Args([args.pos[0], obj.attrs.get("start_dim", Const(1)), obj.attrs.get("end_dim", Const(-1))]), site
    )


def _glu(it: Interpreter, obj: Instance, args: Args, site: Site | None) -> Value:
    return elementwise.glu(it, Args([args.pos[0], obj.attrs.get("dim", Const(-1))]), site)


def _attention(it: Interpreter, obj: Instance, args: Args, site: Site | None) -> Value:
    """Attention to what goes in as keys: where those are the rows of the query, none that a cache holds are seen."""
    q, k = as_tensor(args.get(0, "query") or NONE), as_tensor(args.get(1, "key") or NONE)
    out = unknown_tensor("attention", site)
    if q is not None:
        out = row_mixing.mixed(result(q.shape, *(a for a in args.pos if isinstance(a, Tensor))))
        out = rows.blended(out, site, k is not None and any(map(dims.is_query, k.shape or ())))
    return Seq("tuple", [out, unknown_tensor("attention weights", site)])


def _unread(it: Interpreter, obj: Instance, args: Args, site: Site | None) -> Value:
    return unknown_tensor(
        "a layer whose shapes are not followed", site, *(a for a in args.pos if isinstance(a, Tensor))
    )


def _numbered_weight(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`weight_ih_l0`, `bias_hh_l1_reverse`, ...: a recurrent layer has them by layer and direction."""
    if (text_of(args.pos[1]) or "").startswith(("weight_", "bias_")):
        return Tensor(None, reason=Unknown("a weight of a recurrent layer"), base=Storage("weight", "parameter"))
    return MODULE.methods["__getattr__"](it, args, site)


_RECURRENT_METHODS: Methods = {
    "flatten_parameters": nothing,
    "__getattr__": _numbered_weight,
}

_ACTIVATIONS = """
ReLU ReLU6 SiLU GELU Mish ELU SELU CELU LeakyReLU PReLU Sigmoid Tanh Softplus Hardswish Hardsigmoid
Hardtanh Softsign LogSigmoid
"""
_NO_ACTIVATIONS = "Identity Dropout Dropout1d Dropout2d Threshold"
_RECURRENT = "input_size hidden_size num_layers bias batch_first dropout bidirectional proj_size"
_UNREAD = {
    "Upsample": "size scale_factor mode align_corners",
    "Unfold": "kernel_size dilation padding stride",
    "Fold": "output_size kernel_size dilation padding stride",
    "TransformerEncoder": "encoder_layer num_layers norm",
    "TransformerEncoderLayer": "d_model nhead dim_feedforward dropout",
    "AdaptiveAvgPool1d": "output_size",
    "AdaptiveAvgPool2d": "output_size",
    "PixelShuffle": "upscale_factor",
}
_ORDERED = {
    "Softmax": elementwise.softmax,
    "LogSoftmax": elementwise.ordered(1, blends=True),
    "Softmin": elementwise.ordered(1, blends=True),
}
_FEATURES = "num_features eps momentum affine track_running_stats"
_NORMS: dict[str, tuple[Forward, str]] = {
    "LayerNorm": (_normalized, "normalized_shape eps elementwise_affine bias"),
    "RMSNorm": (_normalized, "normalized_shape eps elementwise_affine"),
    "GroupNorm": (_by(normalization.of_axes_from(1)), "num_groups num_channels eps affine"),
    "InstanceNorm1d": (_by(normalization.of_axes_from(2)), _FEATURES),
    "InstanceNorm2d": (_by(normalization.of_axes_from(2)), _FEATURES),
    **{f"BatchNorm{n}d": (_batch, _FEATURES) for n in (1, 2, 3)},
}
_CONV = "in_channels out_channels kernel_size stride padding dilation groups bias padding_mode"
_DECONV = "in_channels out_channels kernel_size stride padding output_padding groups bias dilation"
_POOL = "kernel_size stride padding"


def _of_weights(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`nn.Embedding.from_pretrained(weights)`: as many rows, and as wide, as the table that it is given."""
    cls, given = args.pos[0], args.get(1, "embeddings") or NONE
    table = as_tensor(given)
    known = table is not None and table.shape is not None and len(table.shape) == 2
    sizes = [number(d, (given,)) for d in table.shape or ()] if table is not None and known else []
    return it.call(cls, Args(sizes or [Unknown("the size of a table of embeddings", "n", "int")] * 2), site)


EMBEDDING = layer(
    "Embedding",
    "num_embeddings embedding_dim padding_idx",
    _embedding,
    _embedding_weights,
    {"from_pretrained": _of_weights},
)


def _classes() -> list[NativeClass]:
    out = [layer(n, "dim", _by(elementwise.activated)) for n in _ACTIVATIONS.split()]
    out += [layer(n, "p inplace", _by(elementwise.same)) for n in _NO_ACTIVATIONS.split()]
    out += [layer(n, "dim", _along(f)) for n, f in _ORDERED.items()]
    out += [layer(n, p, f, _norm_weights) for n, (f, p) in _NORMS.items()]
    out += [layer(f"Conv{s}d", _CONV, _convolution(s), _conv_weights(s)) for s in (1, 2, 3)]
    out += [layer(f"ConvTranspose{s}d", _DECONV, _convolution(s, True), _conv_weights(s)) for s in (1, 2, 3)]
    out += [layer(f"{kind}Pool{s}d", _POOL, _pool(s)) for kind in ("Max", "Avg") for s in (1, 2)]
    out += [layer(n, p, _unread) for n, p in _UNREAD.items()]
    out += [layer(n, _RECURRENT, _unread, more=_RECURRENT_METHODS) for n in ("LSTM", "GRU", "RNN")]
    out += [
        layer("Linear", "in_features out_features bias", _linear, _linear_weights),
        EMBEDDING,
        layer("Flatten", "start_dim end_dim", _flatten),
        layer("GLU", "dim", _glu),
        layer("MultiheadAttention", "embed_dim num_heads", _attention),
    ]
    return out


NATIVES: dict[str, Value] = {c.name: c for c in _classes()}
NATIVES |= {
    "torch.nn.modules.linear.Linear": NATIVES["torch.nn.Linear"],
    "torch.nn.modules.sparse.Embedding": NATIVES["torch.nn.Embedding"],
}
