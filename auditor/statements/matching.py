"""`match`: cases and their patterns."""

from __future__ import annotations

from typing import Any

import libcst as cst

from auditor import operators
from auditor.answers import every, some
from auditor.containers.reading import get_item
from auditor.interpreter import Frame, Interpreter, RaiseSignal, Signal
from auditor.objects.instance_of import is_instance
from auditor.statements.assignments import assign
from auditor.values import Const, Instance, Mapping, Num, Seq, Value, key_of, text_of


def match_(it: Interpreter, node: cst.Match, frame: Frame) -> Signal:
    subject = it.eval(node.subject, frame)
    return _cases(it, subject, list(node.cases), frame)


def _cases(it: Interpreter, subject: Value, cases: list[cst.MatchCase], frame: Frame) -> Signal:
    for number, case in enumerate(cases):
        matched = _matches(it, case.pattern, subject, frame)
        if matched and case.guard is not None:
            matched = operators.truth(it.eval(case.guard, frame))
        if matched is False:
            continue
        if matched:
            saved = it.conditions
            it.conditions = saved | subject.flags
            try:
                return it.run_block(case.body.body, frame)
            finally:
                it.conditions = saved
        return _either_case(it, subject, case, cases[number + 1 :], frame)
    return None


def _either_case(
    it: Interpreter, subject: Value, case: cst.MatchCase, rest: list[cst.MatchCase], frame: Frame
) -> Signal:
    return it.fork([lambda: it.run_block(case.body.body, frame), lambda: _cases(it, subject, rest, frame)])


def _matches(it: Interpreter, pattern: Any, subject: Value, frame: Frame) -> bool | None:
    if isinstance(pattern, cst.MatchAs):
        if pattern.pattern is not None:
            inner = _matches(it, pattern.pattern, subject, frame)
            if inner is False:
                return False
        else:
            inner = True
        if pattern.name is not None:
            assign(it, pattern.name, subject, frame)
        return inner
    if isinstance(pattern, cst.MatchOr):
        return some([_matches(it, p.pattern, subject, frame) for p in pattern.patterns])
    if isinstance(pattern, (cst.MatchValue, cst.MatchSingleton)):
        return operators.truth(operators.compare("==", subject, it.eval(pattern.value, frame)))
    if isinstance(pattern, (cst.MatchList, cst.MatchTuple)):
        return _match_sequence(it, list(pattern.patterns), subject, frame)
    if isinstance(pattern, cst.MatchMapping):
        return _match_mapping(it, pattern, subject, frame)
    if isinstance(pattern, cst.MatchClass):
        return _match_class(it, pattern, subject, frame)
    return None


def _match_sequence(it: Interpreter, patterns: list[Any], subject: Value, frame: Frame) -> bool | None:
    if not isinstance(subject, Seq):
        return False if isinstance(subject, (Const, Mapping, Num)) else None
    if not subject.exact:
        return None
    star = next((n for n, p in enumerate(patterns) if isinstance(p, cst.MatchStar)), None)
    items = list(subject.items)
    if star is not None:
        after = len(patterns) - star - 1
        if len(items) < len(patterns) - 1:
            return False
        end = len(items) - after
        name = patterns[star].name
        if name is not None:
            assign(it, name, Seq("list", items[star:end]), frame)
        patterns, items = [*patterns[:star], *patterns[star + 1 :]], [*items[:star], *items[end:]]
    if len(patterns) != len(items):
        return False
    return every([_matches(it, p.value, v, frame) for p, v in zip(patterns, items, strict=True)])


def _match_mapping(it: Interpreter, pattern: cst.MatchMapping, subject: Value, frame: Frame) -> bool | None:
    if not isinstance(subject, Mapping):
        return False if isinstance(subject, (Const, Seq, Num)) else None
    seen: list[bool | None] = []
    for element in pattern.elements:
        try:
            value = get_item(it, subject, it.eval(element.key, frame), frame.statement.site(element))
        except RaiseSignal:
            return False
        seen.append(_matches(it, element.pattern, value, frame))
    if pattern.rest is not None:
        named = {key_of(it.eval(e.key, frame)) for e in pattern.elements}
        left = {k: v for k, v in subject.entries.items() if k not in named}
        assign(it, pattern.rest, Mapping(left, subject.rest), frame)
    return every(seen)


def _match_class(it: Interpreter, pattern: cst.MatchClass, subject: Value, frame: Frame) -> bool | None:
    cls = it.eval(pattern.cls, frame)
    seen = [is_instance(it, subject, cls)]
    if seen[0] is False:
        return False
    names: list[str | None] = [None] * len(pattern.patterns)
    if isinstance(subject, Instance) and pattern.patterns:
        try:
            listed = it.get(cls, "__match_args__", None)
        except RaiseSignal:
            return None
        names = [text_of(i) for i in listed.items] if isinstance(listed, Seq) else names
    for n, p in enumerate(pattern.patterns):
        name = names[n] if n < len(names) else None
        value = it.get(subject, name, None) if name else subject
        seen.append(_matches(it, p.value, value, frame))
    for k in pattern.kwds:
        try:
            seen.append(_matches(it, k.pattern, it.get(subject, k.key.value, None), frame))
        except RaiseSignal:
            return False
    return every(seen)
