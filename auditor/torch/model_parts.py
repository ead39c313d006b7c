"""What a script has done to a Hugging Face model: to its parts, to the library around it, and by the cache it hands in.

The library's own `forward` is not read. It treats each row as attention does, as long as nobody has changed it.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor import dims
from auditor.dims import Atom
from auditor.interpreter import Interpreter, RaiseSignal
from auditor.joins import present
from auditor.objects.inheritance import class_lookup
from auditor.places import Site, here
from auditor.torch import layer_slots, layers, progressions
from auditor.torch.modules import HOOKS, children
from auditor.torch.tensors import size, unknown_tensor
from auditor.values import (
    NONE,
    Args,
    Class,
    Const,
    ExternalObject,
    Function,
    Instance,
    Mapping,
    NativeClass,
    Seq,
    Tensor,
    Unknown,
    Value,
    as_dim,
    text_of,
)
from auditor.values.tags import LEARNED, PARTLY, PRODUCT

SET = "(set)"
"""The attribute of a part that holds the names of the parts that a script has put into it."""
_FORWARD = (".forward", ".__call__")


def usual(it: Interpreter, kind: str, **sizes: Value) -> Instance:
    """A layer of the usual kind, with its weights; which of them have a bias only the model's source says."""
    made = it.call(layers.NATIVES[f"torch.nn.{kind}"], Args([], sizes), None)
    assert isinstance(made, Instance)
    if "bias" in made.attrs:
        made.attrs["bias"] = Unknown("whether a layer of a Hugging Face model has a bias", "bias")
    return made


def attentions(it: Interpreter) -> list[tuple[str, Value]]:
    """The classes of attention that the script has put in the place of the library's, with the name of the place."""
    return [(n, v) for n, v in it.loader.patched.items() if isinstance(v, (Class, NativeClass)) and _is_attention(n)]


def _is_attention(dotted: str) -> bool:
    return dotted.startswith("transformers.") and ("_ATTENTION_CLASSES[" in dotted or dotted.endswith("Attention"))


def replaced(it: Interpreter, hidden: Tensor, config: Unknown, site: Site | None) -> Unknown | None:
    """The first module of the library, or `forward` of one, that the script has replaced by what may change the rows.

    One that gives hidden states the shape that they had keeps them. Functions (rotations, masks, kinds of attention)
    are taken to mean what they replace.
    """
    for dotted, value in it.loader.patched.items():
        if not dotted.startswith("transformers.") or "[" in dotted or _is_attention(dotted):
            continue  # an attention is evaluated by itself
        if isinstance(value, Class):
            module = it.call(value, Args([config.child(".hidden_size")]), site)
            given: Value = it.call(module, Args([hidden]), site) if isinstance(module, Instance) else module
        elif dotted.endswith(_FORWARD):
            given = it.call(value, Args([Unknown("a part of the model", "self"), hidden]), site)
        else:
            continue
        if not _keeps(given, hidden):
            return Unknown(f"`{dotted}`, which the model may call, is replaced", places=here(site))
    return None


_OF_NO_ROWS = frozenset({LEARNED, PARTLY, PRODUCT})


def _keeps(given: Value, hidden: Tensor) -> bool:
    if not isinstance(given, Tensor) or hidden.shape is None:
        return False
    return given.shape == hidden.shape and given.tags <= hidden.tags | _OF_NO_ROWS


def changed(it: Interpreter, model: Instance, hidden: Tensor, site: Site | None) -> Tensor:
    """The last hidden states, after what the script has put into the model or hung on its parts.

    A part that gives hidden states the shape that they had keeps them; what the last norm gives is what comes out.
    """
    for name, part in _changed(model, "", set()):
        if not isinstance(part, Instance) or part.taint is not None:
            cause = part.taint if isinstance(part, Instance) else None
            return unknown_tensor(f"`{name}` of the model is not known any more", site, *((cause,) if cause else ()))
        given = it.call(part, Args([hidden]), site)
        last = "." not in name and "norm" in name
        if not isinstance(given, Tensor) or given.reason is not None or (given.shape != hidden.shape and not last):
            return unknown_tensor(f"`{name}` of the model is replaced, or something hangs on it", site)
        gained = given.tags - hidden.tags
        if last:
            hidden = given
        elif gained:
            hidden.tags = hidden.tags | gained
    return hidden


