"""Everything that a report shows: a scan, judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property

from rules.expect import Broken, Expectation, FailOn, broken, counts, fails
from rules.facts import Scan
from rules.fingerprints import fingerprints
from rules.fixes import Judged, judge_graph
from rules.models import Model, models
from rules.provenance import Provenance
from rules.rule import Finding
from rules.verdict import Verdict
from rules.waivers import State, Use, Waiver, settle


@dataclass(frozen=True, slots=True)
class Policy:
    """What a repository asks of its scan.

    `baseline` holds fingerprints of findings that are not new, None without one. `today` is the day on which waivers
    expire. `prefix` leads from the repository (where CI stands) to the audited root; `configuration` is the file that
    the expectations stand in, relative to that root. Both are empty where they are not known.
    """

    level: FailOn = FailOn.EXPECT
    waivers: tuple[Waiver, ...] = ()
    baseline: frozenset[str] | None = None
    today: date | None = None
    prefix: str = ""
    configuration: str = ""


@dataclass(frozen=True, slots=True)
class Reported:
    """A finding of a graph, and whether something silences it."""

    finding: Finding
    fingerprint: str
    waiver: Waiver | None = None
    known: bool = False

    @property
    def silenced(self) -> bool:
        return self.waiver is not None or self.known


@dataclass(frozen=True)
class Audit:
    """A scan with its judgements, in an order that does not depend on how the scan was run."""

    scan: Scan
    graphs: tuple[Judged, ...]
    models: tuple[Model, ...]
    broken: tuple[Broken, ...] = ()
    policy: Policy = Policy()
    waived: Mapping[str, Waiver] = field(default_factory=dict)
    uses: tuple[Use, ...] = ()
    provenance: Provenance = field(default_factory=Provenance)

    @cached_property
    def by_id(self) -> dict[str, Judged]:
        return {item.graph.id: item for item in self.graphs}

    def count(self, verdict: Verdict) -> int:
        """How many models have that verdict."""
        return Counter(model.verdict for model in self.models)[verdict]

    def findings(self, item: Judged) -> tuple[Reported, ...]:
        """The reasons of a graph and then its advice, each with what silences it."""
        baseline = self.policy.baseline or frozenset()
        found = (*item.judgement.reasons, *item.judgement.advice)
        return tuple(
            Reported(finding, fingerprint, self.waived.get(fingerprint), fingerprint in baseline)
            for finding, fingerprint in zip(found, fingerprints(item), strict=True)
        )

    def silenced(self, model: Model) -> bool:
        """Whether every reason for the model's verdict is waived or known. The verdict stays what it is."""
        item = self.by_id[model.primary]
        reasons = self.findings(item)[: len(item.judgement.reasons)]
        return bool(reasons) and all(reason.silenced for reason in reasons)

    def fails(self, model: Model) -> bool:
        """Whether this model is something to report at the chosen level."""
        wished = self.policy.level is not FailOn.NEVER and any(item.model == model.id for item in self.broken)
        return wished or (counts(self.policy.level, model.verdict) and not self.silenced(model))

    @property
    def failed(self) -> bool:
        """Whether there is something to report at the chosen level."""
        loud = [model for model in self.models if not self.silenced(model)]
        return fails(self.policy.level, loud, self.broken, self.scan.files)

    @cached_property
    def gone(self) -> int:
        """How many findings of the baseline are no longer there."""
        return len((self.policy.baseline or frozenset()) - self._fingerprints)

    @cached_property
    def recorded(self) -> int:
        """How many of today's findings stand in the baseline."""
        return len((self.policy.baseline or frozenset()) & self._fingerprints)

    @cached_property
    def _fingerprints(self) -> frozenset[str]:
        return frozenset(fingerprint for item in self.graphs for fingerprint in fingerprints(item))

    def waivers(self, state: State) -> tuple[Use, ...]:
        """The waivers of which that became."""
        return tuple(use for use in self.uses if use.state is state)


def audit(scan: Scan, expectations: Sequence[Expectation] = (), policy: Policy | None = None) -> Audit:
    """Judge every graph of `scan`, and hold the models against the expectations and the policy."""
    ordered = replace(
        scan,
        files=tuple(sorted(scan.files)),
        graphs=tuple(sorted(scan.graphs, key=lambda graph: (graph.script, graph.invocation.recipe, graph.id))),
    )
    judged = tuple(judge_graph(graph) for graph in ordered.graphs)
    found = models(judged)
    policy = policy or Policy()
    waived, uses = settle(policy.waivers, judged, found, policy.today)
    return Audit(ordered, judged, found, broken(expectations, found), policy, waived, uses)
