"""What a graph is, and how it holds keys and values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from auditor.forward import Outcome
from auditor.graph_facts.declaration import Declaration, Declared
from auditor.graph_facts.evidence import evidence, why
from auditor.graph_facts.query import is_vector, may_be_ids, says_nothing, takes_tokens
from auditor.objects.inheritance import mro
from auditor.roles import cache_names, carried, encoder_name, is_cache_name, role_by_name
from auditor.values import Class, Const, Instance, Mapping, Seq, Tensor, Unknown, Value, text_of
from rules.facts import Fact, Kind, Kv, Place, Role, State


def kv_fact(d: Declaration, states: Fact[tuple[State, ...]], others: Sequence[Declared]) -> Fact[Kv]:
    """Whether keys and values are states, go in and out, or are not there."""
    if states.value is None:
        return Fact.unknown(states.reason, *states.evidence)
    if any(s.role.is_kv for s in states.value):
        return Fact(Kv.STATE, states.evidence)
    if isinstance(d.state_names, Unknown):  # what is called a cache among the inputs may be one of those states
        reason, places = why(d.state_names, d.site)
        return Fact.unknown(f"the state names: {reason}", *places)
    if d.more is not None and not states.value:
        reason, places = why(d.more, d.site)
        named = cache_names(d.input_names or ())
        out = cache_names(d.output_names or ())
        if d.input_names is None or (named and not out and len(d.output_names or ()) != 1):
            return Fact.unknown(reason, *places)
    caches = _cache_inputs(others, d.output_names or ())
    named = [n for n in d.input_names or () if is_cache_name(n)]
    if d.output_names is None or cache_names(d.output_names):
        named = cache_names(d.input_names or ())  # a numbered pair is a cache when one comes out too, or may
    if caches or named:
        return Fact(Kv.IO, evidence(d.site, *(c.value for c in caches[:1]), d.input_source))
    return Fact(Kv.NONE, (d.site.place("export call"),))


def _cache_inputs(others: Sequence[Declared], outputs: Sequence[str]) -> list[Declared]:
    numbered = set(cache_names([i.name for i in others])) if cache_names(outputs) else set()
    numbered |= {n for n in carried([i.name for i in others], outputs) if role_by_name(n).is_kv}
    return [
        i
        for i in others
        if not isinstance(i.value, Const) and (i.name in numbered or any(map(is_cache_name, _paths(i.name, i.value))))
    ]


def _paths(name: str, value: Value, depth: int = 0) -> Iterator[str]:
    """The names of an input's tensors: those in a container have the container's name and their own."""
    if isinstance(value, Mapping) and depth < 4:
        for key, inner in value.entries.values():
            yield from _paths(f"{name}_{text_of(key) or ''}", inner, depth + 1)
    elif isinstance(value, Seq) and depth < 4:
        for inner in value.items:
            yield from _paths(name, inner, depth + 1)
    else:
        yield name


def kind_fact(d: Declaration, states: Fact[tuple[State, ...]], kv: Fact[Kv], q: Declared | None) -> Fact[Kind]:
    """Whether the graph is a decoder."""
    if states.value is None:
        return Fact.unknown(states.reason, *states.evidence)
    if (encoder := _encoder(d, q)) is not None and (states.value or kv.value is Kv.IO):
        return Fact(Kind.OTHER, (d.site.place("export call"), encoder))
    if states.value:
        if q is not None and is_vector(q) and not any(s.role in (Role.CONV, Role.RECURRENT) for s in states.value):
            return Fact(Kind.OTHER, evidence(d.site, q.value))
        return Fact(Kind.DECODER, states.evidence)
    if kv.value is None:
        return Fact.unknown(kv.reason, *kv.evidence)
    if kv.value is Kv.IO and q is not None and says_nothing(q):
        return Fact.unknown("neither the name nor the type of what goes in is known", *kv.evidence)
    if kv.value is Kv.IO and not takes_tokens(q):
        return Fact(Kind.OTHER, kv.evidence)  # a streaming encoder: its cache is of frames, not of tokens
    return Fact(Kind.OTHER if kv.value is Kv.NONE else Kind.DECODER, kv.evidence)


def _encoder(d: Declaration, q: Declared | None) -> Place | None:
    """Where the graph is said to be an encoder with streaming caches: its class or an output has that name.

    It reads no token ids and names no logits. What goes in may be called embeddings: those of frames are, too.
    """
    classes = [c for c in mro(d.module.cls) if isinstance(c, Class)] if isinstance(d.module, Instance) else []
    said = encoder_name([*(d.output_names or ()), *(c.name for c in classes)])
    if said is None or q is None or d.output_names is None or may_be_ids(q):
        return None
    site = next((c.site for c in classes if c.name == said), None)
    return site.place(f"the class is named `{said}`") if site else d.site.place(f"an output is named `{said}`")


def gives_one_output(d: Declaration, outcome: Outcome) -> bool:
    """Whether the graph surely has one output, which is no cache."""
    names = d.output_names or tuple(name for name, _ in outcome.outputs)
    followed = outcome.reason is None and all(isinstance(v, Tensor) for _, v in outcome.outputs)
    return len(names) == 1 and not is_cache_name(names[0]) and (d.output_names is not None or followed)