def _changed(part: Instance, prefix: str, seen: set[int]) -> Iterator[tuple[str, Value]]:
    """The parts that a script has set, or that have hooks or a `forward` of their own."""
    if id(part) in seen:
        return
    seen.add(id(part))
    mine = present(part.attrs.get(SET, NONE))
    names = [text_of(n) for n in mine.items] if isinstance(mine, Seq) else []
    for name, child in children(part):
        path = f"{prefix}.{name}" if prefix else name
        if not isinstance(child, Instance):
            continue
        other = name in names and not _of_library(child)
        if other or child.taint is not None or "forward" in child.attrs or any(h in child.attrs for h in HOOKS):
            yield path, child
        else:
            yield from _changed(child, path, seen)


def _of_library(part: Instance) -> bool:
    """Whether a part is one of the library's own: `model.layers = model.layers[:8]`."""
    return isinstance(part.cls, NativeClass) and part.cls.name.startswith("transformers.")


def update_cache(
    it: Interpreter, cache: Value | None, like: Tensor, config: Unknown, site: Site | None
) -> Value | None:
    """Call the `update` of a cache that the script defines, as each attention layer does, and give what it gives.

    What another cache does with its rows is not seen; tensors that stand for one are read and not written. Without one,
    attention sees the rows that go in and no others.
    """
    if it.events is None or site is None:
        return None
    if cache is None or (isinstance(cache, Const) and cache.value is None):
        it.events.attended(site, True)
        return None
    layer = it.rounds.begin(len(it.ways))
    given = None if isinstance(cache, (Seq, Tensor)) else _updated(it, cache, like, config, site)
    values = given.items[1] if isinstance(given, Seq) and given.exact and len(given.items) == 2 else None
    if isinstance(values, Tensor) and values.shape is not None and len(values.shape) > 1:
        it.events.attended(site, dims.is_query(values.shape[-2]))
        for seen in given.items if isinstance(given, Seq) else ():
            if isinstance(seen, Tensor):
                it.events.sees(seen, site, masked=True)
    else:
        it.events.attended(site, False)
    it.rounds.end(layer)
    if isinstance(cache, (Seq, Tensor)):
        tensors = Unknown("keys and values that a model is given without a cache are only read", places=cache.places)
        it.events.hidden_cache = tensors
    return given


def positions(it: Interpreter, cache: Value | None, like: Tensor, site: Site | None) -> Tensor | None:
    """Where a model that is not told takes its rows to stand: behind as many as a cache of the script says it has."""
    cls = cache.cls if isinstance(cache, Instance) else None
    length = class_lookup(cls, "get_seq_length")[0] if isinstance(cls, Class) else None
    if it.events is None or not isinstance(length, Function) or like.shape is None or len(like.shape) < 2:
        return None
    try:
        begin = as_dim(it.call(length, Args([cache or NONE]), site))
    except RaiseSignal:
        return None
    return progressions.progression(Tensor((like.shape[-2],), "int64"), begin, 1) if begin is not None else None


def _updated(it: Interpreter, cache: Value, like: Tensor, config: Unknown, site: Site) -> Value | None:
    """The keys and values that the `update` of a cache gives back, where it could be read."""
    assert it.events is not None
    cls = cache.cls if isinstance(cache, Instance) else None
    update = class_lookup(cls, "update")[0] if isinstance(cls, Class) else None
    if not isinstance(update, Function):
        named = f"`{cache.dotted}`" if isinstance(cache, ExternalObject) else "the cache that the model is given"
        it.events.hidden_cache = Unknown(f"{named} is not read", places=cache.places or (site,))
        return None
    heads, width = size(config.child(".num_key_value_heads")), size(config.child(".head_dim"))
    if heads is None or width is None or like.shape is None or len(like.shape) < 2:
        return None
    rows = Tensor((like.shape[0], heads, like.shape[-2], width), "float32", tags=like.tags)
    at = Tensor((like.shape[-2],), "int64", tags=like.tags)
    layer = Unknown("which layer it is", "layer_idx", "int")
    layer.atom = Atom(layer.name, minimum=0, counted=True)
    more = Mapping({("str", "cache_position"): (Const("cache_position"), at)})
    before = len(it.events.writes)
    try:
        given = it.call(update, Args([cache, rows, rows, layer, more]), site)
        written = (w.access for w in it.events.writes[before:])
        if any(layer_slots.is_of_one_layer(a) for a in written if a is not None):
            following = it.rounds.begin(len(it.ways))
            it.call(update, Args([cache, rows, rows, layer, more]), site)  # so does the next layer
            it.rounds.end(following)
        return given
    except RaiseSignal:
        it.events.hidden_cache = Unknown("its `update` raises when it is called as a model does", places=here(site))
        return None
