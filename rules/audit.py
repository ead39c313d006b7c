"""Everything that a report shows: a scan, judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from rules.expect import Broken, Expectation, broken
from rules.facts import Scan
from rules.fixes import Judged, judge_graph
from rules.models import Model, models
from rules.provenance import Provenance
from rules.verdict import Verdict


@dataclass(frozen=True)
class Audit:
    """A scan with its judgements, in an order that does not depend on how the scan was run."""

    scan: Scan
    graphs: tuple[Judged, ...]
    models: tuple[Model, ...]
    broken: tuple[Broken, ...] = ()
    provenance: Provenance = field(default_factory=Provenance)

    @cached_property
    def by_id(self) -> dict[str, Judged]:
        return {item.graph.id: item for item in self.graphs}

    def count(self, verdict: Verdict) -> int:
        """How many models have that verdict."""
        return Counter(model.verdict for model in self.models)[verdict]


def audit(scan: Scan, expectations: Sequence[Expectation] = ()) -> Audit:
    """Judge every graph of `scan`, and hold the models against the expectations."""
    ordered = replace(
        scan,
        files=tuple(sorted(scan.files)),
        graphs=tuple(sorted(scan.graphs, key=lambda graph: (graph.script, graph.invocation.recipe, graph.id))),
    )
    judged = tuple(judge_graph(graph) for graph in ordered.graphs)
    found = models(judged)
    return Audit(ordered, judged, found, broken(expectations, found))
