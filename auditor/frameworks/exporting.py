"""Functions of libraries that export by themselves: without the library's source, the call is all that is known."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.frameworks.tables import tables
from auditor.interpreter import Interpreter
from auditor.places import Site, here
from auditor.sinks import Export
from auditor.values import Args, Const, Mapping, Native, Unknown, Value, text_of
from rules.facts import GraphFacts


def _function(name: str, only: str = "") -> Native:
    """A function that exports; one for several kinds of devices does when a text that it is given says `only`."""

    def call(it: Interpreter, args: Args, site: Site | None) -> Value:
        reason = f"`{name}` exports, and its source is not among those read: give it with --library"
        if site is not None and (not only or args.more is not None or any(_may_say(only, v) for v in _given(args))):
            facts = GraphFacts.unknown(reason, site.place("export call"))
            it.export(Export(site, tuple(it.stack), "*", facts, "", it.conditions))
        return Unknown(reason, f"{name}()", places=here(site))

    return Native(name, call)


def _given(args: Args) -> Iterator[Value]:
    """The arguments that may be texts, without the first: it says which model."""
    yield from args.pos[1:]
    yield from args.kw.values()


def _may_say(word: str, value: Value) -> bool:
    text = text_of(value)
    if text is not None:
        return word in text or "*" in text
    return not isinstance(value, (Const, Mapping))


NATIVES: dict[str, Value] = {
    **{name: _function(name) for name in tables().functions},
    **{name: _function(name, word) for word, names in tables().functions_for.items() for name in names},
}
