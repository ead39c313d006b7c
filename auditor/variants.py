"""Runs with one option changed: those that export something else, and those that show what a change would do."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import islice

from auditor.changes import changed, counted
from auditor.evaluations import Evaluations
from auditor.export_words import conversions
from auditor.roles import says_cache
from auditor.run import Result
from auditor.runs import Run
from auditor.sinks import Export
from auditor.stdlib.options.option import Option
from auditor.twins import deciding_flags, differing, key, named_flags, twin
from rules.facts import Change, GraphFacts, InvocationKind, Kind

MOST_VARIANTS = 16


def variants(
    evaluations: Evaluations, run: Run, result: Result, forks: Collection[tuple[str, ...]]
) -> Iterator[tuple[Run, list[Export], Result]]:
    """The runs with another value of an option that decides something, save those that are forks themselves.

    With each, what it exports, and its result.
    """
    decoders = _decoders(result)
    under = _made_under(decoders)
    before = [key(e.facts) for e in result.exports]
    options = _worth_changing(result, decoders, evaluations.sources.read(run.script).text, run.script)
    for c in islice(changed(run.argv, options), MOST_VARIANTS):
        other = evaluations.evaluate(run.script, c.argv) if c.argv not in forks else ""
        if isinstance(other, str) or not other.exports:
            continue
        # the run with another value of an option under which a decoder is made may leave it out
        decides = (decoders and c.flag not in under) or _decoders(other)
        if decides and [key(e.facts) for e in other.exports] != before:
            exports = differing(other.exports, run.script, c.flag, result)
            yield Run(run.script, c.argv, InvocationKind.VARIANT), exports, other


def _worth_changing(result: Result, decoders: Sequence[Export], text: str, script: str) -> list[Option]:
    """The options of which another value may give another decoder, or one where this run has none."""
    if decoders:
        deciding = [o for o in _named(result, _hung_on(decoders)) if not o.must_choose]
        return deciding + [o for o in _named(result, _made_under(decoders)) if o.kind == "switch"]
    if result.exports:
        reached = {e.site.place().line for e in result.exports if e.site.path == script}
        flags = frozenset().union(*(e.flags for e in result.exports))
        others = 0 < len(reached) < conversions(text)
        named = [f for f, o in result.flags.items() if o.kind == "switch" and says_cache(f)]
        return [o for o in _named(result, (flags if others else frozenset()).union(named)) if not o.must_choose]
    if result.started and conversions(text):  # what it starts exports, and it may, too
        return [o for o in result.flags.values() if o.kind == "switch"]
    return []


def changes(
    evaluations: Evaluations, run: Run, export: Export, turn: int, result: Result
) -> tuple[tuple[Change, ...], dict[str, list[GraphFacts]]]:
    """(changes that make a difference, what the changes of each option gave; see `twins.without_idle`).

    `turn` is that of the export among its like in the run (see `twins.numbered`).
    """
    if export.facts.kind.value is not Kind.DECODER or run.command:
        return (), {}
    out = []
    tried: dict[str, list[GraphFacts]] = {}
    deciding = deciding_flags(export.facts)
    chosen = export.facts.flags & frozenset(run.argv)  # without these it exports something else, or nothing
    named = named_flags(export.facts)
    trials = [
        *changed(run.argv, _named(result, deciding | chosen | named)),
        *counted(run.argv, _named(result, named)),
    ]
    for c in trials[:MOST_VARIANTS]:
        asked = run.kind is not InvocationKind.VARIANT or c.flag in run.argv  # else two flags away from the default
        if not (asked or c.flag in named):
            continue
        other = evaluations.evaluate(run.script, c.argv)
        if isinstance(other, str):
            continue
        same = twin(export, turn, run.script, other)
        if same is None and not other.exports:
            if not (other.exhausted or other.failed):
                tried.setdefault(c.flag, [])
            continue
        facts = same.facts if same is not None else None
        tried.setdefault(c.flag, []).extend([e.facts for e in _decoders(other)] if facts is None else [facts])
        if asked and not c.trial and c.flag in deciding and (facts is None or key(facts) != key(export.facts)):
            out.append(Change(c.text, c.flag, c.argv, facts))
    return tuple(out), tried


def _decoders(result: Result) -> list[Export]:
    """The exports of a run that are decoders, or may be."""
    return [e for e in result.exports if e.facts.kind.value is not Kind.OTHER]


def _hung_on(decoders: Sequence[Export]) -> frozenset[str]:
    """The options that a fact of a decoder depends on."""
    return frozenset().union(*(e.facts.flags for e in decoders))


def _made_under(decoders: Sequence[Export]) -> frozenset[str]:
    """The options that only decide whether a decoder is made."""
    return frozenset().union(*(e.under for e in decoders)) - _hung_on(decoders)


def _named(result: Result, flags: frozenset[str]) -> list[Option]:
    return [o for f, o in sorted(result.flags.items()) if f in flags]
