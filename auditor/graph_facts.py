"""From an export call to the facts of its graph: states, query, logits, and what else a rule reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Mapping as AbcMapping
from dataclasses import dataclass, replace
from typing import TypeVar

from auditor import dims
from auditor.forward import Input, Outcome, evaluate, named_outputs, query_dim, symbolic
from auditor.interpreter import Interpreter
from auditor.objects import class_lookup, mro
from auditor.places import Site
from auditor.ranks import unpacked_rank
from auditor.roles import (
    LOGIT_NAMES,
    cache_names,
    carried,
    encoder_name,
    is_cache_name,
    is_logits_name,
    is_state_name,
    no_logits_name,
    query_rank,
    recurrent_inputs,
    role_by_name,
    words,
)
from auditor.torch.layers import EMBEDDING, attribute
from auditor.torch.modules import walk
from auditor.torch.rows import NOT_THE_QUERYS
from auditor.values import (
    NONE,
    Class,
    Const,
    Function,
    Instance,
    Mapping,
    Seq,
    Storage,
    Tensor,
    Union,
    Unknown,
    Value,
    merge_flags,
    text_of,
)
from rules.facts import Fact, GraphFacts, Kind, Kv, Logits, Mark, Place, Query, Role, State, Trait

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Dimension:
    """What an input's declaration says of one axis: a range, or a fixed size (None when it is not known)."""

    dynamic: bool
    size: int | None = None
    widths: tuple[int, ...] = ()
    label: str = ""
    source: Value | None = None


@dataclass(frozen=True, slots=True)
class Declared:
    """One declared input: its axes that are not fixed (None when that is not known), and the example value.

    `parameter` is the parameter of `forward` that it is bound to, when that has another name.
    """

    name: str
    value: Value
    axes: dict[int, Dimension] | None
    source: Value | None = None
    parameter: str = ""


@dataclass(frozen=True, slots=True)
class Declaration:
    """An export call, as its framework reads it.

    `state_names` is None when the call names none (states are then what `forward` writes), an `Unknown` when they are
    not known. `input_names` are the names of the inputs that are no states, when given. `traced` holds the example
    inputs of `torch.jit.trace` by parameter, as far as they are known; None when the module is not traced.
    """

    module: Value
    inputs: tuple[Declared, ...]
    input_names: tuple[str, ...] | None
    output_names: tuple[str, ...] | None
    state_names: tuple[str, ...] | Unknown | None
    state_source: Value | None
    more: Unknown | None
    site: Site
    input_source: Value | None = None
    core_ml: bool = False
    traced: AbcMapping[str, Value] | None = None
    output_source: Value | None = None


def names_of(value: Value | None) -> tuple[str, ...] | Unknown | None:
    """A sequence of names: None when it is not given, an `Unknown` when it is not known."""
    if value is None or (isinstance(value, Const) and value.value is None):
        return None
    if isinstance(value, Union):
        found = [names_of(o) for o in value.options]
        if all(f == found[0] for f in found):
            return found[0]
        return Unknown("the names are one of several", places=value.places, flags=value.flags)
    if isinstance(value, Seq):
        if value.rest is not None:
            return value.rest
        out: list[str] = []
        for i in value.items:
            for one in getattr(i, "items", (i,)) if type(i).__name__ == "Star" else (i,):
                text = text_of(one)
                if text is None:
                    return Unknown("a name that is not known", places=one.places or value.places)
                out.append(text)
        return tuple(out)
    if isinstance(value, Unknown):
        return value
    return Unknown("the names are not known", places=value.places)


def evidence(site: Site, *values: Value | None, notes: Sequence[str] = ()) -> tuple[Place, ...]:
    """The places from the export call back to what decides a value."""
    out = [site.place("export call")]
    for v in values:
        if v is not None:
            out += [p.place() for p in v.places]
    seen: dict[tuple[str, int], Place] = {}
    for p in out:
        seen.setdefault((p.path, p.line), p)
    return tuple(seen.values())


def why(reason: Unknown, site: Site) -> tuple[str, tuple[Place, ...]]:
    places = tuple(p.place() for p in reason.places) or (site.place("export call"),)
    return reason.reason, (site.place("export call"), *(p for p in places if p != site.place("export call")))


