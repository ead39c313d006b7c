"""The query: which input it is, along which axis it grows, and what it holds."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.graph_facts.declaration import Declaration, Declared
from auditor.graph_facts.evidence import evidence, why
from auditor.places import Site
from auditor.roles import is_cache_name, is_logits_name, is_recurrent_beside, query_rank, words
from auditor.values import NONE, Const, Instance, Tensor, Union, Unknown, Value, merge_flags, text_of
from rules.facts import Fact, Query


def query_among(others: Sequence[Declared]) -> Declared | None:
    """The input that is most like a query, by its name; None when none is."""
    ranked = sorted((query_rank(i.name), n, i) for n, i in enumerate(others) if not is_cache_name(i.name))
    tensors = [i for r, _, i in ranked if r < 1000 and not isinstance(i.value, Const)]
    if not tensors or is_recurrent_beside(tensors[0].name, [i.name for _, _, i in ranked if i is not tensors[0]]):
        return None
    return tensors[0]


def query_axis(i: Declared) -> int:
    """The axis of the positions: `[q]`, `[1, q]`, `[1, q, width]`, of embeddings `[q, width]`, or behind the channels.

    `[1, width, 1, q]` is how convolutions have it; else, of `[1, width, q]` or `[1, width, q, 1]`, what varies tells.
    So it does of queries that are split into heads, `[1, heads, q, width]`; where nothing varies, their name tells.
    """
    shape = (i.value.shape if isinstance(i.value, Tensor) else None) or (1, 1)
    vary = i.varying
    if len(shape) == 4 and not {1, 3} & vary and (2 in vary or (shape[1] != 1 and _is_split(i))):
        return 2
    if len(shape) == 4 and shape[2] == 1 and shape[1] != 1 and 1 not in vary:
        return 3
    if len(shape) == 3 and 2 in vary and 1 not in vary:
        return 2
    if len(shape) == 2 and 1 not in vary and _are_embeddings(i):
        return 0
    return 0 if len(shape) == 1 else 1


def _is_split(i: Declared) -> bool:
    """Whether an input is by its name what attention takes as queries: these have heads."""
    return bool(set(words(i.name)) & {"q", "query", "queries"})


def _are_embeddings(i: Declared) -> bool:
    """Whether an input is hidden states or embeddings by its type and its name."""
    numbers = isinstance(i.value, Tensor) and not i.value.dtype.startswith(("int", "uint"))
    return numbers and bool(set(words(i.name)) & {"hidden", "embed", "embeds", "embedding", "embeddings"})


def query_fact(d: Declaration, q: Declared | None) -> Fact[Query]:
    """The width of the query `q`: fixed, one of several, or dynamic."""
    if q is None:
        if d.more is not None:
            reason, places = why(d.more, d.site)
            return Fact.unknown(reason, *places)
        return Fact.unknown("no input looks like a query of tokens or embeddings", d.site.place("export call"))
    axis = query_axis(q)
    found = q.axes.get(axis) if q.axes is not None else None
    if q.axes is None or (found is not None and found.unread):
        source = found.source if found is not None and isinstance(found.source, (Unknown, Union)) else q.source
        cause = (
            source
            if isinstance(source, Unknown)
            else Unknown(f"the dynamic shapes of `{q.name}` are not known{_decided_by(source)}", places=_places(source))
        )
        reason, places = why(cause, d.site)
        return Fact.unknown(reason, *places, flags=merge_flags([v for v in (q.source, source) if v is not None]))
    flags = merge_flags([v for v in (q.source, found.source if found else None) if v is not None])
    flags |= q.value.flags_of(axis) if isinstance(q.value, Tensor) else q.value.flags
    places = evidence(d.site, q.source, found.source if found else None, q.value)
    if found is not None and found.dynamic:
        if is_hint(found.source) and isinstance(q.value, Tensor) and q.value.shape and q.value.shape[axis] == 1:
            return Fact(Query(False, (1,)), places, flags=flags)  # `Dim.AUTO` leaves what is 1 in the example at 1
        return Fact(Query(True), places, flags=flags)
    if found is not None and found.widths:
        return Fact(Query(False, found.widths), places, flags=flags)
    if isinstance(q.value, Tensor) and q.value.shape is not None and axis < len(q.value.shape):
        width = q.value.shape[axis]
        if isinstance(width, int):
            return Fact(Query(False, (width,)), places, flags=flags)
        return Fact.unknown(
            f"`{q.name}` is fixed at a width ({width}) that is known at run time only", *places, flags=flags
        )
    end = q.value.reason if isinstance(q.value, Tensor) else q.value if isinstance(q.value, Unknown) else None
    reason = end.reason if end is not None else f"the example shape of `{q.name}` is not known"
    more = tuple(p.place() for p in end.places) if end is not None else ()
    return Fact.unknown(
        f"`{q.name}` is fixed at its example width, which is not known: {reason}", *places, *more, flags=flags
    )


def is_hint(v: Value | None) -> bool:
    """Whether a dimension is `Dim.AUTO`: the converter decides."""
    return isinstance(v, Instance) and text_of(v.attrs.get("name", NONE)) == "AUTO"


def _places(v: Value | None) -> tuple[Site, ...]:
    return v.places if v is not None else ()


def _decided_by(v: Value | None) -> str:
    """What decides which of several values it is."""
    return f": {v.cause.reason}" if isinstance(v, Union) and v.cause is not None else ""


def fixed_width(q: Declared | None) -> int | None:
    """The one width that the query is pinned to; None where it has several or is not known."""
    if q is None or q.axes is None or not isinstance(q.value, Tensor) or q.value.shape is None:
        return None
    axis = query_axis(q)
    width = q.value.shape[axis] if axis not in q.axes and axis < len(q.value.shape) else None
    return width if isinstance(width, int) else None


def has_one_row(q: Declared | None) -> bool:
    """Whether the query is pinned to one row, so that there is no other that it could be mixed with."""
    return fixed_width(q) == 1


def may_be_ids(q: Declared) -> bool:
    """Whether the query may be token ids, by its type or its name."""
    numbers = isinstance(q.value, Tensor) and q.value.dtype.startswith(("float", "bfloat"))
    return not numbers or bool(set(words(q.name)) & {"ids", "id", "token", "tokens"})


def is_vector(q: Declared) -> bool:
    """Whether the query is a plain vector of numbers by its type, shape and name: neither tokens nor embeddings."""
    v = q.value
    plain = isinstance(v, Tensor) and v.shape is not None and len(v.shape) <= 2 and v.dtype.startswith("float")
    return plain and query_rank(q.name) == 500


def reads_tokens(q: Declared | None) -> bool:
    """Whether the query is surely token ids or their embeddings."""
    if q is None:
        return False
    if isinstance(q.value, Tensor) and q.value.dtype.startswith("int"):
        return True
    return bool(set(words(q.name)) & {"ids", "token", "tokens", "embeds", "embedding", "embeddings"})


def ends_a_model(q: Declared | None, outputs: Sequence[str]) -> bool:
    """Whether this is by its names the last part of a model of tokens: hidden states in, logits out."""
    return q is not None and "hidden" in words(q.name) and any(map(is_logits_name, outputs))


def is_inner_part(q: Declared | None, outputs: Sequence[str]) -> bool:
    """Whether this is by its names a part of a model of tokens that steps one by one: hidden states in and out."""
    hidden = q is not None and "hidden" in words(q.name) and any("hidden" in words(name) for name in outputs)
    return hidden and has_one_row(q)


def says_nothing(q: Declared) -> bool:
    """Whether neither a name nor a type says what the query is: it has the number of its place for a name."""
    typed = isinstance(q.value, Tensor) and q.value.dtype
    return not typed and q.name.startswith("arg") and q.name[3:].isdigit()


def takes_tokens(q: Declared | None) -> bool:
    """Whether the query is token ids or their embeddings, by its type or its name."""
    if q is None:
        return False
    if isinstance(q.value, Tensor) and q.value.dtype.startswith(("int", "uint")):
        return True
    return bool(
        set(words(q.name))
        & {"ids", "id", "token", "tokens", "embeds", "embed", "embedding", "embeddings", "hidden", "x"}
    )
