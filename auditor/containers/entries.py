"""Entries that are put into dicts and sets."""

from __future__ import annotations

from typing import Any

from auditor import operators
from auditor.interpreter import Interpreter
from auditor.joins import union
from auditor.values import Mapping, Seq, Star, Unknown, Value, is_none, key_of


def put(target: Mapping, key: Value, value: Value) -> None:
    """`target[key] = value`; under a key that is not known it may be any entry. The caller has touched `target`."""
    k = key_of(key)
    if k is None:
        target.rest = target.rest or operators.unknown_from("an entry under a key that is not known", "", key)
        target.entries = {n: (name, union([old, value])) for n, (name, old) in target.entries.items()}
        return
    target.entries[k] = (key, value)


def update_mapping(it: Interpreter, target: Mapping, source: Value) -> None:
    """`target.update(source)`."""
    it.heap.touch(target)
    if isinstance(source, Mapping):
        for k, e in source.entries.items():
            target.entries[k] = operators.over(target.entries.get(k), e)
        target.rest = target.rest or source.rest
        it.remember(target)
        target.flags = target.flags | source.flags
    elif isinstance(source, Seq) and source.exact:
        for pair in source.items:
            if isinstance(pair, Seq) and len(pair.items) == 2:
                put(target, pair.items[0], pair.items[1])
    elif not is_none(source):
        cause = operators.unknown_from("entries of a dict that is not known", "", source)
        target.rest = target.rest or cause
        target.entries = {n: (name, union([old, cause])) for n, (name, old) in target.entries.items()}


def unique(items: list[Value]) -> tuple[list[Value], Unknown | None]:
    """The items of a set: of those that are surely equal, the first; and why nobody knows how many that are."""
    out: dict[Any, Value] = {}
    for i in items:
        out.setdefault(key_of(i) or ("id", id(i)), i)
    unsure = next((i for i in items if not isinstance(i, Star) and key_of(i) is None), None) if items[1:] else None
    if unsure is None:
        return list(out.values()), None
    return list(out.values()), Unknown("whether two members of a set are the same", places=unsure.places)