def compute(it: Interpreter, d: Declaration) -> GraphFacts:
    """All facts of one exported graph."""
    d = _ranked(d)
    state_inputs = _state_inputs(d)
    others = [i for i in d.inputs if i.name not in state_inputs]
    if not others and d.more is not None:  # a program that nobody read: the names that the converter gives are all
        others = [Declared(n, d.more, None, d.more) for n in d.input_names or ()]
    query_input = _query_input(others)
    query = _query(d, query_input)
    recurrent = recurrent_inputs([(i.name, i.value) for i in others if i is not query_input])
    recurrent |= _carried(d, others, query_input)
    if not _reads_tokens(query_input):
        recurrent = {}  # what a network of frames or samples carries along makes it no decoder
    if not d.state_names and not recurrent and not _may_hold_state(d.module):
        # no states and no cache: nothing that `forward` computes can make this a decoder
        states: Fact[tuple[State, ...]] = Fact((), evidence(d.site, d.state_source))
        kv = _kv(d, states, others)
        if kv.value is Kv.NONE:
            skipped = Fact[Logits].unknown(
                "not looked at: the graph has no state and no cache", d.site.place("export call")
            )
            return GraphFacts(_kind(d, states, kv, query_input), states, query, skipped, kv)
    outcome, concrete = _run(it, d, query_input)
    states = _states(it, d, state_inputs, recurrent, outcome)
    kv = _kv(d, states, others)
    logits = _logits(it, d, outcome, query_input, concrete)
    kind = _kind(d, states, kv, query_input)
    if kv.value is Kv.IO and _gives_one_output(d, outcome):
        kind = Fact(Kind.OTHER, kv.evidence)  # a cache that is read and does not come out again carries nothing on
    marks = (*_marks(outcome, states, query), *_flexibility(d, states), *_unwritten(d, states, state_inputs, outcome))
    return GraphFacts(kind, states, query, logits, kv, (*marks, *_workload(it, d)))


def _ranked(d: Declaration) -> Declaration:
    """The declaration with as much of an unknown example's shape as `forward` says: its number of axes."""
    unshaped = [i for i in d.inputs if isinstance(i.value, Tensor) and i.value.shape is None]
    function = _forward_of(d) if unshaped else None
    if function is None:
        return d
    inputs = list(d.inputs)
    for i in unshaped:
        rank = unpacked_rank(function, i.parameter or i.name)
        if rank is not None and isinstance(i.value, Tensor):
            shape = tuple(dims.symbol(dims.Atom(f"{i.name}.shape[{axis}]")) for axis in range(rank))
            inputs[inputs.index(i)] = replace(i, value=replace(i.value, shape=shape, reason=None))
    return replace(d, inputs=tuple(inputs))


def _forward_of(d: Declaration) -> Function | None:
    """The `forward` of the exported module, when it is a function of the sources."""
    if not isinstance(d.module, Instance):
        return None
    found, _ = class_lookup(d.module.cls, "forward")
    return found if isinstance(found, Function) and found.wrapped is None and "forward" not in d.module.attrs else None


def _flexibility(d: Declaration, states: Fact[tuple[State, ...]]) -> list[Mark]:
    """Shapes that Core ML refuses at load, or takes index by index."""
    if not d.core_ml:
        return []
    enumerated = [i for i in d.inputs if any(x.widths for x in (i.axes or {}).values())]
    ranged = [i for i in d.inputs if any(x.dynamic for x in (i.axes or {}).values())]
    fixed = [i for i in d.inputs if i.axes == {}]
    out = []
    if enumerated and ranged:
        names = f"`{enumerated[0].name}` is enumerated and `{ranged[0].name}` has a range"
        out.append(Mark(Trait.MIXED_FLEXIBILITY, names, evidence(d.site, enumerated[0].source, ranged[0].source)))
    elif ranged and fixed and states.value:
        names = f"`{ranged[0].name}` has a range and `{fixed[0].name}` is fixed, with states"
        out.append(Mark(Trait.MIXED_FLEXIBILITY, names, evidence(d.site, ranged[0].source, fixed[0].source)))
    if len(enumerated) > 1:
        names = ", ".join(f"`{i.name}`" for i in enumerated)
        out.append(Mark(Trait.INDEX_ALIGNED, names, evidence(d.site, *(i.source for i in enumerated))))
    return out


def _unwritten(d: Declaration, states: Fact[tuple[State, ...]], bound: dict[str, str], outcome: Outcome) -> list[Mark]:
    """Declared states that `forward` was followed through and never writes."""
    if outcome.reason is not None or not outcome.outputs or states.value is None:
        return []
    parameters = {i.name: i.parameter or i.name for i in d.inputs}
    written = {w.storage.name for w in outcome.events.writes}
    inputs = {state: parameters[name] for name, state in bound.items()}
    idle = [s for s in states.value if inputs.get(s.name, s.name) not in written and s.name in inputs]
    return [Mark(Trait.UNWRITTEN_STATE, f"`{s.name}` is never written", s.evidence) for s in idle[:1]]


