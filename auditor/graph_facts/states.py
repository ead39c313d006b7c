"""The states: declared, written by `forward`, or carried through the outputs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from auditor.forward import Outcome
from auditor.graph_facts.carried import by_outputs, comes_out_anew, through_outputs
from auditor.graph_facts.declaration import WRITTEN, Declaration, Declared
from auditor.graph_facts.evidence import apart, evidence, why
from auditor.graph_facts.holders import may_hold_state
from auditor.graph_facts.uses import replaced
from auditor.roles import cache_names, is_cache_name, query_rank, role_by_name, said_role, words
from auditor.torch import layer_slots
from auditor.torch.state_writes import Write
from auditor.values import Storage, Tensor, Unknown, Value, merge_flags
from auditor.values.tags import FROM
from rules.facts import Fact, Place, Role, State


def bound_inputs(d: Declaration) -> dict[str, str]:
    """Input name -> state name: by name where each is an input's, else in order to the inputs behind the named ones."""
    names = d.state_names
    if not isinstance(names, tuple) or not names:
        return {}
    inputs = [i.name for i in d.inputs]
    if set(names) <= set(inputs):
        return {n: n for n in names}
    if d.input_names is not None and len(inputs) - len(d.input_names) == len(names):
        return dict(zip(inputs[len(d.input_names) :], names, strict=True))
    if d.input_names is not None and len(inputs) == len(d.input_names):
        return {n: n for n in inputs if n in names}  # all that goes in has a name of its own
    listed = set(d.input_names or ())
    rest = [n for n in inputs if n not in listed]
    if len(rest) == len(names):
        return dict(zip(rest, names, strict=True))
    cached = [n for n in rest if role_by_name(n) is not Role.UNKNOWN and query_rank(n) >= 100]
    if len(cached) == len(names):
        return dict(zip(cached, names, strict=True))
    return {n: n for n in inputs if n in names}


def is_recurrent(d: Declaration, recurrent: dict[str, Role], outcome: Outcome) -> bool:
    """Whether a state is said to be there for what one row takes from those before it, beside attention."""
    names = d.state_names if isinstance(d.state_names, tuple) else ()
    roles = {role_by_name(n) for n in (*names, *(w.storage.name for w in outcome.events.writes))}
    return bool(outcome.events.renewed) or not roles.union(recurrent.values()).isdisjoint((Role.CONV, Role.RECURRENT))


def states_fact(
    d: Declaration,
    bound: dict[str, str],
    recurrent: dict[str, Role],
    outcome: Outcome,
    width: int | None,
    placeless: bool,
) -> Fact[tuple[State, ...]]:
    """All states, with their roles; `bound` are the inputs of declared ones, `recurrent` those that come out again.

    `width` is that of a query that has one fixed width. `placeless`: nothing that goes in says at which position the
    token stands (see `carries_only`).
    """
    written: dict[str, Storage] = {}
    for w in outcome.events.writes:
        written.setdefault(w.storage.name, w.storage)
    names = d.state_names
    missing: tuple[State, ...] = ()
    if isinstance(names, Unknown) and names.name == WRITTEN and written:
        missing = _perhaps_more(d, names, outcome)
        names = None
    if isinstance(names, Unknown):
        reason, places = why(names, d.site)
        reason = f"the state names: {reason}"
        kept = [_declared_or_not(d, i, recurrent[i.name]) for i in d.inputs if recurrent.get(i.name) in _NO_CACHE]
        if kept:  # whatever the others hold
            return Fact((*kept, State("*", Role.UNKNOWN, tuple(places), reason)), tuple(places))
        return Fact.unknown(reason, *places, flags=names.flags)
    by_input = {s: i for i, s in bound.items()}
    if names is None:
        names = tuple(n for n, s in written.items() if s.role in ("input", "buffer") and not _comes_out(d, n))
        by_input = {n: n for n in names}
        if not names and outcome.reason is not None and may_hold_state(d.module):
            reason, places = why(outcome.reason, d.site)
            return Fact.unknown(f"the states of a module that was not followed: {reason}", *places)
    declared = {i.name: i for i in d.inputs}
    states = []
    for name in names:
        source = declared.get(by_input.get(name, ""))
        state = _state(d, name, source, outcome, width)
        told = recurrent.get(name, Role.UNKNOWN) if state.role is Role.UNKNOWN else Role.UNKNOWN
        states.append(state if told is Role.UNKNOWN else replace(state, role=told, reason=""))
    bound_to = [declared[i] for i in (*by_input.values(), *recurrent) if i in declared]
    known = {i.parameter or i.name for i in bound_to} | {s for n in names for s in (n, _buffer(n))}
    lasting = _LASTING if d.core_ml and d.traced is not None else _WRITABLE  # Core ML keeps no input that is traced
    left_out = {n for n, s in written.items() if s.role == "attribute" and lasting is _LASTING}
    undeclared = [
        s
        for n, s in written.items()
        if (n not in known or n in left_out) and s.role in lasting and not _comes_out(d, n)
    ]
    left = [n for n in names if n not in by_input and n not in written and _buffer(n) not in written]
    if len(undeclared) > len(left) or left_out:
        states += [_undeclared(d, s, outcome) for s in undeclared]
    states += through_outputs(d, outcome, {*by_input.values(), *recurrent}, width, placeless)
    for n, role in recurrent.items():
        if role is Role.UNKNOWN and comes_out_anew(declared[n], outcome):
            role = Role.RECURRENT
        if n not in by_input.values() and n not in {s.name for s in states}:
            states.append(by_outputs(d, declared[n], role))
    flags = merge_flags([v for v in (d.state_source,) if v is not None])
    return Fact((*states, *missing), evidence(d.site, d.state_source), flags=flags)


