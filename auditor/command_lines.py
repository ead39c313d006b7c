"""What a command line comes to: two that give a script's parser the same values make the same run.

A recipe often spells the defaults out. Where nothing but the parser reads the command line, such a run ends at its
`parse_args`, and the earlier one stands for it.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass, field

from auditor.values import Const, Instance, Pattern, Seq, Union, Unknown, Value


class Again(Exception):
    """The run comes to the values of an earlier one, whose key this is."""

    def __init__(self, key: Hashable) -> None:
        super().__init__(key)
        self.key = key


class Due(Exception):
    """The command line has to name a choice, and names none."""


@dataclass(slots=True)
class CommandLines:
    """The command lines that a run has parsed.

    `earlier` are the keys of the script's other runs. `choosing`: the run is made to see which choices there are.
    """

    earlier: Collection[Hashable] = ()
    choosing: bool = False
    parsed: list[Hashable] = field(default_factory=list)

    def met(self, reader: Hashable, values: dict[str, Value], rest: list[str], problems: list[str]) -> None:
        """Called with what a parser gave to its `reader`. Raises `Again` when an earlier run came to the same."""
        described = tuple((name, describe(value)) for name, value in sorted(values.items()))
        known = all(text is not None for _, text in described)
        key = (reader, described, tuple(rest), tuple(problems)) if known else None
        self.parsed.append(key)
        if key is not None and len(self.parsed) == 1 and key in self.earlier:
            raise Again(key)

    @property
    def key(self) -> Hashable:
        """What the run came to; None when it parsed no command line, several, or one that cannot be compared."""
        return self.parsed[0] if len(self.parsed) == 1 else None


def describe(value: Value) -> Hashable:
    """A value so that equal ones behave alike in a run, the places that made them aside; None when that is not sure."""
    inner: Hashable
    match value:
        case Const(value=x):
            inner = (type(x).__name__, repr(x))
        case Pattern(text=text):
            inner = text
        case Unknown(reason=reason, name=name, kind=kind) if not value.assigned:
            inner = (reason, name, kind)
        case Seq(kind=kind, items=items, rest=None):
            inner = (kind, *(describe(i) for i in items))
        case Union(options=options):
            inner = tuple(describe(o) for o in options)
        case Instance(payload=Value() as payload, attrs=attrs) if not attrs:
            inner = (id(value.cls), describe(payload))
        case _:
            return None
    if isinstance(inner, tuple) and None in inner:
        return None
    return type(value).__name__, inner, value.flags