_WORKLOADS = {"asr", "ocr", "tts", "speech", "whisper", "transcribe", "transcription", "voice", "audio"}


def _workload(it: Interpreter, d: Declaration) -> list[Mark]:
    """Outputs that do not repeat the prompt, by the names of the script and of the model class."""
    script = it.stack[0].path if it.stack else d.site.path
    family = d.module.cls.name if isinstance(d.module, Instance) and isinstance(d.module.cls, Class) else ""
    said = (set(words(script)) | set(words(family))) & _WORKLOADS
    return [Mark(Trait.WORKLOAD, ", ".join(sorted(said)), (d.site.place("export call"),))] if said else []


def merged(worlds: Sequence[GraphFacts], site: Site, chosen_by: Sequence[Value] = ()) -> GraphFacts:
    """The facts of a graph that is one of several: what all agree on is known, the rest is not.

    `chosen_by` are the values of a checkpoint's configuration that looked something up on the way.
    """
    first, *others = worlds
    keys = sorted({v.name for v in chosen_by if isinstance(v, Unknown) and v.name})
    chooser = f": {', '.join(keys)} decides (give the config.json with --checkpoints)" if keys else ""
    for other in others:
        same = {s.name: s.role for s in first.states.value or ()} == {s.name: s.role for s in other.states.value or ()}
        first = GraphFacts(
            _agreed(first.kind, other.kind, site, chooser),
            first.states
            if same and first.states.value is not None
            else _agreed(first.states, other.states, site, chooser),
            _agreed(first.query, other.query, site, chooser),
            _agreed(first.logits, other.logits, site, chooser),
            _agreed(first.kv, other.kv, site, chooser),
            tuple({m.trait: m for m in (*first.marks, *other.marks)}.values()),
        )
    cited = tuple(
        dict.fromkeys(
            p.place("the checkpoint says") for v in chosen_by for p in v.places if p.path.endswith("config.json")
        )
    )
    return replace(first, logits=replace(first.logits, evidence=(*first.logits.evidence, *cited))) if cited else first


def _agreed(a: Fact[T], b: Fact[T], site: Site, chooser: str) -> Fact[T]:
    if a.value is None or b.value is None:
        return a if a.value is None else b
    if a.value == b.value:
        return a
    places = tuple(dict.fromkeys((site.place("export call"), *a.evidence[1:], *b.evidence[1:])))
    reason = f"the exported module is one of several, and they differ in this{chooser}"
    return Fact.unknown(reason, *places, flags=a.flags | b.flags)


def _may_hold_state(module: Value) -> bool:
    """Whether a buffer of the module is named like a state: such buffers become states when `forward` writes them."""
    if not isinstance(module, Instance):
        return False
    for _, m in walk(module):
        for name, v in m.attrs.items():
            if isinstance(v, Tensor) and v.base is not None and v.base.role == "buffer" and is_state_name(name):
                return True
    return False


# -- states -----------------------------------------------------------------------------------------------------


def _state_inputs(d: Declaration) -> dict[str, str]:
    """Input name -> state name. States are bound to the inputs behind the named ones, in order, else by name."""
    names = d.state_names
    if not isinstance(names, tuple) or not names:
        return {}
    inputs = [i.name for i in d.inputs]
    if d.input_names is not None and len(inputs) - len(d.input_names) == len(names):
        return dict(zip(inputs[len(d.input_names) :], names, strict=True))
    listed = set(d.input_names or ())
    rest = [n for n in inputs if n not in listed]
    if len(rest) == len(names):
        return dict(zip(rest, names, strict=True))
    cached = [n for n in rest if role_by_name(n) is not Role.UNKNOWN and query_rank(n) >= 100]
    if len(cached) == len(names):
        return dict(zip(cached, names, strict=True))
    return {n: n for n in inputs if n in names}


def _comes_out(d: Declaration, name: str) -> bool:
    """Whether a cache is named among the inputs, and one comes out: it is no state then, whatever is written to it."""
    return name in (d.input_names or ()) and is_cache_name(name) and bool(cache_names(d.output_names or ()))


_WRITABLE = ("input", "buffer", "attribute", "parameter")


