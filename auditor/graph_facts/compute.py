"""From an export call to the facts of its graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from auditor.forward import Outcome
from auditor.graph_facts.carried import carried_states, carries_only
from auditor.graph_facts.declaration import Declaration, Declared
from auditor.graph_facts.evidence import evidence, why
from auditor.graph_facts.holders import may_hold_state, may_write_input, silent_buffers, unread_holder
from auditor.graph_facts.kinds import gives_one_output, kind_fact, kv_fact
from auditor.graph_facts.logits import logits_fact
from auditor.graph_facts.marks import event_marks, flexibility_marks, unwritten_marks, workload_marks
from auditor.graph_facts.programs import run_forward, with_ranks
from auditor.graph_facts.query import ends_a_model, fixed_width, is_inner_part, query_among, query_fact, reads_tokens
from auditor.graph_facts.states import bound_inputs, is_recurrent, states_fact
from auditor.graph_facts.uses import caches_by_use, keeps_rows
from auditor.graph_facts.watching import watched
from auditor.interpreter import Interpreter
from auditor.roles import carried, recurrent_inputs, used_as_caches
from auditor.values import NO_FLAGS, Instance, Storage
from rules.facts import Fact, GraphFacts, Kind, Kv, Logits, State


def compute(it: Interpreter, d: Declaration) -> GraphFacts:
    """All facts of one exported graph."""
    d = with_ranks(d)
    state_inputs = bound_inputs(d)
    others = [i for i in d.inputs if i.name not in state_inputs]
    if not others and d.more is not None:  # a program that nobody read: the names that the converter gives are all
        others = [Declared(n, d.more, None, d.more) for n in d.input_names or ()]
    query_input = query_among(others)
    query = query_fact(d, query_input)
    recurrent = recurrent_inputs([(i.name, i.value) for i in others if i is not query_input])
    recurrent = {**carried_states(d, others, query_input), **recurrent}
    names = d.output_names or ()
    if not (reads_tokens(query_input) or ends_a_model(query_input, names) or is_inner_part(query_input, names)):
        recurrent = {}  # what a network of frames or samples carries along makes it no decoder
    placeless = reads_tokens(query_input) and carries_only(others, query_input)
    carries_unnamed = placeless and (d.output_names is None or len(d.output_names) > 1)
    back = carried([i.name for i in others if i is not query_input], names)
    carries_unnamed = carries_unnamed or (reads_tokens(query_input) and bool(back))
    holder = unread_holder(d, query_input)
    silent = silent_buffers(d, query_input)
    said = bool(d.state_names or recurrent or may_hold_state(d.module) or carries_unnamed or holder)
    followed = None
    if said or silent or may_write_input(d, query_input):
        followed = _followed(it, d, query_input, silent)
    if followed is None or not (said or keeps_rows(followed[0])):
        # no states and no cache: nothing that `forward` computes can make this a decoder
        states: Fact[tuple[State, ...]] = Fact((), evidence(d.site, d.state_source))
        kv = kv_fact(d, states, others)
        if kv.value is Kv.NONE:
            skipped = Fact[Logits].unknown(
                "not looked at: the graph has no state and no cache", d.site.place("export call")
            )
            return GraphFacts(kind_fact(d, states, kv, query_input), states, query, skipped, kv)
    outcome, concrete = followed or _followed(it, d, query_input, silent)
    caches = caches_by_use(d, state_inputs, outcome)
    if caches:
        with used_as_caches(caches):
            return compute(it, d)
    width = fixed_width(query_input)
    if width == 1 or is_recurrent(d, recurrent, outcome):
        outcome = outcome.unblended()  # no other row to mix with, or a state that is there for it
    if holder is None:
        states = states_fact(d, state_inputs, recurrent, outcome, width, placeless)
    else:
        reason, places = why(holder, d.site)
        states = Fact.unknown(reason, *places)
    kv = kv_fact(d, states, others)
    logits = logits_fact(it, d, outcome, query_input, concrete)
    kind = kind_fact(d, states, kv, query_input)
    if kv.value is Kv.IO and gives_one_output(d, outcome):
        kind = Fact(Kind.OTHER, kv.evidence)  # a cache that is read and does not come out again carries nothing on
    marks = (
        *event_marks(outcome, states, query),
        *flexibility_marks(d, states),
        *unwritten_marks(d, states, state_inputs, outcome),
    )
    facts = GraphFacts(kind, states, query, logits, kv, (*marks, *workload_marks(it, d)))
    flags = d.module.cls.flags if isinstance(d.module, Instance) else NO_FLAGS
    return _chosen(facts, flags) if flags else facts


def _followed(it: Interpreter, d: Declaration, q: Declared | None, silent: Sequence[Storage]) -> tuple[Outcome, bool]:
    """What `forward` does, while the buffers of states are watched, with `silent` ones that may be such."""
    with watched(d, silent):
        return run_forward(it, d, q)


def _chosen(facts: GraphFacts, flags: frozenset[str]) -> GraphFacts:
    """The facts of a module whose class options have chosen: what is so of this one may not be so of another."""
    return facts.each(lambda _, fact: replace(fact, flags=fact.flags | flags))
