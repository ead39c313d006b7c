"""A scan as plain data and back, without loss: for the cache and between processes.

Reports have a form of their own (`rules.as_json`), from which facts cannot be made again. The decoder takes nothing on
trust: whatever is not exactly what the encoder writes is a `ValueError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from rules.facts import (
    Change,
    Fact,
    FileResult,
    FileStatus,
    Graph,
    GraphFacts,
    Invocation,
    InvocationKind,
    Kind,
    Kv,
    Logits,
    Mark,
    Place,
    Query,
    Role,
    Scan,
    State,
    Trait,
)

T = TypeVar("T")


def encode(scan: Scan) -> dict[str, Any]:
    """Plain data that JSON can hold. Places and facts, of which many are alike, are written once."""
    encoder = _Encoder()
    return {
        "root": scan.root,
        "files": [[file.path, str(file.status), file.reason] for file in scan.files],
        "graphs": [encoder.graph(graph) for graph in scan.graphs],
        "warnings": list(scan.warnings),
        "places": [[place.path, place.line, place.note] for place in encoder.places],
        "facts": encoder.encoded,
    }


def decode(data: object) -> Scan:
    """The scan that was encoded. Raises `ValueError` for anything else."""
    document = _object(data, ("root", "files", "graphs", "warnings", "places", "facts"))
    decoder = _Decoder(document["places"], document["facts"])
    return Scan(
        _text(document["root"]),
        tuple(_file(item) for item in _list(document["files"])),
        tuple(decoder.graph(item) for item in _list(document["graphs"])),
        _texts(document["warnings"]),
    )


class _Encoder:
    def __init__(self) -> None:
        self.places: dict[Place, int] = {}
        self.facts: dict[GraphFacts, int] = {}
        self.encoded: list[list[Any]] = []

    def graph(self, graph: Graph) -> list[Any]:
        how = graph.invocation
        return [
            graph.id,
            graph.script,
            graph.line,
            graph.graph,
            graph.bundle,
            [str(how.kind), list(how.argv), how.recipe],
            self.number(graph.facts),
            [
                [
                    change.text,
                    change.flag,
                    list(change.argv),
                    None if change.facts is None else self.number(change.facts),
                ]
                for change in graph.changes
            ],
            graph.shipped,
            graph.family,
            graph.by,
        ]

    def number(self, facts: GraphFacts) -> int:
        if facts not in self.facts:
            encoded = [
                self.fact(facts.kind, str),
                self.fact(facts.states, lambda states: [self.state(state) for state in states]),
                self.fact(facts.query, lambda query: [query.dynamic, list(query.widths)]),
                self.fact(facts.logits, str),
                self.fact(facts.kv, str),
                [[str(mark.trait), mark.detail, self.evidence(mark.evidence)] for mark in facts.marks],
            ]
            self.facts[facts] = len(self.encoded)
            self.encoded.append(encoded)
        return self.facts[facts]

    def fact(self, fact: Fact[T], value: Callable[[T], Any]) -> list[Any]:
        plain = None if fact.value is None else value(fact.value)
        return [plain, self.evidence(fact.evidence), fact.reason, sorted(fact.flags)]

    def state(self, state: State) -> list[Any]:
        return [state.name, str(state.role), self.evidence(state.evidence), state.reason, list(state.shape)]

    def evidence(self, places: Iterable[Place]) -> list[int]:
        return [self.places.setdefault(place, len(self.places)) for place in places]


class _Decoder:
    def __init__(self, places: object, facts: object) -> None:
        self.places = [_place(item) for item in _list(places)]
        self.facts = [self._facts(item) for item in _list(facts)]

    def graph(self, data: object) -> Graph:
        name, script, line, graph, bundle, how, facts, changes, shipped, family, by = _row(data, 11)
        kind, argv, recipe = _row(how, 3)
        return Graph(
            _text(name),
            _text(script),
            _number(line),
            _text(graph),
            _text(bundle),
            Invocation(InvocationKind(_text(kind)), _texts(argv), _text(recipe)),
            _pick(self.facts, facts),
            tuple(self._change(item) for item in _list(changes)),
            _text(shipped),
            _text(family),
            _text(by),
        )

    def _change(self, data: object) -> Change:
        text, flag, argv, facts = _row(data, 4)
        return Change(_text(text), _text(flag), _texts(argv), None if facts is None else _pick(self.facts, facts))

    def _facts(self, data: object) -> GraphFacts:
        kind, states, query, logits, kv, marks = _row(data, 6)
        return GraphFacts(
            self._fact(kind, lambda value: Kind(_text(value))),
            self._fact(states, lambda value: tuple(self._state(item) for item in _list(value))),
            self._fact(query, _query),
            self._fact(logits, lambda value: Logits(_text(value))),
            self._fact(kv, lambda value: Kv(_text(value))),
            tuple(self._mark(item) for item in _list(marks)),
        )

    def _fact(self, data: object, value: Callable[[object], T]) -> Fact[T]:
        plain, evidence, reason, flags = _row(data, 4)
        known = None if plain is None else value(plain)
        return Fact(known, self._evidence(evidence), _text(reason), frozenset(_texts(flags)))

    def _state(self, data: object) -> State:
        name, role, evidence, reason, shape = _row(data, 5)
        return State(_text(name), Role(_text(role)), self._evidence(evidence), _text(reason), _texts(shape))

    def _mark(self, data: object) -> Mark:
        trait, detail, evidence = _row(data, 3)
        return Mark(Trait(_text(trait)), _text(detail), self._evidence(evidence))

    def _evidence(self, data: object) -> tuple[Place, ...]:
        return tuple(_pick(self.places, number) for number in _list(data))


def _file(data: object) -> FileResult:
    path, status, reason = _row(data, 3)
    return FileResult(_text(path), FileStatus(_text(status)), _text(reason))


def _place(data: object) -> Place:
    path, line, note = _row(data, 3)
    return Place(_text(path), _number(line), _text(note))


def _query(data: object) -> Query:
    dynamic, widths = _row(data, 2)
    if not isinstance(dynamic, bool):
        raise ValueError("a query is dynamic or not")
    return Query(dynamic, tuple(_number(width) for width in _list(widths)))


def _object(data: object, keys: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(data, dict) or set(data) != set(keys):
        raise ValueError(f"not an object of {', '.join(keys)}")
    return data


def _list(data: object) -> list[Any]:
    if not isinstance(data, list):
        raise ValueError("not a list")
    return data


def _row(data: object, length: int) -> list[Any]:
    row = _list(data)
    if len(row) != length:
        raise ValueError(f"not a list of {length}")
    return row


def _text(data: object) -> str:
    if not isinstance(data, str):
        raise ValueError("not a text")
    return data


def _texts(data: object) -> tuple[str, ...]:
    return tuple(_text(item) for item in _list(data))


def _number(data: object) -> int:
    if not isinstance(data, int) or isinstance(data, bool):
        raise ValueError("not a number")
    return data


def _pick(items: list[T], number: object) -> T:
    at = _number(number)
    if not 0 <= at < len(items):
        raise ValueError("a number that stands for nothing")
    return items[at]