def _states(
    it: Interpreter, d: Declaration, bound: dict[str, str], recurrent: dict[str, Role], outcome: Outcome
) -> Fact[tuple[State, ...]]:
    if isinstance(d.state_names, Unknown):
        reason, places = why(d.state_names, d.site)
        return Fact.unknown(f"the state names: {reason}", *places, flags=d.state_names.flags)
    by_input = {s: i for i, s in bound.items()}
    written: dict[str, Storage] = {}
    for w in outcome.events.writes:
        written.setdefault(w.storage.name, w.storage)
    names = d.state_names
    if names is None:
        names = tuple(n for n, s in written.items() if s.role in ("input", "buffer") and not _comes_out(d, n))
        by_input = {n: n for n in names}
    declared = {i.name: i for i in d.inputs}
    states = []
    for name in names:
        source = declared.get(by_input.get(name, ""))
        states.append(_state(d, name, source, outcome))
    bound_to = [declared[i] for i in (*by_input.values(), *recurrent) if i in declared]
    known = {i.parameter or i.name for i in bound_to} | set(names)
    undeclared = [s for n, s in written.items() if n not in known and s.role in _WRITABLE and not _comes_out(d, n)]
    left = [n for n in names if n not in by_input and n not in written]
    if len(undeclared) > len(left):
        states += [_undeclared(d, s, outcome) for s in undeclared]
    states += _through_outputs(d, outcome, {*by_input.values(), *recurrent})
    for n, role in recurrent.items():
        if n not in by_input.values() and n not in {s.name for s in states}:
            value, reason = declared[n].value, f"`{n}` goes in and comes out as an ordinary tensor"
            shape = value.shape or () if isinstance(value, Tensor) else ()
            states.append(State(n, role, evidence(d.site, value), reason, tuple(map(str, shape))))
    flags = merge_flags([v for v in (d.state_source,) if v is not None])
    return Fact(tuple(states), evidence(d.site, d.state_source), flags=flags)


def _undeclared(d: Declaration, storage: Storage, outcome: Outcome) -> State:
    """A buffer or input that `forward` writes and that no declared state name is left for."""
    site = next(w.site for w in outcome.events.writes if w.storage is storage or w.storage.name == storage.name)
    role = role_by_name(storage.name)
    role = Role.UNKNOWN if role.is_kv else role
    return State(
        storage.name,
        role,
        (d.site.place("export call"), site.place()),
        f"`{storage.name}` is written and is no declared state",
    )


def _through_outputs(d: Declaration, outcome: Outcome, states: set[str]) -> list[State]:
    """Inputs of fixed shape that come out again computed from themselves: states by another way."""
    out = []
    for i in d.inputs:
        if (
            i.name in states
            or i.axes
            or is_cache_name(i.name)
            or not isinstance(i.value, Tensor)
            or i.value.shape is None
        ):
            continue
        tag = f"from:{i.parameter or i.name}"
        shape = i.value.shape
        if any(isinstance(v, Tensor) and tag in v.tags and v.shape == shape for _, v in outcome.outputs):
            role = role_by_name(i.name)
            role = role if role in (Role.CONV, Role.RECURRENT) else Role.UNKNOWN
            reason = f"the input `{i.name}` comes out again, computed from itself"
            out.append(State(i.name, role, evidence(d.site, i.value), reason, tuple(map(str, shape))))
    return out


def _state(d: Declaration, name: str, source: Declared | None, outcome: Outcome) -> State:
    role = role_by_name(name)
    if role in (Role.UNKNOWN, Role.KV_UNIFIED) and source is not None:
        other = role_by_name(source.name)
        role = other if other is not Role.UNKNOWN and role is Role.UNKNOWN else role
    dynamic = bool(source is not None and source.axes)
    shape: tuple[str, ...] = ()
    if source is not None and isinstance(source.value, Tensor) and source.value.shape is not None:
        axes = source.axes or {}
        shape = tuple("-1" if n in axes and axes[n].dynamic else str(s) for n, s in enumerate(source.value.shape))
    reason = ""
    if role is Role.UNKNOWN:
        if dynamic:
            role = Role.KV_UNIFIED
        else:
            reason = f"neither the name `{name}` nor its shape says what the state holds"
    if role is Role.KV_UNIFIED and _latent(d, name):
        role = Role.MLA_LATENT
    mine = {name, source.name, source.parameter} if source is not None else {name}
    moved = next((w for w in outcome.events.writes if w.storage.name in mine and w.whole and w.own), None)
    if moved is not None and role.is_kv:
        role, reason = (
            Role.UNKNOWN,
            f"`{name}` is written as a whole from itself ({moved.site.place()}): its rows may move",
        )
    unclear = next((w for w in outcome.events.writes if w.storage.name in mine and w.unclear), None)
    if unclear is not None and role.is_kv:
        role, reason = Role.UNKNOWN, f"`{name}` {unclear.unclear} ({unclear.site.place()})"
    places = evidence(d.site, d.state_source, source.value if source is not None else None)
    return State(name, role, places, reason, shape)


