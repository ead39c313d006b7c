"""The places that a fact of a graph cites."""

from __future__ import annotations

from collections.abc import Iterable

from auditor.places import Site
from auditor.values import Unknown, Value
from rules.facts import Place


def evidence(site: Site, *values: Value | None) -> tuple[Place, ...]:
    """The places from the export call back to what decides a value."""
    out = [site.place("export call")]
    for v in values:
        if v is not None:
            out += [p.place() for p in v.places]
    seen: dict[tuple[str, int], Place] = {}
    for p in out:
        seen.setdefault((p.path, p.line), p)
    return tuple(seen.values())


def apart(places: Iterable[Place], others: Iterable[Place]) -> tuple[Place, ...]:
    """The places that are not among others, whatever is noted there."""
    lines = {(p.path, p.line) for p in others}
    return tuple(p for p in places if (p.path, p.line) not in lines)


def why(reason: Unknown, site: Site) -> tuple[str, tuple[Place, ...]]:
    """The reason of an unknown, and the places from the export call to where it begins."""
    places = tuple(p.place() for p in reason.places) or (site.place("export call"),)
    return reason.reason, (site.place("export call"), *(p for p in places if p != site.place("export call")))
