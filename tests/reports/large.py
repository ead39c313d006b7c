"""A scan of 300 graphs with 60 probes: what a page has to carry."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from reports.json_report import document
from rules.audit import audit
from rules.examples import DENSE, HYBRID, PINNED, TOWER, logits, query
from rules.facts import Fact, FileResult, FileStatus, Graph, GraphFacts, Logits, Place, Scan, State
from rules.review import Given, Review, review
from tests.reports.probe_sample import ab, ab_row, cost, probe
from tests.rules.graphs import change, graph

GRAPHS, PROBES = 300, 60
_FLAG = replace(DENSE, query=query(1, line=31, flag="--static-ids"))
_LAST = replace(DENSE, logits=logits(Logits.LAST, note="[:, -1:, :]"))
_FACTS = (DENSE, DENSE, _FLAG, HYBRID, PINNED, _LAST, TOWER)


def large() -> Review:
    """120 models of one to four graphs; every second has a probe, most of two contexts."""
    graphs = tuple(_graph(at % 120, at // 120, _FACTS[(at % 120 + at // 120) % len(_FACTS)]) for at in range(GRAPHS))
    files = tuple(
        FileResult(f"conversion/family_{at % 9}/export_model_{at}.py", FileStatus.EXPORTS) for at in range(120)
    )
    probes = [Given(_probe(f"model_{2 * at}_decode_0.aimodel"), f"probe-{at}.json") for at in range(PROBES)]
    return review(document(audit(Scan("a/large/zoo", files, graphs))), probes)


def _probe(bundle: str) -> dict[str, Any]:
    data = probe(bundle, costs=[cost(context=512), cost(context=4096)])
    data["graphs"][0]["ab"] = ab(*(ab_row(policy) for policy in ("K=2", "K=7", "adaptive:7")))
    return data


def _graph(model: int, step: int, facts: GraphFacts) -> Graph:
    recipe = f"models/family-{model % 9}/recipe.toml#model-{model}"
    name = f"model_{model}_decode_{step}"
    made = graph(
        _long(facts, model),
        script=f"conversion/family_{model % 9}/export_model_{model}.py",
        recipe=recipe,
        bundle=f"exports/{name}/{name}.aimodel",
        shipped=f"model_{model}_decode_0",
        changes=(change("drop --static-ids", DENSE),) if facts is _FLAG else (),
        family=f"Family{model % 9}ForCausalLM",
    )
    return replace(made, id=f"{recipe}::main@{name}.aimodel")


def _long(facts: GraphFacts, at: int) -> GraphFacts:
    """The same facts with evidence as long as it is in large repositories."""
    path = tuple(
        Place(f"library/src/package/exporters/backend_{at % 5}/module_{step}.py", 100 + at + step, "called from here")
        for step in range(3)
    )

    def longer(fact: Fact[Any]) -> Fact[Any]:
        return replace(fact, evidence=(*fact.evidence[:1], *path, *fact.evidence[1:]))

    states: Fact[tuple[State, ...]] = longer(facts.states)
    own = tuple(
        replace(state, evidence=(*facts.kind.evidence[:1], *path, *state.evidence)) for state in states.value or ()
    )
    return replace(
        facts,
        kind=longer(facts.kind),
        states=replace(states, value=own),
        query=longer(facts.query),
        logits=longer(facts.logits),
        kv=longer(facts.kv),
    )