def _latent(d: Declaration, name: str) -> bool:
    """A pair of unified states (A and B halves) of one rank is a split latent, not keys and values."""
    if not isinstance(d.state_names, tuple):
        return False
    alike = [n for n in d.state_names if role_by_name(n) is Role.KV_UNIFIED]
    return len(alike) == 2 and set(words(name)) & {"a", "b"} != set()


# -- kind and kv ------------------------------------------------------------------------------------------------


def _carried(d: Declaration, others: Sequence[Declared], q: Declared | None) -> dict[str, Role]:
    """Inputs that come out again and are said to be a state, but no keys or values."""
    names = carried([i.name for i in others if i is not q], d.output_names or ())
    roles = {n: role_by_name(n) for n in names}
    states = {"state", "states", "cache"}
    return {
        n: r
        for n, r in roles.items()
        if r in (Role.CONV, Role.RECURRENT) or (r is Role.UNKNOWN and set(words(n)) & states)
    }


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


def _kv(d: Declaration, states: Fact[tuple[State, ...]], others: Sequence[Declared]) -> Fact[Kv]:
    if states.value is None:
        return Fact.unknown(states.reason, *states.evidence)
    if any(s.role.is_kv for s in states.value):
        return Fact(Kv.STATE, states.evidence)
    if d.more is not None and not states.value:
        reason, places = why(d.more, d.site)
        named = cache_names(d.input_names or ())
        out = cache_names(d.output_names or ())
        if d.input_names is None or (named and not out and len(d.output_names or ()) != 1):
            return Fact.unknown(reason, *places)
    caches = _cache_inputs(others, d.output_names or ())
    named = [n for n in d.input_names or () if is_cache_name(n)]
    if cache_names(d.output_names or ()):
        named = cache_names(d.input_names or ())  # a numbered pair is a cache when one comes out too
    if caches or named:
        return Fact(Kv.IO, evidence(d.site, *(c.value for c in caches[:1]), d.input_source))
    return Fact(Kv.NONE, (d.site.place("export call"),))


def _kind(d: Declaration, states: Fact[tuple[State, ...]], kv: Fact[Kv], q: Declared | None) -> Fact[Kind]:
    if states.value is None:
        return Fact.unknown(states.reason, *states.evidence)
    if (encoder := _encoder(d, q)) is not None and (states.value or kv.value is Kv.IO):
        return Fact(Kind.OTHER, (d.site.place("export call"), encoder))
    if states.value:
        if q is not None and _is_vector(q) and not any(s.role in (Role.CONV, Role.RECURRENT) for s in states.value):
            return Fact(Kind.OTHER, evidence(d.site, q.value))
        return Fact(Kind.DECODER, states.evidence)
    if kv.value is None:
        return Fact.unknown(kv.reason, *kv.evidence)
    if kv.value is Kv.IO and not _takes_tokens(q):
        return Fact(Kind.OTHER, kv.evidence)  # a streaming encoder: its cache is of frames, not of tokens
    return Fact(Kind.OTHER if kv.value is Kv.NONE else Kind.DECODER, kv.evidence)


def _encoder(d: Declaration, q: Declared | None) -> Place | None:
    """Where the graph is said to be an encoder with streaming caches: its class or an output has that name.

    It reads no token ids and names no logits. What goes in may be called embeddings: those of frames are, too.
    """
    classes = [c for c in mro(d.module.cls) if isinstance(c, Class)] if isinstance(d.module, Instance) else []
    said = encoder_name([*(d.output_names or ()), *(c.name for c in classes)])
    if said is None or q is None or d.output_names is None or _is_ids(q):
        return None
    site = next((c.site for c in classes if c.name == said), None)
    return site.place(f"the class is named `{said}`") if site else d.site.place(f"an output is named `{said}`")


def _is_ids(q: Declared) -> bool:
    """Whether the query may be token ids, by its type or its name."""
    numbers = isinstance(q.value, Tensor) and q.value.dtype.startswith(("float", "bfloat"))
    return not numbers or bool(set(words(q.name)) & {"ids", "id", "token", "tokens"})


