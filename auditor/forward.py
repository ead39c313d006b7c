"""Evaluating an exported module's `forward` on a query of symbolic length, and reading the result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from auditor import dims
from auditor.assumptions import Assumptions
from auditor.dims import Atom, Dim
from auditor.interpreter import ExitSignal, Interpreter, RaiseSignal
from auditor.places import Site, here
from auditor.roles import is_state_name, role_by_name
from auditor.rounds import Parts
from auditor.torch import positions
from auditor.torch.events import Events
from auditor.torch.modules import call_module, tensors, walk
from auditor.torch.rows import parts, unblended
from auditor.torch.tracing import Example
from auditor.values import Args, Instance, Mapping, Seq, Star, Storage, Tensor, Union, Unknown, Value, text_of
from auditor.values.tags import INPUT
from rules.facts import Role


@dataclass(frozen=True, slots=True)
class Input:
    """One input of a graph: its name, the example value, the tensor it is evaluated with, and its position."""

    name: str
    value: Value
    tensor: Tensor | None
    position: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What `forward` gave: named outputs in order, what happened on the way, or why it could not be followed."""

    outputs: tuple[tuple[str, Value], ...]
    events: Events
    reason: Unknown | None = None

    def unblended(self) -> Outcome:
        """The same, where it does not matter that rows of the query are mixed."""
        events = replace(self.events, writes=[replace(w, blended="") for w in self.events.writes])
        return replace(self, outputs=tuple((n, unblended(v)) for n, v in self.outputs), events=events)


QUERY = Atom("q", query=True, minimum=2, flexible=True)


def query_dim() -> Dim:
    """The symbolic query length: at least 2, because a verify pass has K+1 rows."""
    return dims.symbol(QUERY)


def evaluate(
    it: Interpreter, module: Value, inputs: tuple[Input, ...], site: Site | None, example: Example | None = None
) -> Outcome:
    """Run `forward` on the inputs, in a journal frame that is undone: the script goes on as if nothing had happened.

    `example` is what the dimensions of the inputs were when `torch.jit.trace` ran, as far as it is known; None for a
    module that is not traced.
    """
    rows = any(dims.depends_on_query(d) for i in inputs if i.tensor is not None for d in i.tensor.shape or ())
    events = Events(it, example, symbolic=rows)
    if not isinstance(module, Instance):
        reason = (
            module if isinstance(module, Unknown) else Unknown("the exported module is not known", places=here(site))
        )
        return Outcome((), events, reason)
    keywords = {i.name: (i.tensor if i.tensor is not None else i.value) for i in inputs}
    saved, conditions, raised, met = it.events, it.conditions, it.maybe_raised, it.sinks.mark()
    it.events, it.conditions, it.maybe_raised = events, frozenset(), []
    assumed, it.assumed = it.assumed, Assumptions()
    ways, it.ways, rounds, it.rounds.open = it.ways, [], it.rounds.open, []
    _prepare(it, module, events, inputs)
    mark = len(it.heap.pending)
    it.heap.open()
    result: Value
    try:
        positional, named = _apart(keywords)
        result = call_module(it, module, Args(positional, named), site)
        outputs = tuple(named_outputs(it, result, site))
        _left_behind(it, events, site)
    except ExitSignal:
        return Outcome((), events, Unknown("`forward` ends the process", places=here(site)))
    except RaiseSignal as error:
        where = (error.value.places if error.value is not None else ()) or here(site)
        detail = f" ({error.value.reason})" if isinstance(error.value, Unknown) else ""
        return Outcome((), events, Unknown(f"`forward` raises {error.kind}{detail} with these inputs", places=where))
    finally:
        it.heap.release(mark)
        it.heap.undo(it.heap.frames.pop())
        it.events, it.conditions, it.maybe_raised, it.assumed = saved, conditions, raised, assumed
        it.ways, it.rounds.open = ways, rounds
        it.sinks.rollback(met)
    if isinstance(result, Unknown):
        return Outcome((), events, result)
    return Outcome(outputs, events)


def _apart(inputs: dict[str, Value]) -> tuple[list[Value], dict[str, Value]]:
    """The inputs by position and by name. Those of `*past` have no name, so that what stands before has none either."""
    without = [number for number, n in enumerate(inputs) if n.startswith("arg") and n[3:].isdigit()]
    count = without[-1] + 1 if without else 0
    return list(inputs.values())[:count], dict(list(inputs.items())[count:])


def _left_behind(it: Interpreter, events: Events, site: Site | None) -> None:
    """Report the tensors that `forward` has put in place of others in older objects: states that Python keeps."""
    for obj, before in it.heap.frames[-1].values():
        for (name, old), (_, new) in _changed(_slots(before), _slots(obj.snapshot())):
            if isinstance(old, Tensor) and not (old.base is not None and old.base.role == "buffer"):
                found = [t for t in parts(new) if t is not old and (t.base is None or t.base is not old.base)]
                where = (found[0].places if found else ()) or here(site)
                if found and where:
                    events.kept(name, where[-1])


