"""An attention of the script that a Hugging Face model runs in place of its own.

Apple's exporters derive one from the library's class, and put it into the library's table of kinds of attention:

    class SliceUpdateAttention(MistralAttention):
        def forward(self, hidden_states, attention_mask, position_ids=None, past_key_value=None, **kwargs): ...

    MISTRAL_ATTENTION_CLASSES["sdpa"] = SliceUpdateAttention

It is evaluated once, as the layer that stands for all, with the parts that the library's class gives it.
"""

from __future__ import annotations

from auditor.interpreter import Interpreter, RaiseSignal
from auditor.objects.inheritance import class_lookup
from auditor.places import Site, here
from auditor.torch import model_parts
from auditor.torch.attention_class import angles
from auditor.torch.tensors import result, unknown_tensor
from auditor.values import FALSE, NONE, Args, Function, Seq, Tensor, Unknown, Value, is_given


def run(it: Interpreter, hidden: Tensor, config: Unknown, handed: Args, site: Site | None) -> Tensor | None:
    """What the attention of the script makes of hidden states; None where the model has the library's own.

    `handed` is what the model is called with: its mask, positions and cache go on to each layer.
    """
    classes = model_parts.attentions(it)
    if not classes or hidden.shape is None:
        return None
    name, cls = classes[0]
    cause = Unknown(f"`{name}`, which the model may call, is replaced", places=here(site))
    forward = class_lookup(cls, "forward")[0]
    if any(c is not cls for _, c in classes) or not isinstance(forward, Function):
        return unknown_tensor("the attention of the model", site, cause)
    layer = Unknown("which layer it is", "layer_idx", "int")
    try:
        attention = it.call(cls, Args([config], {"layer_idx": layer}), site)
        out = it.call(attention, Args([hidden], _handed(forward, hidden, config, handed, site)), site)
    except RaiseSignal:
        return unknown_tensor("the attention of the model", site, cause)
    made = out.items[0] if isinstance(out, Seq) and out.exact and out.items else out
    if isinstance(made, Tensor) and made.reason is not None:
        return unknown_tensor("the attention of the model", site, made.reason)
    if not isinstance(made, Tensor) or made.shape != hidden.shape:
        return unknown_tensor("the attention of the model", site, cause)
    return result(hidden.shape, hidden, made, site=site)


def _handed(forward: Function, hidden: Tensor, config: Unknown, args: Args, site: Site | None) -> dict[str, Value]:
    """What a layer hands to its attention beside the hidden states, as far as it takes it by that name."""
    assert hidden.shape is not None
    rows = hidden.shape[:-1]
    mask, at, cache = args.get(2, "attention_mask"), args.get(3, "position_ids"), args.get(4, "past_key_values")
    told = at if isinstance(at, Tensor) else result(rows, hidden, dtype="int64")
    known = {
        "attention_mask": mask if is_given(mask) else Unknown("the mask of the model", "mask", places=here(site)),
        "position_ids": told,
        "cache_position": result(rows[-1:], hidden, dtype="int64"),
        "position_embeddings": angles(told, config, site),
        "past_key_value": cache or NONE,
        "past_key_values": cache or NONE,
        "output_attentions": FALSE,
    }
    params = forward.node.params
    taken = {p.name.value for p in (*params.posonly_params, *params.params, *params.kwonly_params)}
    return {name: value for name, value in known.items() if name in taken}