def _declared_or_not(d: Declaration, i: Declared, role: Role) -> State:
    """The state that an input is which is called a recurrent one, where nobody knows which states are declared."""
    return replace(by_outputs(d, i, role), reason=f"`{i.name}` goes in, as a declared state or as an ordinary tensor")


def _perhaps_more(d: Declaration, names: Unknown, outcome: Outcome) -> tuple[State, ...]:
    """What stands for the states that a part of `forward` writes which nobody can read."""
    lost = [(v.reason or names) if isinstance(v, Tensor) else v for _, v in outcome.outputs if not _followed(v)]
    unread = outcome.reason or outcome.events.hidden_cache or next(iter(lost), None)
    if unread is None:
        return ()
    reason, places = why(unread if isinstance(unread, Unknown) else names, d.site)
    return (State("*", Role.UNKNOWN, tuple(places), reason),)


def _followed(v: Value) -> bool:
    return isinstance(v, Tensor) and v.shape is not None


_NO_CACHE = (Role.CONV, Role.RECURRENT)


def _buffer(state: str) -> str:
    """The buffer that a state by its qualified name is: `model.layers.0.k_cache`."""
    return state.rpartition(".")[2]


def _comes_out(d: Declaration, name: str) -> bool:
    """Whether a cache is named among the inputs, and one comes out: it is no state then, whatever is written to it."""
    return name in (d.input_names or ()) and is_cache_name(name) and bool(cache_names(d.output_names or ()))


_LASTING = ("buffer", "attribute", "parameter")
_WRITABLE = ("input", *_LASTING)


def _undeclared(d: Declaration, storage: Storage, outcome: Outcome) -> State:
    """A buffer or input that `forward` writes and that no declared state name is left for."""
    write = next(w for w in outcome.events.writes if w.storage is storage or w.storage.name == storage.name)
    role = role_by_name(storage.name)
    role = Role.UNKNOWN if role.is_kv else role
    plain = storage.role == "attribute" and d.core_ml and d.traced is not None
    what = "no registered buffer, of which alone Core ML makes a state" if plain else "no declared state"
    return State(
        storage.name,
        role,
        (d.site.place("export call"), write.site.place()),
        f"`{storage.name}` {write.unclear or 'is written'} and is {what}",
    )


