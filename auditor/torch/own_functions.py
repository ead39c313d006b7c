"""Functions of the script in the place of the library's, which a Hugging Face model calls: each is tried on its rows.

    modeling_llama.apply_rotary_pos_emb = rotated
    ALL_ATTENTION_FUNCTIONS["sdpa"] = attention          # or `.register("mine", attention)`
    model.model._update_causal_mask = lambda *a: None

Which of several kinds of attention a model picks its configuration says, so that each of them has to keep the rows.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor import dims
from auditor.interpreter import Interpreter, RaiseSignal
from auditor.places import Site, here
from auditor.torch.attention_class import ATTENTION, angles
from auditor.torch.tensors import result, size
from auditor.values import (
    NONE,
    Args,
    Bound,
    Const,
    Function,
    Instance,
    Native,
    Seq,
    Tensor,
    Unknown,
    Value,
    is_none,
    text_of,
)
from auditor.values.tags import BLENDED, FLIPPED, MIXED, OTHER, SHARED

_KINDS = "transformers.modeling_utils.ALL_ATTENTION_FUNCTIONS"
_OTHERS = frozenset({BLENDED, FLIPPED, MIXED, OTHER, SHARED})


def broken(
    it: Interpreter, model: Instance, hidden: Tensor, held: Value | None, mask: Value | None, site: Site | None
) -> Unknown | None:
    """The first function that does not keep the rows of the query. `held`: keys and values that a cache gives back."""
    config = model.attrs["config"]
    assert isinstance(config, Unknown)
    functions = list(_functions(it, model))
    heads, width = size(config.child(".num_key_value_heads")), size(config.child(".head_dim"))
    groups = size(config.child(".num_key_value_groups"))
    if not functions or not hidden.shape or heads is None or width is None or groups is None:
        return None
    rows = hidden.shape[-2]
    query = result((hidden.shape[0], dims.mul(heads, groups), rows, width), hidden, site=site)
    keys = result((hidden.shape[0], heads, rows, width), hidden, site=site)
    pair = held.items if isinstance(held, Seq) and held.exact and len(held.items) == 2 else [keys, keys]
    module = Instance(ATTENTION, {"config": config, "layer_idx": Unknown("which layer it is", "layer_idx", "int")})
    turned = angles(result(hidden.shape[:-1], hidden, dtype="int64"), config, site)
    for name, function in functions:
        said = name.lower()
        if "rotary" in said and isinstance(turned, Seq):
            kept = _tried(it, function, Args([query, keys, *turned.items]), [query, keys], site)
        elif "attention" in said and "mask" not in said:
            values = pair[1].shape if isinstance(pair[1], Tensor) and pair[1].shape else (width,)
            out = (hidden.shape[0], rows, dims.mul(heads, groups), values[-1])
            more: dict[str, Value] = {"scaling": Unknown("a scale", "scaling", "float"), "dropout": Const(0.0)}
            args = Args([module, query, *pair, mask or NONE], more)
            kept = _tried(it, function, args, [result(out, query)], site)
        elif "mask" in said:
            handed = Unknown("what the library hands to a function", "args", places=here(site))
            kept = not is_none(_called(it, function, Args([], {}, handed), site))
        else:
            continue
        if not kept:
            return Unknown(f"`{name}`, which the model may call, is replaced", places=here(site))
    return None


def _functions(it: Interpreter, model: Instance) -> Iterator[tuple[str, Value]]:
    """Functions that were set in the library, and on the model itself, with their names."""
    for dotted, value in it.loader.patched.items():
        if dotted.startswith("transformers.") and isinstance(value, Function) and not dotted.endswith(_METHODS):
            yield dotted, value
    for name, value in model.attrs.items():
        if isinstance(value, (Function, Bound)) and name != "forward":
            yield name, value


_METHODS = (".forward", ".__call__", ".__init__")


def _tried(it: Interpreter, function: Value, args: Args, like: list[Tensor], site: Site | None) -> bool:
    """Whether a function gives, in this order, tensors of these shapes with the rows of the query."""
    given = _called(it, function, args, site)
    items = given.items if isinstance(given, Seq) and given.exact else [given]
    if len(items) < len(like):
        return False
    return all(
        isinstance(made, Tensor) and made.shape == t.shape and not (made.tags - t.tags) & _OTHERS
        for made, t in zip(items, like, strict=False)
    )


def _called(it: Interpreter, function: Value, args: Args, site: Site | None) -> Value:
    try:
        return it.call(function, args, site)
    except RaiseSignal:
        return NONE


def _register(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`ALL_ATTENTION_FUNCTIONS.register(name, function)`."""
    name, function = args.get(0, "key"), args.get(1, "value")
    if function is not None:
        it.loader.patch_external(it, f"{_KINDS}[{text_of(name or NONE) or ''}]", function)
    return NONE


NATIVES: dict[str, Value] = {
    f"{place}.register": Native("register", _register)
    for place in (_KINDS, "transformers.AttentionInterface", "transformers.modeling_utils.AttentionInterface")
}