def _gives_one_output(d: Declaration, outcome: Outcome) -> bool:
    """Whether the graph surely has one output, which is no cache."""
    names = d.output_names or tuple(name for name, _ in outcome.outputs)
    followed = outcome.reason is None and all(isinstance(v, Tensor) for _, v in outcome.outputs)
    return len(names) == 1 and not is_cache_name(names[0]) and (d.output_names is not None or followed)


def _is_vector(q: Declared) -> bool:
    """Whether the query is a plain vector of numbers by its type, shape and name: neither tokens nor embeddings."""
    v = q.value
    plain = isinstance(v, Tensor) and v.shape is not None and len(v.shape) <= 2 and v.dtype.startswith("float")
    return plain and query_rank(q.name) == 500


def _reads_tokens(q: Declared | None) -> bool:
    """Whether the query is surely token ids or their embeddings."""
    if q is None:
        return False
    if isinstance(q.value, Tensor) and q.value.dtype.startswith("int"):
        return True
    return bool(set(words(q.name)) & {"ids", "token", "tokens", "embeds", "embedding", "embeddings"})


def _takes_tokens(q: Declared | None) -> bool:
    """Whether the query is token ids or their embeddings, by its type or its name."""
    if q is None:
        return False
    if isinstance(q.value, Tensor) and q.value.dtype.startswith(("int", "uint")):
        return True
    return bool(
        set(words(q.name))
        & {"ids", "id", "token", "tokens", "embeds", "embed", "embedding", "embeddings", "hidden", "x"}
    )


# -- query ------------------------------------------------------------------------------------------------------


def _query_input(others: Sequence[Declared]) -> Declared | None:
    ranked = sorted((query_rank(i.name), n, i) for n, i in enumerate(others) if not is_cache_name(i.name))
    tensors = [i for r, _, i in ranked if r < 1000 and not isinstance(i.value, Const)]
    return tensors[0] if tensors else None


def query_axis(i: Declared) -> int:
    """The axis of the positions: `[q]`, `[1, q]`, `[1, q, width]`, or behind the channels.

    `[1, width, 1, q]` is how convolutions have it; of `[1, width, q]` the axis that varies tells.
    """
    shape = (i.value.shape if isinstance(i.value, Tensor) else None) or (1, 1)
    vary = i.axes or {}
    if len(shape) == 4 and shape[2] == 1 and shape[1] != 1 and 1 not in vary:
        return 3
    if len(shape) == 3 and 2 in vary and 1 not in vary:
        return 2
    return 0 if len(shape) == 1 else 1


def _is_hint(v: Value | None) -> bool:
    return isinstance(v, Instance) and text_of(v.attrs.get("name", NONE)) == "AUTO"


def _places(v: Value | None) -> tuple[Site, ...]:
    return v.places if v is not None else ()


def _decided_by(v: Value | None) -> str:
    """What decides which of several values it is."""
    return f": {v.cause.reason}" if isinstance(v, Union) and v.cause is not None else ""


def _query(d: Declaration, q: Declared | None) -> Fact[Query]:
    if q is None:
        if d.more is not None:
            reason, places = why(d.more, d.site)
            return Fact.unknown(reason, *places)
        return Fact.unknown("no input looks like a query of tokens or embeddings", d.site.place("export call"))
    axis = query_axis(q)
    if q.axes is None:
        cause = (
            q.source
            if isinstance(q.source, Unknown)
            else Unknown(
                f"the dynamic shapes of `{q.name}` are not known{_decided_by(q.source)}", places=_places(q.source)
            )
        )
        reason, places = why(cause, d.site)
        return Fact.unknown(reason, *places, flags=q.source.flags if q.source else frozenset())
    found = q.axes.get(axis)
    flags = merge_flags([v for v in (q.source, q.value, found.source if found else None) if v is not None])
    places = evidence(d.site, q.source, found.source if found else None, q.value)
    if found is not None and found.dynamic:
        if _is_hint(found.source) and isinstance(q.value, Tensor) and q.value.shape and q.value.shape[axis] == 1:
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


# -- logits -----------------------------------------------------------------------------------------------------


