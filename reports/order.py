"""The order in which a reader decides, shared by the formats for people."""

from __future__ import annotations

from dataclasses import dataclass

from rules.audit import Audit
from rules.fixes import FixedBy, Judged
from rules.models import Model
from rules.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Group:
    """Models that call for the same decision."""

    title: str
    models: tuple[Model, ...]


def groups(audit: Audit) -> tuple[Group, ...]:
    """The models by decision: usable, out but fixable, out, unresolved, and what is no decoder. None is empty."""
    titles = (
        "eligible",
        "out, but the run also exports an eligible bundle",
        "out, fixable by a flag",
        "out, fixable by a line",
        "out",
        "unresolved",
        "not a decoder",
    )
    found: dict[str, list[Model]] = {title: [] for title in titles}
    for model in audit.models:
        found[_title(model, audit.by_id[model.primary])].append(model)
    return tuple(Group(title, tuple(models)) for title, models in found.items() if models)


def _title(model: Model, primary: Judged) -> str:
    if model.verdict is Verdict.ELIGIBLE:
        return "eligible"
    if model.verdict is Verdict.UNRESOLVED:
        return "unresolved"
    if "not-a-decoder" in primary.judgement.broken:
        return "not a decoder"
    return {
        FixedBy.SECOND_BUNDLE: "out, but the run also exports an eligible bundle",
        FixedBy.FLAG: "out, fixable by a flag",
        FixedBy.LINE: "out, fixable by a line",
        FixedBy.NONE: "out",
    }[model.fixed_by]


def loose(audit: Audit) -> tuple[Judged, ...]:
    """The graphs that belong to no model: other ways of running a script that a recipe ships."""
    owned = {identifier for model in audit.models for identifier in model.graphs}
    return tuple(item for item in audit.graphs if item.graph.id not in owned and not item.graph.by)
