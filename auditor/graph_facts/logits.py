"""The logits: which output they are, and of how many rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from auditor import dims
from auditor.forward import Outcome, named_outputs, query_dim
from auditor.graph_facts.declaration import Declaration, Declared
from auditor.graph_facts.evidence import apart, evidence, why
from auditor.graph_facts.query import has_one_row, query_axis
from auditor.interpreter import Interpreter
from auditor.objects.inheritance import mro
from auditor.places import Site
from auditor.roles import LOGIT_NAMES, carried, comes_back, is_logits_name, no_logits_name, words
from auditor.torch import shared_positions
from auditor.torch.layers import EMBEDDING, attribute
from auditor.torch.modules import walk
from auditor.values import Instance, Tensor, Union, Unknown, Value
from auditor.values.tags import BLENDED, INPUT, LARGEST, MIXED, NOT_THE_QUERYS, SHARED, sites
from rules.facts import Fact, Logits, Place


def logits_fact(it: Interpreter, d: Declaration, outcome: Outcome, q: Declared | None, concrete: bool) -> Fact[Logits]:
    """What the logits have rows for; `concrete`: `forward` was run on the declared width, not on a symbolic one."""
    if outcome.reason is not None:
        reason, places = why(outcome.reason, d.site)
        names = d.output_names or ()
        one_row = _one_row(d, names[0], outcome.reason, outcome) if len(names) == 1 else None
        if one_row is not None:
            return one_row
        return _by_name(d) or Fact.unknown(reason, *places)
    name, value = _logits_output(d, outcome.outputs)
    if value is None:
        return _by_name(d) or Fact.unknown(
            "`forward` gives no tensor that could be followed", d.site.place("export call")
        )
    if isinstance(value, Union):
        # one way may return a tensor and another a tuple that begins with it
        ways = [_logits_output(d, named_outputs(it, o, d.site), name) for o in value.options]
        found = [_logits_of(d, n, v, q, concrete, outcome) for n, v in ways if v is not None]
        if len(found) == len(ways) and all(f.value is found[0].value for f in found):
            return found[0]
        return Fact.unknown("the output is one of several", *evidence(d.site, value))
    found = [_logits_of(d, name, value, q, concrete, outcome)]
    found += [_logits_of(d, n, v, q, concrete, outcome) for n, v in _other_parts(d, outcome.outputs, name, value)]
    return next((f for f in found if f.value is not Logits.ALL), found[0])


def _other_parts(
    d: Declaration, outputs: Sequence[tuple[str, Value]], first: str, found: Value
) -> list[tuple[str, Value]]:
    """Outputs that are named like the first part of a vocabulary, but for a number: all of them are the logits."""
    stem = _DIGITS.sub("", first)
    if not is_logits_name(first):
        return []
    return [(n, v) for n, v in _labelled(d, outputs) if v is not found and _DIGITS.sub("", n) == stem]


_DIGITS = re.compile(r"\d+")


def _logits_output(d: Declaration, outputs: Sequence[tuple[str, Value]], default: str = "") -> tuple[str, Value | None]:
    labelled = _labelled(d, outputs, default)
    for label, v in labelled:
        if is_logits_name(label):
            return label, v
    return labelled[0] if labelled else ("", None)


def _labelled(d: Declaration, outputs: Sequence[tuple[str, Value]], default: str = "") -> list[tuple[str, Value]]:
    names = _names(d.output_names or (), len(outputs))
    return [(names.get(n) or own or default, v) for n, (own, v) in enumerate(outputs)]


def _names(names: Sequence[str], count: int) -> dict[int, str]:
    """The names of `count` outputs by position; behind names that stand for several, positions count from the end.

    Between them stand those that the only such name stands for.
    """
    several = [n for n, name in enumerate(names) if "*" in name]
    if not several:
        return dict(enumerate(names))
    behind = {count - (len(names) - n): name for n, name in enumerate(names) if n > several[-1]}
    first, last = several[0], count - (len(names) - several[-1]) if len(several) == 1 else -1
    return {**behind, **dict.fromkeys(range(first, last + 1), names[first]), **dict(enumerate(names[:first]))}


def _logits_of(
    d: Declaration, name: str, value: Value, q: Declared | None, concrete: bool, outcome: Outcome
) -> Fact[Logits]:
    flags = value.flags
    one_row = _one_row(d, name, value, outcome)
    if one_row is not None:
        return one_row
    if not isinstance(value, Tensor):
        cause = value if isinstance(value, Unknown) else Unknown("an output that is no tensor", places=value.places)
        reason, places = why(cause, d.site)
        return _by_name(d) or Fact.unknown(reason, *places, flags=flags)
    places = evidence(d.site, value)
    if value.tags & LARGEST or (value.dtype.startswith(("int", "uint")) and value.shape is not None):
        return Fact(Logits.NONE, places, flags=flags)
    if value.reason is not None or value.shape is None:
        cause = value.reason or Unknown("the shape of the output is not known", places=value.places)
        reason, where = why(cause, d.site)
        return _by_name(d) or Fact.unknown(reason, *where, flags=flags)
    if not value.shape or (value.shape[-1] == query_dim() and all(d == 1 for d in value.shape[:-1])):
        return Fact(Logits.NONE, places, flags=flags)  # one number, or one for each row
    value = replace(value, shape=_channels_last(value.shape))
    assert value.shape is not None
    split = sum(bool(set(words(n)) & LOGIT_NAMES) for n in d.output_names or ()) > 1  # the vocabulary in parts
    told = _of_embeddings(d.module, value.shape[-1]) if not split else set()
    is_logits = False if told == {False} else _is_logits(name, value, q) if words(name) or not told else True
    if len(told) == 2:
        is_logits = None
    elif is_logits is None and told and _is_largest_table(d.module, value.shape[-1]):
        is_logits = True  # `linear_0` says nothing, and the width is that of the vocabulary
    if is_logits is None:
        return Fact.unknown(
            f"whether the output `{name or 'of forward'}` of width {value.shape[-1]} holds logits or hidden states",
            *places,
            flags=flags,
        )
    if not is_logits:
        return Fact(Logits.NONE, places, flags=flags)
    if INPUT not in value.tags:
        return Fact.unknown("the output is not seen to be computed from what goes in", *places, flags=flags)
    rows = _rows(d, value, places, concrete, q)
    doubt = _doubt(outcome) if rows.value is Logits.ALL and not has_one_row(q) else None
    if doubt is not None:
        return Fact.unknown(doubt[0], *places, doubt[1], flags=flags)
    shared = shared_positions.found(outcome.events) if SHARED in value.tags else None
    return rows if shared is None or rows.value is not Logits.ALL else _of_one_position(d, rows, *shared, q)


def _of_one_position(d: Declaration, rows: Fact[Logits], site: Site, one: Tensor, q: Declared | None) -> Fact[Logits]:
    """Logits of all rows, whose positions are those of other rows: right at most where there is no other row."""
    reason = shared_positions.told(one)
    if has_one_row(q):
        return replace(rows, reason=reason)
    call, *made = evidence(d.site, one)
    where = (call, site.place("all rows get it here"), *made, *rows.evidence[1:])
    return Fact.unknown(reason, *where, flags=rows.flags | one.flags)


def _one_row(d: Declaration, name: str, value: Value, outcome: Outcome) -> Fact[Logits] | None:
    """`LAST` for logits by name that could not be followed, when only one row of something goes into them."""
    found = outcome.events.last_rows.get(id(value))
    if found is None or not is_logits_name(name):
        return None
    return Fact(Logits.LAST, (d.site.place("export call"), found[1].place("one row is left here")), flags=value.flags)


def _by_name(d: Declaration) -> Fact[Logits] | None:
    """`NONE` for outputs that could not be followed, when the names in the call say that none is logits."""
    outputs = d.output_names or ()
    held = carried([i.name for i in d.inputs], outputs)
    said = no_logits_name([n for n in outputs if not comes_back(held, n)])
    if said is None:
        return None
    note = f"the output is named `{said}`"
    call, *places = evidence(d.site, d.output_source)
    named = places[0] if places else call
    return Fact(Logits.NONE, (*((call,) if places else ()), Place(named.path, named.line, note)))


_HIDDEN_NAMES = {"hidden", "embed", "embeds", "embeddings", "features", "feat", "latent", "states", "h"}


def _of_embeddings(module: Value, width: dims.Dim) -> set[bool]:
    """What the embeddings say of a width: a vocabulary (True), hidden states, whatever their name (False), or both."""
    found = _embeddings(module)
    kinds = {True: "num_embeddings", False: "embedding_dim"}
    ways = set(dims.alternatives(width))
    return {kind for kind, name in kinds.items() if any(attribute(m, name) in ways for m in found)}


def _embeddings(module: Value) -> list[Instance]:
    """The embeddings of a module, or of those that it may be."""
    ways = module.options if isinstance(module, Union) else (module,)
    return [m for way in ways if isinstance(way, Instance) for _, m in walk(way) if EMBEDDING in mro(m.cls)]


def _is_largest_table(module: Value, width: dims.Dim) -> bool:
    """Whether no table of embeddings has more rows than `width`: positions have one, too, which is no vocabulary."""
    found = _embeddings(module)
    counts = [attribute(m, "num_embeddings") for m in found]
    return all(c == width or (isinstance(c, int) and isinstance(width, int) and c < width) for c in counts)


def _channels_last(shape: tuple[dims.Dim, ...]) -> tuple[dims.Dim, ...]:
    """Logits of a convolution, `[1, vocab, 1, q]` or `[1, vocab, q]`, as `[1, q, vocab]`."""
    if len(shape) == 4 and shape[2] == 1 and shape[3] in (1, query_dim()) and shape[1] not in (1, query_dim()):
        return shape[0], shape[3], shape[1]
    if len(shape) == 3 and shape[2] == query_dim() and shape[1] not in (1, query_dim()):
        return shape[0], shape[2], shape[1]
    return shape


_FEWEST = 16
"""A head with as few outputs classifies: no tokenizer has so small a vocabulary."""


def _is_logits(name: str, value: Tensor, q: Declared | None) -> bool | None:
    """Logits are as wide as a vocabulary; hidden states are as wide as the embeddings that came in."""
    assert value.shape is not None
    width = value.shape[-1]
    label = set(words(name))
    vocabulary = "vocab" in str(width).lower()
    if isinstance(width, dims.Poly) and ("labels" in words(str(width)) or dims.depends_on_query(width)):
        return False
    if isinstance(width, int) and width <= _FEWEST:
        return False
    if vocabulary:
        return True
    embedded = (
        q.value.shape[-1 if query_axis(q) == 1 else 1]
        if q is not None and isinstance(q.value, Tensor) and q.value.shape is not None and len(q.value.shape) > 2
        else None
    )
    if embedded is not None and width == embedded:
        return False
    if "hidden" in str(width).lower():
        return None if label & LOGIT_NAMES else False
    if label & LOGIT_NAMES:
        return True
    if label & _HIDDEN_NAMES:
        return False
    return None


def _doubt(outcome: Outcome) -> tuple[str, Place] | None:
    """What attention sees or leaves out, so that each of several rows may get others than one by one, and where."""
    events = outcome.events
    if events.alone is not None:
        return "attention sees the rows of the query only, and none that the cache holds", events.alone.place()
    if events.stale is not None:
        return events.stale[1], events.stale[0].place("attention is here")
    return (events.unread[1], events.unread[0].place("written here")) if events.unread is not None else None


def _rows(d: Declaration, value: Tensor, places: tuple[Place, ...], concrete: bool, q: Declared | None) -> Fact[Logits]:
    assert value.shape is not None
    rows = value.shape[:-1]
    cuts = tuple(c.place("one row is left here") for c in value.cuts)
    made = tuple(s.place("these rows are made here") for s in sites(value.tags))
    places = apart(places, made)
    if concrete:
        width = (
            q.value.shape[query_axis(q)] if q is not None and isinstance(q.value, Tensor) and q.value.shape else None
        )
        if width in rows and width != 1:
            return Fact(Logits.ALL, places, flags=value.flags)
        if width != 1 and all(r == 1 for r in rows):
            return Fact(Logits.LAST, (*places, *cuts), flags=value.flags)
        return Fact.unknown("with a query of one row nobody can tell whether all rows are kept", *places)
    if MIXED in value.tags and not has_one_row(q):
        return Fact.unknown("one row of the query goes into all rows of the output", *places, *cuts, flags=value.flags)
    if query_dim() in rows and BLENDED in value.tags and not has_one_row(q):
        reason = (
            "rows of the query are mixed, or come out of a buffer that a kernel may fill: "
            "one forward over S rows may not be S forwards over one row"
        )
        return Fact.unknown(reason, *places, *cuts, *made, flags=value.flags)
    if query_dim() in rows and value.tags & NOT_THE_QUERYS:
        reason = "rows of the output are masked, moved or written in part: they may not be those of the query"
        return Fact.unknown(reason, *places, *cuts, *made, flags=value.flags)
    if query_dim() in rows:
        return Fact(Logits.ALL, places, flags=value.flags)
    if all(r == 1 for r in rows):
        return Fact(Logits.LAST, (*places, *(cuts or made)), flags=value.flags)
    example = q.value.reason if q is not None and isinstance(q.value, Tensor) else None
    if q is not None and example is not None:
        reason, where = why(example, d.site)
        return Fact.unknown(f"the shape of `{q.name}` is not known: {reason}", *where, *places, flags=value.flags)
    left = ", ".join(map(str, rows))
    return Fact.unknown(f"the output keeps [{left}] rows of a query of q", *places, *cuts, *made, flags=value.flags)
