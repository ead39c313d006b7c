"""Functions of libraries that export by themselves: without the library's source, the call is all that is known."""

from __future__ import annotations

from auditor.frameworks.tables import tables
from auditor.interpreter import Interpreter
from auditor.places import Site
from auditor.sinks import Export
from auditor.values import Args, Native, Unknown, Value
from rules.facts import GraphFacts


def _function(name: str) -> Native:
    def call(it: Interpreter, args: Args, site: Site | None) -> Value:
        reason = f"`{name}` exports, and its source is not among those read: give it with --library"
        if site is not None:
            facts = GraphFacts.unknown(reason, site.place("export call"))
            it.export(Export(site, tuple(it.stack), "*", facts, "", it.conditions))
        return Unknown(reason, f"{name}()", places=(site,) if site else ())

    return Native(name, call)


NATIVES: dict[str, Value] = {name: _function(name) for name in tables().functions}
