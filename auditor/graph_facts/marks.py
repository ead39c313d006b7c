"""What else a rule reads: kernels, ring caches, flexible shapes, experts, the workload."""

from __future__ import annotations

from auditor.forward import Outcome
from auditor.graph_facts.declaration import Declaration
from auditor.graph_facts.evidence import evidence
from auditor.interpreter import Interpreter
from auditor.roles import role_by_name, words
from auditor.values import Class, Instance
from rules.facts import Fact, Mark, Query, Role, State, Trait


def event_marks(outcome: Outcome, states: Fact[tuple[State, ...]], query: Fact[Query]) -> tuple[Mark, ...]:
    """What `forward` did on the way: row kernels, rings, lengths that became constants, experts."""
    out: list[Mark] = []
    events = outcome.events
    for site, detail in events.row_kernels[:1]:
        out.append(Mark(Trait.ROW_KERNEL, detail, (site.place(),)))
    gone = (Role.CONV, Role.RECURRENT)
    others = {s.name.rpartition(".")[2] for s in states.value or () if s.role in gone} | events.renewed.keys()
    wraps = [
        w
        for w in events.writes
        if w.wraps and role_by_name(w.storage.name) not in gone and w.storage.name not in others
    ]
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


def flexibility_marks(d: Declaration, states: Fact[tuple[State, ...]]) -> list[Mark]:
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


def unwritten_marks(
    d: Declaration, states: Fact[tuple[State, ...]], bound: dict[str, str], outcome: Outcome
) -> list[Mark]:
    """Declared states that `forward` was followed through and never writes: inputs, and buffers by their last name.

    What a model of a library does with the buffers that it reaches through a cache is not seen.
    """
    if outcome.reason is not None or not outcome.outputs or states.value is None:
        return []
    parameters = {i.name: i.parameter or i.name for i in d.inputs}
    written = {w.storage.name for w in outcome.events.writes}
    inputs = {state: parameters[name] for name, state in bound.items()}
    seen = d.core_ml and outcome.events.hidden_cache is None and not outcome.events.layers
    buffers = set(d.state_names) if seen and isinstance(d.state_names, tuple) else set()
    idle = [
        s
        for s in states.value
        if (s.name in inputs or s.name in buffers)
        and written.isdisjoint({inputs.get(s.name, s.name), s.name, s.name.rpartition(".")[2]})
    ]
    return [Mark(Trait.UNWRITTEN_STATE, f"`{s.name}` is never written", s.evidence) for s in idle[:1]]


_WORKLOADS = {"asr", "ocr", "tts", "speech", "whisper", "transcribe", "transcription", "voice", "audio"}


def workload_marks(it: Interpreter, d: Declaration) -> list[Mark]:
    """Outputs that do not repeat the prompt, by the names of the script and of the model class."""
    script = it.stack[0].path if it.stack else d.site.path
    family = d.module.cls.name if isinstance(d.module, Instance) and isinstance(d.module.cls, Class) else ""
    said = (set(words(script)) | set(words(family))) & _WORKLOADS
    return [Mark(Trait.WORKLOAD, ", ".join(sorted(said)), (d.site.place("export call"),))] if said else []
