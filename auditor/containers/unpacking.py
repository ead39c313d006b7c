"""A value that is given to several targets."""

from __future__ import annotations

from auditor.containers.iteration import iterate
from auditor.containers.reading import get_item, sequence_item
from auditor.interpreter import Interpreter, RaiseSignal
from auditor.joins import join_all
from auditor.places import Site
from auditor.values import Const, ExternalObject, Seq, Star, Union, Unknown, Value


def unpack(it: Interpreter, value: Value, count: int, starred: int | None, site: Site) -> list[Value]:
    """The values for `count` targets, of which the one at `starred` takes a list."""
    if isinstance(value, Union):
        given = [_unpacked(it, o, count, starred, site) for o in value.options]
        fitting = [one for one in given if one is not None]
        if not fitting:
            raise RaiseSignal("ValueError")
        if len(fitting) < len(given):
            it.may_raise("ValueError")  # what goes on are the runs whose value has as many items
        return [join_all(same) for same in zip(*fitting, strict=True)]
    if isinstance(value, (Unknown, ExternalObject)):
        parts: list[Value] = []
        for i in range(count):
            parts.append(value.child(f"[{i}]") if isinstance(value, Unknown) else get_item(it, value, Const(i), site))
        return parts
    source = iterate(it, value, site)
    if source.exact and starred is None and len(source.items) == count:
        return source.items
    if source.exact and starred is not None and len(source.items) >= count - 1:
        after = count - starred - 1
        end = len(source.items) - after
        middle = Seq("list", source.items[starred:end])
        return [*source.items[:starred], middle, *source.items[end:]]
    if source.exact and starred is None:
        raise RaiseSignal("ValueError")
    if starred is not None:
        head = source.items[:starred] if not any(isinstance(i, Star) for i in source.items[:starred]) else []
        filler = Unknown("an item of a sequence of unknown length", places=(site,))
        out: list[Value] = [*head, *[filler] * (starred - len(head))]
        out.append(Seq("list", source.items[len(head) :], source.rest))
        return out + [filler.child(f"[{i}]") for i in range(count - len(out))]
    return [sequence_item(it, source, Const(i), site) for i in range(count)]


def _unpacked(it: Interpreter, value: Value, count: int, starred: int | None, site: Site) -> list[Value] | None:
    """The values for the targets; None when it has more items, or fewer."""
    try:
        return unpack(it, value, count, starred, site)
    except RaiseSignal as error:
        if error.kind != "ValueError":
            raise
        return None
