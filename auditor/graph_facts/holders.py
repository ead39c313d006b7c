"""Modules that may hold states in their buffers, which nobody has declared."""

from __future__ import annotations

from auditor.graph_facts.declaration import SAVED, Declaration, Declared
from auditor.graph_facts.query import reads_tokens
from auditor.roles import cache_names, is_state_name, no_logits_name
from auditor.torch.modules import tensors
from auditor.values import ExternalObject, Instance, Storage, Tensor, Unknown, Value


def may_hold_state(module: Value) -> bool:
    """Whether a buffer of the module is named like a state: such buffers become states when `forward` writes them."""
    if not isinstance(module, Instance):
        return False
    held = (n for n, t in tensors(module) if t.base is not None and t.base.role == "buffer")
    return any(map(is_state_name, held))


def silent_buffers(d: Declaration, q: Declared | None) -> list[Storage]:
    """The buffers of a graph of tokens that are states when `forward` writes them, and whose names do not say so."""
    held = tensors(d.module) if isinstance(d.module, Instance) else ()
    found = [t.base for _, t in held if t.base is not None and _is_like_a_cache(t)]
    return [s for s in found if s.role == "buffer" and not is_state_name(s.name)] if _keeps_any(d, q) else []


def may_write_input(d: Declaration, q: Declared | None) -> bool:
    """Whether a graph of tokens has another input that is a state when `forward` writes it."""
    return _keeps_any(d, q) and any(i is not q and _is_like_a_cache(i.value) for i in d.inputs)


def _keeps_any(d: Declaration, q: Declared | None) -> bool:
    """Whether what `forward` writes is a state: none are declared. Of a trace, Core ML keeps declared ones alone."""
    return d.state_names is None and reads_tokens(q) and not (d.core_ml and d.traced is not None)


def _is_like_a_cache(v: Value) -> bool:
    """Whether a tensor has the type and the axes of a cache: tables and masks have fewer, as a rule."""
    return isinstance(v, Tensor) and v.dtype.startswith(("float", "bfloat")) and len(v.shape or ()) > 2


_KEEP_NONE = ("transformers.", "diffusers.", "torchvision.", "timm.", "sentence_transformers.", SAVED)
"""Libraries whose modules keep no state in buffers (what they carry on goes in and comes out), and the script's own."""


def unread_holder(d: Declaration, q: Declared | None) -> Unknown | None:
    """The module of a graph of tokens that nobody has read, where states are whatever it writes to its buffers."""
    module = d.module
    if d.state_names is not None or not reads_tokens(q) or not isinstance(module, (Unknown, ExternalObject)):
        return None
    name = module.name if isinstance(module, Unknown) else module.dotted
    named = d.input_names is not None or d.output_names is not None
    if (named or isinstance(module, ExternalObject)) and (not name or name.startswith(_KEEP_NONE) or _tells(d)):
        return None  # the script's own, which was changed; or what goes in or comes out tells
    reason = module.reason if isinstance(module, Unknown) else f"`{name}` cannot be read"
    return Unknown(f"whether the module keeps states in its buffers is not known: {reason}", places=module.places)


def _tells(d: Declaration) -> bool:
    """Whether names say that a cache goes in, or that no logits come out."""
    names = d.input_names or [i.name for i in d.inputs]
    return bool(cache_names(names)) or no_logits_name(d.output_names or ()) is not None
