"""The attention of a Hugging Face model, from which scripts derive their own: its parts, sizes; its helpers.

Its `forward` is not read. Families that this is not listed for have other names of parts.
"""

from __future__ import annotations

from auditor import dims
from auditor.dims import Dim
from auditor.interpreter import Interpreter
from auditor.places import Site, here
from auditor.torch import model_parts, shared_positions
from auditor.torch.modules import MODULE
from auditor.torch.tensors import as_tensor, result, size, unknown_tensor
from auditor.values import NONE, Args, Instance, Native, NativeClass, Seq, Tensor, Unknown, Value, number, text_of

_FAMILIES = "Llama Qwen2 Qwen3 Mistral Mixtral Phi Gemma Gemma2 Gemma3 Olmo2 SmolLM3 StableLm"


def head_width(config: Unknown) -> Dim | None:
    """How wide a head is: as the configuration says, or as scripts compute it for their caches."""
    told = size(config.child(".head_dim"))
    hidden, heads = size(config.child(".hidden_size")), size(config.child(".num_attention_heads"))
    if isinstance(told, int) or hidden is None or heads is None:
        return told
    return dims.floordiv(hidden, heads)


def angles(at: Value, config: Value, site: Site | None) -> Value:
    """The cosines and sines of positions, `[batch, rows, head]`, all of them alike where there is but one."""
    width = head_width(config) if isinstance(config, Unknown) else None
    t = as_tensor(at)
    if t is None or t.shape is None or width is None:
        return Unknown("angles of positions that are not known", "rotary", places=here(site))
    return Seq("tuple", [result((*t.shape, width), t, site=site, dtype="float32") for _ in range(2)])


def _init(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = args.pos[0]
    assert isinstance(obj, Instance)
    it.heap.touch(obj)
    obj.attrs["config"] = args.get(1, "config") or Unknown("the configuration of an attention", "config", "data")
    obj.attrs["layer_idx"] = args.get(2, "layer_idx") or NONE
    return NONE


def _unread(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Unknown("the forward of an attention of a Hugging Face model", "forward", places=here(site))


def _rotary(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`rotary_emb(values, position_ids)`; older versions give a table of all positions up to a length."""
    obj = args.pos[0]
    assert isinstance(obj, Instance)
    at = args.get(2, "position_ids")
    if isinstance(at, Tensor):
        return angles(at, obj.attrs["config"], site)
    return Seq("tuple", [Unknown("a table of angles", name, "data", places=here(site)) for name in ("cos", "sin")])


ROTARY = NativeClass("transformers.RotaryEmbedding", {"forward": _rotary}, (MODULE,))


def _rotated(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`apply_rotary_pos_emb(q, k, cos, sin, position_ids)`: each row turned by where it stands."""
    cos, at = args.get(2, "cos"), args.get(4, "position_ids")
    out: list[Value] = []
    for value in (args.get(0, "q"), args.get(1, "k")):
        t = as_tensor(value or NONE)
        if t is None or t.shape is None:
            return Unknown("queries and keys that are not known", "apply_rotary_pos_emb", places=here(site))
        made = result(t.shape, t, *(a for a in (cos,) if isinstance(a, Tensor)), site=site)
        for told in (cos, at):
            made = shared_positions.stands_at(it.events, made, told, site)
        out.append(made)
    return Seq("tuple", out)


def _repeated(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`repeat_kv(states, groups)`: each head of keys or values as often as there are groups."""
    t, groups = as_tensor(args.get(0, "hidden_states") or NONE), size(args.get(1, "n_rep") or NONE)
    if t is None or t.shape is None or len(t.shape) != 4 or groups is None:
        return unknown_tensor("heads that are repeated", site, *((t,) if t is not None else ()))
    return result((t.shape[0], dims.mul(t.shape[1], groups), *t.shape[2:]), t, site=site)


def _part(it: Interpreter, args: Args, site: Site | None) -> Value:
    """A part or a size by its name: there are as many heads of queries for each one of keys as there are groups."""
    obj, name = args.pos[0], text_of(args.pos[1]) or ""
    assert isinstance(obj, Instance)
    unknown = Unknown(f"`{name}` of the attention of a Hugging Face model", f"attention.{name}", places=here(site))
    cfg = obj.attrs.get("config")
    if not isinstance(cfg, Unknown):
        return unknown
    heads, groups = (size(cfg.child(f".{n}")) for n in ("num_key_value_heads", "num_key_value_groups"))
    width = head_width(cfg)
    if heads is None or groups is None or width is None:
        return unknown
    whole, kept = dims.product((heads, groups, width)), dims.mul(heads, width)
    sizes = {
        "num_heads": dims.mul(heads, groups),
        "num_key_value_heads": heads,
        "num_key_value_groups": groups,
        "head_dim": width,
        "hidden_size": whole,
    }
    outputs = {"q_proj": whole, "k_proj": kept, "v_proj": kept, "o_proj": size(cfg.child(".hidden_size"))}
    made: Value
    if name in sizes:
        return number(sizes[name])
    if name == "rotary_emb":
        made = Instance(ROTARY, {"config": cfg}, places=obj.places)
    elif (out := outputs.get(name)) is not None:
        made = model_parts.usual(it, "Linear", out_features=number(out))
    elif name in ("q_norm", "k_norm"):
        made = model_parts.usual(it, "LayerNorm")
    else:
        return unknown
    it.heap.touch(obj)
    obj.attrs[name] = made
    return made


ATTENTION = NativeClass(
    "transformers.Attention", {"__init__": _init, "__getattr__": _part, "forward": _unread}, (MODULE,)
)


def _of_family(family: str) -> dict[str, Value]:
    module = f"transformers.models.{family.lower()}.modeling_{family.lower()}"
    return {
        f"{module}.{family}Attention": ATTENTION,
        f"{module}.{family}SdpaAttention": ATTENTION,
        f"{module}.apply_rotary_pos_emb": Native("apply_rotary_pos_emb", _rotated),
        f"{module}.repeat_kv": Native("repeat_kv", _repeated),
    }


NATIVES: dict[str, Value] = {name: value for family in _FAMILIES.split() for name, value in _of_family(family).items()}
