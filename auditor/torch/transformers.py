"""Hugging Face transformers: configurations are unknown data.

Causal models give logits for all rows unless told otherwise.
"""

from __future__ import annotations

from auditor import dims
from auditor.handlers import nothing
from auditor.interpreter import Interpreter
from auditor.objects.inheritance import OBJECT
from auditor.places import Site, here
from auditor.torch import (
    attention_class,
    model_families,
    model_parts,
    own_attention,
    own_functions,
    rows,
    shared_positions,
)
from auditor.torch.mask_sides import shows_behind
from auditor.torch.masks import hides_nothing
from auditor.torch.modules import MODULE, walk
from auditor.torch.pretrained import GENERATES, OWN, chosen, config, registered
from auditor.torch.tensors import as_tensor, result, size, unknown_tensor
from auditor.values import (
    FALSE,
    NONE,
    Args,
    Const,
    Instance,
    Method,
    NativeClass,
    Seq,
    Star,
    Tensor,
    Unknown,
    Value,
    is_given,
    is_none,
    text_of,
)
from auditor.values.tags import BLENDED


def _config(it: Interpreter, args: Args, site: Site | None) -> Value:
    return config(site, it, args)


def _configured(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`LlamaConfig(hidden_size=64)`: what is given is known, the rest is the library's."""
    given = args.kw
    made = Unknown("the library's default configuration decides", "config", "data", places=here(site))
    made.children.update({f".{name}": value for name, value in given.items()})
    return made


def _given(it: Interpreter, args: Args, site: Site | None) -> Unknown:
    """The configuration that a model is made from, where it is at hand."""
    given = args.get(1, "config")
    return given if isinstance(given, Unknown) and given.kind == "data" else config(site, it, Args(args.pos[1:2]))


def _causal(it: Interpreter, args: Args, site: Site | None) -> Value:
    cfg = _given(it, args, site)
    family = model_families.told(args, cfg)
    other = family.keeps_more(site)
    if other is not None:
        return other
    obj = Instance(CAUSAL, {"config": cfg}, places=cfg.places)
    base = obj.attrs["model"] = Instance(BASE, {"config": cfg}, places=obj.places)
    doubt = family.is_unlisted(site)
    if doubt is not None:
        base.attrs[_DOUBT] = doubt
    vocab, hidden = cfg.child(".vocab_size"), cfg.child(".hidden_size")
    obj.attrs["lm_head"] = model_parts.usual(it, "Linear", in_features=hidden, out_features=vocab)
    return obj


_DOUBT = "(what it keeps)"


def _base(it: Interpreter, args: Args, site: Site | None) -> Value:
    """A model without a head; one whose code comes with its checkpoint may be anything."""
    if args.more is not None or args.kw.get("trust_remote_code", FALSE) != FALSE:
        return Unknown("the code of the model comes with its checkpoint", places=here(site))
    cfg = _given(it, args, site)
    other = model_families.told(args, cfg).keeps_more(site)
    if other is not None:
        return other
    return Instance(BASE, {"config": cfg}, places=cfg.places)


def _hidden(obj: Value, args: Args, site: Site | None) -> Tensor:
    ids, embeds = args.get(1, "input_ids"), args.kw.get("inputs_embeds")
    cfg = obj.attrs["config"] if isinstance(obj, Instance) else config(site)
    assert isinstance(cfg, Unknown)
    width = size(cfg.child(".hidden_size"))
    if is_given(embeds):
        t = as_tensor(embeds)
        return t if t is not None else unknown_tensor("embeddings that are not known", site)
    t = as_tensor(ids) if ids is not None else None
    if t is None or t.shape is None or width is None:
        return unknown_tensor("a query that is not known", site)
    return result((*t.shape, width), t, site=site, dtype="float32")


def _forward_base(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj, hidden = args.pos[0], _hidden(args.pos[0], args, site)
    assert isinstance(obj, Instance)
    cfg = obj.attrs["config"]
    assert isinstance(cfg, Unknown)
    cause = model_parts.replaced(it, hidden, cfg, site)
    doubt = obj.attrs.get(_DOUBT)
    if isinstance(doubt, Unknown) and is_given(args.kw.get("past_key_values")):
        cause = cause or doubt
    if cause is not None:
        return _output({"last_hidden_state": unknown_tensor("the model", site, cause)})
    own = own_attention.run(it, hidden, cfg, args, site)
    if own is None:
        held = model_parts.update_cache(it, args.kw.get("past_key_values"), hidden, cfg, site)
        cause = own_functions.broken(it, obj, hidden, held, args.get(2, "attention_mask"), site)
        if cause is not None:
            return _output({"last_hidden_state": unknown_tensor("the model", site, cause)})
    hidden = own or hidden
    if it.events is not None:
        it.events.layers = True
        told = args.get(3, "position_ids")
        at = told if isinstance(told, Tensor) else args.kw.get("cache_position")
        if at is None or is_none(at):
            at = model_parts.positions(it, args.kw.get("past_key_values"), hidden, site)
        hidden = shared_positions.stands_at(it.events, hidden, at, site)
        mask = args.get(2, "attention_mask")
        hidden = rows.blended(hidden, site, rows.has_rows(hidden) and _shows_all(mask))
    return _output({"last_hidden_state": model_parts.changed(it, obj, hidden, site)})


def _shows_all(mask: Value | None) -> bool:
    """Whether a mask of keys for each row of the query, `[batch, heads, rows, keys]`, says the same for all of them."""
    if not isinstance(mask, Tensor) or mask.shape is None or len(mask.shape) != 4:
        return False
    return hides_nothing(mask) or shows_behind(mask) or BLENDED in mask.tags


def _forward_causal(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = args.pos[0]
    assert isinstance(obj, Instance)
    found = it.call(it.get(obj, "model", site), Args(args.pos[1:], args.kw, args.more), site)
    states = found.attrs.get("last_hidden_state") if isinstance(found, Instance) else found
    hidden = as_tensor(states or NONE) or unknown_tensor("the hidden states of the model", site)
    kept = args.kw.get("logits_to_keep") or args.kw.get("num_logits_to_keep")
    keep = kept.value if isinstance(kept, Const) else None if kept is not None or args.more is not None else 0
    if hidden.shape is not None and keep != 0:
        if not isinstance(keep, int):
            return _output({"logits": unknown_tensor("`logits_to_keep` is not known", site, hidden)})
        cuts = (
            (*hidden.cuts, site)
            if site is not None and any(dims.depends_on_query(d) for d in hidden.shape)
            else hidden.cuts
        )
        hidden = result((*hidden.shape[:-2], keep, hidden.shape[-1]), hidden, site=site)
        hidden.cuts = cuts
    logits = it.call(it.get(obj, "lm_head", site), Args([hidden]), site)
    return _output({"logits": logits, "hidden_states": Unknown("hidden states", "hidden_states")})


def _output(attrs: dict[str, Value]) -> Instance:
    made = dict(attrs)
    made["past_key_values"] = Unknown("the cache that a model gives back", "past_key_values")
    return Instance(OUTPUT, made)


def _item(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj, key = args.pos[0], args.pos[1]
    assert isinstance(obj, Instance)
    if isinstance(key, Const) and isinstance(key.value, int):
        return list(obj.attrs.values())[key.value]
    return obj.attrs.get(text_of(key) or "", Unknown("an output that is not known"))


def _to_tuple(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = args.pos[0]
    assert isinstance(obj, Instance)
    return Seq("tuple", list(obj.attrs.values()))


OUTPUT = NativeClass("transformers.ModelOutput", {"__getitem__": _item, "to_tuple": _to_tuple}, (OBJECT,))


_EACH = "(each)"
_EMBEDDINGS = ("embed_tokens", "wte", "tok_embeddings", "embed_in")
_LAYERS = ("layers", "h", "blocks")
_GROUPS = ("self_attn", "attn", "attention", "mlp", "feed_forward")


def _getattr(it: Interpreter, args: Args, site: Site | None) -> Value:
    """A part of a model by the name that it has in this library: all of them treat each row by itself."""
    obj, name = args.pos[0], text_of(args.pos[1]) or ""
    assert isinstance(obj, Instance)
    made = _part(it, obj, name)
    if made is None:
        return Unknown(f"`{name}` of a Hugging Face model", f"model.{name}", places=here(site))
    it.heap.touch(obj)
    made.places, made.taint = obj.places, obj.taint
    obj.attrs[name] = made
    return made


def _part(it: Interpreter, obj: Instance, name: str) -> Instance | None:
    cfg = obj.attrs.get("config")
    if not isinstance(cfg, Unknown):
        return None
    if name in _EMBEDDINGS:
        return model_parts.usual(
            it, "Embedding", num_embeddings=cfg.child(".vocab_size"), embedding_dim=cfg.child(".hidden_size")
        )
    if name in _LAYERS:
        return Instance(LAYERS, {"config": cfg})
    if "norm" in name or name.startswith("ln_"):
        return model_parts.usual(it, "LayerNorm")
    if obj.cls is PART and name.endswith("_proj"):
        return model_parts.usual(it, "Linear", out_features=cfg.child(f".{name}.out_features"))
    return Instance(PART, {"config": cfg}) if obj.cls is PART and name in _GROUPS else None


def _layer(it: Interpreter, args: Args, site: Site | None) -> Value:
    """The layer that stands for all: what is done to one may have been done to any."""
    obj = args.pos[0]
    assert isinstance(obj, Instance)
    if len(args.pos) > 1 and isinstance(args.pos[1], Seq) and args.pos[1].kind == "slice":
        return obj
    found = obj.attrs.get(_EACH)
    if not isinstance(found, Instance):
        it.heap.touch(obj)
        config = {"config": obj.attrs["config"]}
        found = obj.attrs[_EACH] = Instance(PART, config, places=obj.places, taint=obj.taint)
    return found


def _edited(it: Interpreter, args: Args, site: Site | None) -> Value:
    """Another layer is put among those of the model: which one a loop meets is not known any more."""
    obj = args.pos[0]
    assert isinstance(obj, Instance)
    cause = Unknown("the layers of the model are edited", "layers", places=here(site))
    for _, part in list(walk(obj)):
        it.heap.touch(part)
        part.taint = part.taint or cause
    return NONE


def _each_layer(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Seq("list", [Star((_layer(it, args, site),))])


def _count(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Unknown("the number of layers of a Hugging Face model", "num_hidden_layers", "int")


def _unread(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Unknown("the forward of a part of a Hugging Face model", "forward", places=here(site))


def _embeddings(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`get_input_embeddings()`, of a model or of one with a head."""
    obj = args.pos[0]
    assert isinstance(obj, Instance)
    return it.get(obj.attrs.get("model", obj), _EMBEDDINGS[0], site)


def _set_embeddings(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`set_input_embeddings(module)`, of a model or of one with a head."""
    obj = args.pos[0]
    assert isinstance(obj, Instance)
    it.set(obj.attrs.get("model", obj), _EMBEDDINGS[0], args.get(1, "value") or NONE, site)
    return NONE


def _set_head(it: Interpreter, args: Args, site: Site | None) -> Value:
    it.set(args.pos[0], "lm_head", args.get(1, "new_embeddings") or NONE, site)
    return NONE


def _set_part(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`model.norm = Other()`: what is set is remembered, since no source says where the model calls it."""
    obj, name = args.pos[0], text_of(args.pos[1])
    assert isinstance(obj, Instance)
    MODULE.methods["__setattr__"](it, args, site)
    before = obj.attrs.get(model_parts.SET)
    names = before.items if isinstance(before, Seq) else []
    obj.attrs[model_parts.SET] = Seq("tuple", [*names, Const(name)])
    return NONE


CAUSAL = NativeClass(
    "transformers.CausalLM",
    {
        "forward": _forward_causal,
        "__getattr__": _getattr,
        "get_input_embeddings": _embeddings,
        "set_input_embeddings": _set_embeddings,
        "set_output_embeddings": _set_head,
    },
    (MODULE,),
)
BASE = NativeClass(
    "transformers.PreTrainedModel",
    {
        "forward": _forward_base,
        "__getattr__": _getattr,
        "__setattr__": _set_part,
        "get_input_embeddings": _embeddings,
        "set_input_embeddings": _set_embeddings,
    },
    (MODULE,),
)
PART = NativeClass(
    "transformers.Part", {"forward": _unread, "__getattr__": _getattr, "__setattr__": _set_part}, (MODULE,)
)
LAYERS = NativeClass(
    "transformers.Layers",
    {
        "__getitem__": _layer,
        "__iter__": _each_layer,
        "__len__": _count,
        "forward": _unread,
        **dict.fromkeys(("append", "extend", "insert", "__setitem__"), _edited),
    },
    (MODULE,),
)
_FAMILIES = "Llama Qwen2 Qwen3 Mistral Phi Phi3 Gemma Gemma2 Gemma3 GPT2 GPTNeoX OPT Falcon Olmo2 SmolLM3 StableLm"


def _factory(name: str, handler: Method) -> NativeClass:
    return NativeClass(name, {"from_pretrained": handler, "from_config": handler, "__new__": handler}, (MODULE,))


def _auto(name: str, handler: Method) -> NativeClass:
    made = _factory(f"transformers.{name}", chosen(handler))
    made.methods["register"] = registered
    return made


NATIVES: dict[str, Value] = {
    **attention_class.NATIVES,
    **own_functions.NATIVES,
    "transformers.AutoConfig": NativeClass(
        "transformers.AutoConfig",
        {"from_pretrained": _config, "for_model": _config, "register": nothing},
        (OBJECT,),
    ),
    "transformers.PretrainedConfig": NativeClass(
        "transformers.PretrainedConfig", {"from_pretrained": _config}, (OBJECT,)
    ),
    "transformers.AutoModelForCausalLM": _auto("AutoModelForCausalLM", _causal),
    "transformers.GenerationMixin": GENERATES,
    "transformers.generation.GenerationMixin": GENERATES,
    "transformers.generation.utils.GenerationMixin": GENERATES,
    "transformers.PreTrainedModel": OWN,
    "transformers.modeling_utils.PreTrainedModel": OWN,
    **{f"transformers.{f}ForCausalLM": _factory(f"transformers.{f}ForCausalLM", _causal) for f in _FAMILIES.split()},
    "transformers.AutoModel": _auto("AutoModel", _base),
    **{f"transformers.{f}Model": _factory(f"transformers.{f}Model", _base) for f in _FAMILIES.split()},
    **{
        f"transformers.{f}Config": NativeClass(
            f"transformers.{f}Config", {"from_pretrained": _config, "__new__": _configured}, (OBJECT,)
        )
        for f in _FAMILIES.split()
    },
}