Slot = tuple[str, Value]


def _slots(content: Any) -> list[Slot]:
    """The values in the content of a mutable value (see `Heap.snapshot`), by name."""
    if isinstance(content, dict):
        return [(n, v) for n, v in content.items() if isinstance(v, Value)]
    first = content[0]
    if isinstance(first, dict):
        return [(n, v) if isinstance(v, Value) else (str(text_of(v[0])), v[1]) for n, v in first.items()]
    return [("item", v) for v in first] if isinstance(first, list) else []


def _changed(before: list[Slot], after: list[Slot]) -> list[tuple[Slot, Slot]]:
    if before and before[0][0] == "item":
        shifted = len(before) != len(after)
        return list(zip(before, after[1:] if shifted else after, strict=False))
    now = dict(after)
    return [((n, v), (n, now[n])) for n, v in before if n in now and now[n] is not v]


def _prepare(it: Interpreter, module: Instance, events: Events, inputs: tuple[Input, ...]) -> None:
    """What is known before: which tensors may be states, and which elements of its lists the module keeps elsewhere.

    Such an element has a name as well (`self.first = self.layers[0]`).
    """
    held = [i.tensor for i in inputs if i.tensor is not None] + [t for _, t in tensors(module)]
    for _, m in walk(module):
        for value in m.attrs.values():
            if isinstance(value, Tensor):
                continue
            parts = Parts()
            it.rounds.add(parts, [value])
            if parts.spans and not parts.holds(m):
                it.rounds.share(parts)
    for t in held:
        if t.base is not None and t.base.watched and t.base.shape:
            events.unwritten[t.base.tag] = t.base.shape
            t.base.read = False
            events.held.append(t.base.shape)
            events.wholes |= {t.base.shape, t.base.shape[1:]}
            if role_by_name(t.base.name) is Role.UNKNOWN:
                events.unnamed |= {t.base.tag}


def named_outputs(it: Interpreter, result: Value, site: Site | None) -> list[tuple[str, Value]]:
    """The outputs of a forward result, flattened as `torch.export` does."""
    match result:
        case Tensor() | Unknown() | Union():
            return [("", result)]
        case Mapping():
            return [pair for k, v in result.entries.values() for pair in _below(it, text_of(k) or "", v, site)]
        case Seq():
            more = [("", result.rest)] if result.rest is not None else []
            return [pair for i in result.items for pair in named_outputs(it, i, site)] + more
        case Star():  # any number of outputs: each kind of them once
            return [pair for i in result.items for pair in named_outputs(it, i, site)]
        case Instance(payload=Seq() as inner):
            return named_outputs(it, inner, site)
        case Instance(attrs=attrs):
            held = {n: v for n, v in attrs.items() if not isinstance(v, Instance)}
            return [pair for n, v in held.items() for pair in _below(it, n, v, site)]
    return []


def _below(it: Interpreter, name: str, value: Value, site: Site | None) -> list[tuple[str, Value]]:
    """The outputs in an entry of a dict or of an object: they have its name, and their own behind it."""
    return [("_".join(filter(None, (name, own))), v) for own, v in named_outputs(it, value, site)]


def symbolic(
    value: Value, rows: set[int], dynamic: dict[int, str], name: str, as_query: Dim, *, traced: bool = False
) -> Tensor | None:
    """The example tensor with its query axes (`rows`) and the other axes that are not fixed made symbolic."""
    if not isinstance(value, Tensor) or value.shape is None:
        return None
    shape = list(value.shape)
    for axis, label in dynamic.items():
        if -len(shape) <= axis < len(shape):
            shape[axis] = dims.symbol(_named(label or f"{name}[{axis}]"))
    for axis in rows:
        if axis < len(shape):
            shape[axis] = as_query
    made = replace(
        value,
        shape=tuple(shape),
        base=Storage(name, "input", watched=not rows and _may_be_state(name, value.dtype), shape=tuple(shape)),
        cuts=(),
        tags=_OF_INPUT if rows else _OF_INPUT | positions.given(name, shape, value.dtype),
        data=None,
        pick=None,
    )
    if made.dtype.startswith("int"):
        positions.numbered(made, name)
    return made


def _may_be_state(name: str, dtype: str) -> bool:
    """Whether an input may be written: integers (positions, lengths) only where their name says so."""
    return not dtype.startswith("int") or is_state_name(name) or role_by_name(name).is_kv


_OF_INPUT = frozenset({INPUT})
_atoms: dict[str, Atom] = {}


def _named(label: str) -> Atom:
    return _atoms.setdefault(label, Atom(label, minimum=2, flexible=True))