def _run(it: Interpreter, d: Declaration, q: Declared | None) -> tuple[Outcome, bool]:
    """`forward` on a symbolic query; on the declared width when the symbolic one cannot be followed (then True)."""
    inputs = _inputs(d, q, query_dim())
    outcome = evaluate(it, d.module, inputs, d.site, _example(d, inputs))
    if _followed(outcome) or q is None or not isinstance(q.value, Tensor) or q.value.shape is None:
        return outcome, False
    axis = query_axis(q)
    if q.axes is None or axis in q.axes or axis >= len(q.value.shape):
        return outcome, False
    if q.value.shape[axis] == 1:
        return outcome, False  # one row tells nothing about the rows of a longer query
    inputs = _inputs(d, q, q.value.shape[axis])
    second = evaluate(it, d.module, inputs, d.site, _example(d, inputs))
    return (second, True) if _followed(second) else (outcome, False)


def _followed(outcome: Outcome) -> bool:
    if outcome.reason is not None or not outcome.outputs:
        return False
    first = outcome.outputs[0][1]
    return isinstance(first, Tensor) and first.shape is not None and first.reason is None


def _inputs(d: Declaration, q: Declared | None, width: dims.Dim) -> tuple[Input, ...]:
    shared = (q.axes or {}).get(query_axis(q)) if q is not None else None
    out = []
    for n, i in enumerate(d.inputs):
        axes = {a: x.label for a, x in (i.axes or {}).items() if x.dynamic or x.widths}
        rows = {
            a
            for a, x in (i.axes or {}).items()
            if shared is not None and x.source is not None and _same_dimension(x, shared)
        }
        if i is q:
            rows.add(query_axis(i))
        traced = d.traced is not None
        name = i.parameter or i.name
        tensor = symbolic(i.value, rows, axes, name, width, traced=traced)
        out.append(Input(name, i.value, tensor, n))
    return tuple(out)


def _same_dimension(a: Dimension, b: Dimension) -> bool:
    """Whether two axes have one length: by one dimension, or by two of `torch.export` with one name."""
    return a.source is b.source or (a.label == b.label != "" and not _is_hint(a.source))


def _example(d: Declaration, inputs: Sequence[Input]) -> dict[dims.Atom, int] | None:
    """What the flexible dimensions were in the trace; one that two inputs tell differently is left out."""
    if d.traced is None:
        return None
    seen: dict[dims.Atom, set[int]] = {}
    for i in inputs:
        given = d.traced.get(i.name)
        shape = given.shape if isinstance(given, Tensor) else None
        for mine, theirs in zip((i.tensor.shape if i.tensor else None) or (), shape or (), strict=False):
            if isinstance(mine, dims.Poly) and isinstance(theirs, int):
                for atom in mine.atoms:
                    seen.setdefault(atom, set()).add(theirs)
    return {atom: found.pop() for atom, found in seen.items() if len(found) == 1}


_HIDDEN_NAMES = {"hidden", "embed", "embeds", "embeddings", "features", "feat", "latent", "states", "h", "out", "lm"}


def _logits(it: Interpreter, d: Declaration, outcome: Outcome, q: Declared | None, concrete: bool) -> Fact[Logits]:
    if outcome.reason is not None:
        reason, places = why(outcome.reason, d.site)
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
    return _logits_of(d, name, value, q, concrete, outcome)


def _logits_output(d: Declaration, outputs: Sequence[tuple[str, Value]], default: str = "") -> tuple[str, Value | None]:
    names = d.output_names or ()
    labelled = [(names[n] if n < len(names) else own or default, v) for n, (own, v) in enumerate(outputs)]
    for label, v in labelled:
        if is_logits_name(label):
            return label, v
    return labelled[0] if labelled else ("", None)


def _logits_of(
    d: Declaration, name: str, value: Value, q: Declared | None, concrete: bool, outcome: Outcome
) -> Fact[Logits]:
    flags = value.flags
    if not isinstance(value, Tensor):
        cause = value if isinstance(value, Unknown) else Unknown("an output that is no tensor", places=value.places)
        reason, places = why(cause, d.site)
        return _by_name(d) or Fact.unknown(reason, *places, flags=flags)
    places = evidence(d.site, value)
    if value.tags & {"argmax", "topk"} or (value.dtype.startswith(("int", "uint")) and value.shape is not None):
        return Fact(Logits.NONE, places, flags=flags)
    if value.reason is not None or value.shape is None:
        cause = value.reason or Unknown("the shape of the output is not known", places=value.places)
        reason, where = why(cause, d.site)
        return _by_name(d) or Fact.unknown(reason, *where, flags=flags)
    if not value.shape:
        return Fact(Logits.NONE, places, flags=flags)
    value = replace(value, shape=_channels_last(value.shape))
    assert value.shape is not None
    split = sum(bool(set(words(n)) & LOGIT_NAMES) for n in d.output_names or ()) > 1  # the vocabulary in parts
    token = _of_embeddings(d.module, value.shape[-1]) if not split else None
    is_logits = token if token is False or (token and not words(name)) else _is_logits(name, value, q)
    if is_logits is None:
        return Fact.unknown(
            f"whether the output `{name or 'of forward'}` of width {value.shape[-1]} holds logits or hidden states",
            *places,
            flags=flags,
        )
    if not is_logits:
        return Fact(Logits.NONE, places, flags=flags)
    return _rows(d, value, places, concrete, q)


