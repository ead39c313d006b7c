"""The models of a scan: what a ship review decides on."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rules.facts import InvocationKind
from rules.fixes import FixedBy, Judged
from rules.verdict import Verdict

_SUFFIX = re.compile(r"\.(aimodelc?|mlpackage|mlmodelc?|pte)$")
_STEP = re.compile(r"/step\d+$")


@dataclass(frozen=True, slots=True)
class Model:
    """A recipe (all its steps, chunks and separate head together), or a script without recipes.

    `bundle` is the one that ships (as the recipe names it, else the primary graph's). The verdict is that of the
    `primary` graph. `fix` is empty where nothing is known to help.
    """

    id: str
    family: str
    recipe: str
    bundle: str
    graphs: tuple[str, ...]
    verdict: Verdict
    primary: str
    fixed_by: FixedBy
    fix: str = ""


def base_name(bundle: str) -> str:
    """The last part of a bundle's path, without the suffix of its format."""
    return _SUFFIX.sub("", bundle.replace("\\", "/").rstrip("/").rpartition("/")[2])


def may_be(written: str, bundle: str) -> bool:
    """Whether what a run writes (`*` is an unknown part) may have the base name of that bundle."""
    return fnmatch.fnmatchcase(base_name(bundle), _pattern(base_name(written)))


def models(graphs: Sequence[Judged]) -> tuple[Model, ...]:
    """The models of these graphs, by identifier."""
    recipes: dict[str, list[Judged]] = {}
    scripts: dict[str, list[Judged]] = {}
    shipped_scripts = {item.graph.script for item in graphs if item.graph.invocation.recipe}
    for item in graphs:
        if item.graph.invocation.recipe:
            recipes.setdefault(_STEP.sub("", item.graph.invocation.recipe), []).append(item)
        elif item.graph.script not in shipped_scripts and not item.graph.by:
            scripts.setdefault(item.graph.script, []).append(item)
    found = [_recipe_model(name, items) for name, items in recipes.items()]
    found += [_script_model(script, items) for script, items in scripts.items()]
    return tuple(sorted(found, key=lambda model: model.id))


def _recipe_model(name: str, items: list[Judged]) -> Model:
    candidates: list[Judged] = []
    for shipped in dict.fromkeys(item.graph.shipped for item in items):
        same = [item for item in items if item.graph.shipped == shipped]
        candidates += (_named(shipped, same) if shipped else []) or same
    return _model(name, name, items, candidates)


def _script_model(script: str, items: list[Judged]) -> Model:
    run = [item for item in items if item.graph.invocation.kind is InvocationKind.DEFAULT]
    return _model(script, "", items, run or items)


def _named(bundle: str, items: Iterable[Judged]) -> list[Judged]:
    """The graphs of the bundle with that base name; a partly known name (`*_s1`) counts where no full one matches."""
    wanted = base_name(bundle)
    named = [(base_name(item.graph.bundle), item) for item in items]
    exact = [item for name, item in named if name == wanted]
    if exact:
        return exact
    partly = [
        (len(name.replace("*", "")), item)
        for name, item in named
        if name.strip("*") and "*" in name and fnmatch.fnmatchcase(wanted, _pattern(name))
    ]
    longest = max((length for length, _ in partly), default=0)
    return [item for length, item in partly if length == longest]


def _pattern(name: str) -> str:
    """Only `*` is a wildcard in a bundle's name."""
    return "".join(f"[{char}]" if char in "?[" else char for char in name)


def _model(identifier: str, recipe: str, items: Sequence[Judged], candidates: Sequence[Judged]) -> Model:
    primary = max(candidates, key=_rank)
    graph = primary.graph
    fixed_by, fix = primary.fixed_by, primary.fix
    if primary.judgement.verdict is not Verdict.ELIGIBLE:
        twin = _twin(primary, items)
        if twin:
            name = base_name(twin.graph.bundle)
            what = f"`{name}`" if name.strip("*") else f"the bundle of `{twin.graph.id}`"
            fixed_by = FixedBy.SECOND_BUNDLE
            fix = f"ship {what}: the same run exports it, and it is eligible"
    return Model(
        id=identifier,
        family=graph.family,
        recipe=recipe,
        bundle=graph.shipped or graph.bundle,
        graphs=tuple(item.graph.id for item in items),
        verdict=primary.judgement.verdict,
        primary=graph.id,
        fixed_by=fixed_by,
        fix=fix,
    )


def _twin(primary: Judged, items: Iterable[Judged]) -> Judged | None:
    """An eligible graph that the primary's own run writes as well."""
    return next(
        (
            item
            for item in items
            if item.judgement.verdict is Verdict.ELIGIBLE and item.graph.invocation == primary.graph.invocation
        ),
        None,
    )


def _rank(item: Judged) -> int:
    """Eligible, then unresolved, then a decoder that is out, then what is no decoder. The first of equals is kept."""
    if item.judgement.verdict is Verdict.ELIGIBLE:
        return 3
    if item.judgement.verdict is Verdict.UNRESOLVED:
        return 2
    return 0 if "not-a-decoder" in item.judgement.broken else 1