def _state(d: Declaration, name: str, source: Declared | None, outcome: Outcome, width: int | None) -> State:
    role, reason = _by_name(d, name, source)
    mine = {name, source.name, source.parameter} if source is not None else {name, _buffer(name)}
    writes = [w for w in outcome.events.writes if w.storage.name in mine]
    at: tuple[Place, ...] = ()
    places = evidence(d.site, d.state_source, source.value if source is not None else None)
    anew = next((site for n, site in outcome.events.renewed.items() if n in mine), None)
    narrow = next((w for w in writes if w.narrow), None)
    if anew is not None and (role is Role.UNKNOWN or role.is_kv):
        role, reason = Role.RECURRENT, f"`{name}` is computed anew from what it held ({anew.place()})"
    elif role is Role.UNKNOWN and (told := replaced(name, writes, outcome)) is not None:
        (role, reason), at = told, _written(writes[-1])
    elif role.is_kv and (doubt := next(_doubts(name, mine, writes, outcome), None)) is not None:
        role, (reason, at) = Role.UNKNOWN, doubt
    elif role.is_kv and narrow is not None:
        reason, at = f"`{name}` {narrow.narrow} ({narrow.site.place()})", _written(narrow)
        role = Role.UNKNOWN if width is None or (narrow.spread and width > 1) else role
    elif role.is_kv and writes and said_role(name) is Role.UNKNOWN:
        at = (writes[0].site.place("takes rows of the query"),)
    if anew is not None:
        places = (anew.place("computed anew from what it held"), *places)
    return State(name, role, (*apart(places, at), *at), reason, _shape(source))


def _by_name(d: Declaration, name: str, source: Declared | None) -> tuple[Role, str]:
    """The role that the names of a state and of its input say, or that a growing shape does; else why there is none."""
    role = role_by_name(name)
    if role is Role.UNKNOWN and source is not None:
        role = role_by_name(source.name)
    if role is Role.UNKNOWN and source is not None and source.varying:
        role = Role.KV_UNIFIED
    if role is Role.KV_UNIFIED and _latent(d, name):
        role = Role.MLA_LATENT
    unsaid = f"neither the name `{name}` nor its shape says what the state holds"
    return role, unsaid if role is Role.UNKNOWN else ""


def _shape(source: Declared | None) -> tuple[str, ...]:
    """The sizes of a state, -1 where one is dynamic; empty when they are not known."""
    if source is None or not isinstance(source.value, Tensor) or source.value.shape is None:
        return ()
    axes = source.axes or {}
    return tuple("-1" if n in axes and axes[n].dynamic else str(s) for n, s in enumerate(source.value.shape))


def _doubts(
    name: str, mine: Collection[str | None], writes: Sequence[Write], outcome: Outcome
) -> Iterator[tuple[str, tuple[Place, ...]]]:
    """Why a state that is named like a cache may be none, with the places of the writes that say so."""
    hidden = outcome.events.hidden_cache
    if hidden is not None and not writes:
        where = f" ({hidden.places[0].place()})" if hidden.places else ""
        yield f"nothing is seen to write `{name}`, and {hidden.reason}{where}", ()
    copied = next((site for n in mine if n and (site := outcome.events.copied.get(FROM + n)) is not None), None)
    if copied is not None and not writes:
        yield f"a copy of `{name}` is written, and not the state ({copied.place()})", ()
    twice = layer_slots.twice(writes, frozenset(outcome.events.reading))
    if twice is not None:
        yield (
            f"rows of `{name}` are written again by another layer or statement ({twice.site.place()})",
            _written(twice),
        )
    early = layer_slots.early([r for r in outcome.events.looked if r.storage.name in mine], outcome.events.writes)
    if early is not None:
        what = f"attention sees rows of `{name}` that are written later in the same call"
        yield f"{what} ({early.site.place()})", (early.site.place("seen here"),)
    moved = next((w for w in writes if w.whole and w.own), None)
    if moved is not None:
        yield f"`{name}` is written as a whole from itself ({moved.site.place()}): its rows may move", _written(moved)
    fresh = next((w for w in writes if w.fresh), None)
    if fresh is not None:
        yield f"all of `{name}` is replaced by what one call computes ({fresh.site.place()})", _written(fresh)
    for write in (next((w for w in writes if w.unclear), None), next((w for w in writes if w.blended), None)):
        if write is not None:
            yield f"`{name}` {write.unclear or write.blended} ({write.site.place()})", _written(write)


def _written(write: Write) -> tuple[Place, ...]:
    """The places that say what is wrong with a write: its own, and what was made of the rows or the position."""
    made = dict.fromkeys(s.place() for s in write.made)
    own = write.site.place("written here")
    return (*apart(made, (own,)), own)


def _latent(d: Declaration, name: str) -> bool:
    """A pair of unified states (A and B halves) of one rank is a split latent, not keys and values."""
    if not isinstance(d.state_names, tuple):
        return False
    alike = [n for n in d.state_names if said_role(n) is Role.KV_UNIFIED]
    return len(alike) == 2 and set(words(name)) & {"a", "b"} != set()
