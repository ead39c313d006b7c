"""Registries of model classes, looked up under a key that nobody knows: one entry at a time.

An exporter that is generic over what a registry holds exports each of its classes. A run notes which look-ups had to
choose among classes of the sources (`Choices.met`); it is made again for each entry (`Choices.taken`), and what it then
exports is shown in the file of the class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from auditor.places import Site
from auditor.values import Class, Instance, Value
from rules.facts import Place

Where = tuple[str, int]
"""Path and line of a look-up."""


@dataclass(slots=True)
class Choices:
    """Look-ups among classes: how many entries each had, which entry is to be taken, and which was."""

    met: dict[Where, int] = field(default_factory=dict)
    taken: dict[Where, int] = field(default_factory=dict)
    entries: list[Value] = field(default_factory=list)

    def choose(self, candidates: Sequence[Value], site: Site) -> Value | None:
        """The entry to take here; None where this is no choice among classes, or nobody says which."""
        if len(candidates) < 2 or not all(_classes_of(c) for c in candidates):
            return None
        where = site.path, site.line
        self.met.setdefault(where, len(candidates))
        number = self.taken.get(where)
        if number is None or number >= len(candidates):
            return None
        entry = candidates[number]
        if all(entry is not e for e in self.entries):
            self.entries.append(entry)
        return entry

    def took(self, value: Value) -> bool:
        """Whether it is an entry that was taken: it stands for whatever the key may be."""
        return any(value is e for e in self.entries)

    def home(self, modules: Sequence[Value]) -> Place | None:
        """Where the entry's class stands that is exported, or of which a part that stands beside it is."""
        offered = [c for entry in self.entries for c in _classes_of(entry) if c.site is not None]
        exported = [m.cls for m in modules if isinstance(m, Instance) and isinstance(m.cls, Class)] if offered else []
        beside = {cls.site.path for cls in exported if cls.site is not None}
        found = [c for c in offered if any(c is cls for cls in exported)]
        found += [c for c in offered if c.site is not None and c.site.path in beside]
        return found[0].site.place() if found and found[0].site is not None else None


def _classes_of(entry: Value) -> list[Class]:
    """The classes of the sources that an entry of a registry is, or has among its attributes."""
    if isinstance(entry, Class):
        return [entry]
    found = entry.attrs.values() if isinstance(entry, Instance) else ()
    return [v for v in found if isinstance(v, Class)]
