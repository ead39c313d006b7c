"""Which functions of a file call which: an exporting helper is called with what its callers know.

def lower(model, args): ...converter...      # by itself, nobody says what the model is

def test_a_layer():
    lower(Layer(), (torch.zeros(1, 4),))     # here it is
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from auditor.hooks import as_inherited
from auditor.modules import ModuleSource, Statement
from auditor.run import Result
from auditor.sinks import Export

_MOST = 32
"""Callers of one file: beyond so many, its exporting functions are only evaluated by themselves."""


@dataclass(frozen=True, slots=True)
class _Defined:
    """A top-level function of a file, or a method of a class (`Class.method`): its lines, and the names it calls."""

    name: str
    first: int
    last: int
    calls: frozenset[str]


def by_their_callers(
    source: ModuleSource, results: Mapping[str, Result], run: Callable[[str], Result]
) -> dict[str, Result]:
    """The results of functions of a file that were run with unknown parameters, and of what else calls these.

    A function is left out when all that call it come to its export calls, and one of them knows more of what it
    exports there. `run` runs a function of the file by its name.
    """
    path = source.file.path
    found = dict(results)
    waiting = [name for name, result in results.items() if result.exports]
    functions = _defined(source) if waiting else []
    while waiting:
        called_by = [n for c in _callers(waiting.pop(), functions) for n in as_inherited(source, c)]
        more = [n for n in called_by if n not in found]
        if len(found) + len(more) - len(results) > _MOST:
            return dict(results)
        for name in more:
            found[name] = run(name)
            waiting += [name] if found[name].exports else []
    called = [one for one in functions if one.name in found and found[one.name].exports]
    known = {one.name: _known(found[one.name].exports) for one in called}
    left_out = {one.name for one in called if _is_known_better(one, functions, found, results, path)}
    for name in found.keys() - results.keys():
        others = [one for one in called if one.name != name]
        kept = [e for e in found[name].exports if _counts(e, others, known, left_out, results, path)]
        found[name] = replace(found[name], exports=tuple(kept))
    return {name: result for name, result in found.items() if name not in left_out}


def _counts(
    export: Export,
    called: list[_Defined],
    known: Mapping[str, int],
    left_out: Container[str],
    own: Container[str],
    path: str,
) -> bool:
    """Whether what a caller exports is not said by what it calls: more is known of it, or that is left out."""
    through = [one.name for one in called if _goes_through(export, one, path)]
    if any(_known([export]) > known[name] for name in through):
        return True
    stays = any(name in own and name not in left_out for name in through)
    return not stays and any(name in left_out for name in through)


def _is_known_better(
    one: _Defined, functions: list[_Defined], found: Mapping[str, Result], own: Mapping[str, Result], path: str
) -> bool:
    """Whether all that call a function come to its export calls, and know more there; of its `own` file's, as much."""
    known = _known(found[one.name].exports)
    by = _callers(one.name, functions) if found[one.name].exports else []
    through = {
        name: _known(exports)
        for name, result in found.items()
        if name != one.name and (exports := [e for e in result.exports if _goes_through(e, one, path)])
    }
    more = any(k > known or (name in own and k >= known) for name, k in through.items())
    return bool(by) and more and set(by) <= through.keys()


def _known(exports: Iterable[Export]) -> int:
    """How many facts are known of what a function exports."""
    facts = [(f.kind, f.states, f.query, f.logits, f.kv) for f in (export.facts for export in exports)]
    return max((sum(fact.value is not None for fact in of_one) for of_one in facts), default=0)


def _goes_through(export: Export, called: _Defined, path: str) -> bool:
    """Whether something was exported through a function of the file."""
    sites = (export.site, *export.stack)
    return any(site.path == path and called.first <= site.line <= called.last for site in sites)


def _callers(name: str, among: list[_Defined]) -> list[str]:
    """The functions that call one: by its name, or, of a method, as an attribute of something."""
    owner, _, alone = name.rpartition(".")
    called = f".{alone}" if owner else alone
    return [one.name for one in among if called in one.calls and one.name != name]


def _defined(source: ModuleSource) -> list[_Defined]:
    """The functions of a file that it defines at its top level, and in classes there."""
    return [one for statement in source.statements for one in _in(statement)]


def _in(statement: Statement) -> Iterator[_Defined]:
    if "def " not in statement.text:
        return
    for node in ast.parse(statement.text).body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield _of(node, "", statement.first)
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    yield _of(inner, f"{node.name}.", statement.first)


def _of(node: ast.FunctionDef | ast.AsyncFunctionDef, owner: str, first: int) -> _Defined:
    calls = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call):
            match inner.func:
                case ast.Name(id=name):
                    calls.add(name)
                case ast.Attribute(attr=name):
                    calls.add(f".{name}")
    last = node.end_lineno or node.lineno
    return _Defined(owner + node.name, first + node.lineno - 1, first + last - 1, frozenset(calls))