def _by_name(d: Declaration) -> Fact[Logits] | None:
    """`NONE` for outputs that could not be followed, when the names in the call say that none is logits."""
    said = no_logits_name(d.output_names or ())
    if said is None:
        return None
    note = f"the output is named `{said}`"
    call, *places = evidence(d.site, d.output_source)
    named = places[0] if places else call
    return Fact(Logits.NONE, (*((call,) if places else ()), Place(named.path, named.line, note)))


def _of_embeddings(module: Value, width: dims.Dim) -> bool | None:
    """What the embeddings say of a width: a vocabulary (True), hidden states, whatever their name (False), or none."""
    found = [m for _, m in walk(module) if EMBEDDING in mro(m.cls)] if isinstance(module, Instance) else []
    hidden = any(attribute(m, "embedding_dim") == width for m in found)
    vocabulary = any(attribute(m, "num_embeddings") == width for m in found)
    return None if hidden == vocabulary else vocabulary


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


def _rows(d: Declaration, value: Tensor, places: tuple[Place, ...], concrete: bool, q: Declared | None) -> Fact[Logits]:
    assert value.shape is not None
    rows = value.shape[:-1]
    cuts = tuple(c.place("one row is left here") for c in value.cuts)
    if concrete:
        width = (
            q.value.shape[query_axis(q)] if q is not None and isinstance(q.value, Tensor) and q.value.shape else None
        )
        if width in rows and width != 1:
            return Fact(Logits.ALL, places, flags=value.flags)
        if width != 1 and all(r == 1 for r in rows):
            return Fact(Logits.LAST, (*places, *cuts), flags=value.flags)
        return Fact.unknown("with a query of one row nobody can tell whether all rows are kept", *places)
    if "mixed-rows" in value.tags and not _of_one_row(q):
        return Fact.unknown("one row of the query goes into all rows of the output", *places, *cuts, flags=value.flags)
    if query_dim() in rows and value.tags & NOT_THE_QUERYS:
        reason = "rows of the output are masked, moved or written in part: they may not be those of the query"
        return Fact.unknown(reason, *places, *cuts, flags=value.flags)
    if query_dim() in rows:
        return Fact(Logits.ALL, places, flags=value.flags)
    if all(r == 1 for r in rows):
        return Fact(Logits.LAST, (*places, *cuts), flags=value.flags)
    left = ", ".join(map(str, rows))
    return Fact.unknown(f"the output keeps [{left}] rows of a query of q", *places, *cuts, flags=value.flags)


def _of_one_row(q: Declared | None) -> bool:
    """Whether the query is pinned to one row, so that there is no other that it could be mixed with."""
    if q is None or q.axes is None or not isinstance(q.value, Tensor) or q.value.shape is None:
        return False
    axis = query_axis(q)
    return axis not in q.axes and axis < len(q.value.shape) and q.value.shape[axis] == 1


# -- marks ------------------------------------------------------------------------------------------------------


def _marks(outcome: Outcome, states: Fact[tuple[State, ...]], query: Fact[Query]) -> tuple[Mark, ...]:
    out: list[Mark] = []
    events = outcome.events
    for site, detail in events.row_kernels[:1]:
        out.append(Mark(Trait.ROW_KERNEL, detail, (site.place(),)))
    wraps = [w for w in events.writes if w.wraps and role_by_name(w.storage.name) not in (Role.CONV, Role.RECURRENT)]
    if wraps:
        out.append(
            Mark(
                Trait.RING_CACHE,
                f"`{wraps[0].storage.name}` is written in a ring or a sliding window",
                (wraps[0].site.place(),),
            )
        )
    if events.baked and not events.row_kernels and query.value is not None and query.value.dynamic:
        site, detail = events.baked[0]
        out.append(Mark(Trait.BAKED_LENGTH, detail, (site.place(),)))
    if events.experts:
        out.append(Mark(Trait.MOE, "", (events.experts[0].place(),)))
    return tuple(out)


__all__ = ["Declaration", "Declared", "Dimension", "Instance", "compute", "names_of"]
