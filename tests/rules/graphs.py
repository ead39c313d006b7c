"""Graphs for the tests of fixes, models and reports."""

from __future__ import annotations

from rules.examples import DENSE, SCRIPT
from rules.facts import Change, Graph, GraphFacts, Invocation, InvocationKind


def graph(
    facts: GraphFacts = DENSE,
    *,
    script: str = SCRIPT,
    name: str = "main",
    bundle: str = "out/model.aimodel",
    recipe: str = "",
    argv: tuple[str, ...] = (),
    shipped: str = "",
    kind: InvocationKind | None = None,
    changes: tuple[Change, ...] = (),
    family: str = "",
) -> Graph:
    """One graph; its identifier is made of what tells it from others."""
    invocation = Invocation(kind or (InvocationKind.RECIPE if recipe else InvocationKind.DEFAULT), argv, recipe)
    identifier = "|".join((recipe or script, *argv, bundle, name))
    return Graph(identifier, script, 40, name, bundle, invocation, facts, changes, shipped, family)


def change(text: str, facts: GraphFacts | None) -> Change:
    """A change of one option: `drop --static-ids`, `use --mode fp16`."""
    return Change(text, text.split()[1], (), facts)
