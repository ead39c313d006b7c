"""Expectations of a configuration: what the verdict of a model has to stay."""

from __future__ import annotations

import difflib
import enum
import fnmatch
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rules.facts import FileResult, FileStatus
from rules.models import Model
from rules.verdict import Verdict


class FailOn(enum.StrEnum):
    """When a scan has something to report; each level includes those before it."""

    NEVER = "never"
    EXPECT = "expect"
    OUT = "out"
    UNRESOLVED = "unresolved"


@dataclass(frozen=True, slots=True)
class Expectation:
    """`model` is a model's identifier, the table of its recipe alone, or a pattern (`*`) over either."""

    model: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Broken:
    """An expectation that does not hold. `got` is None when no model goes by that name."""

    expectation: Expectation
    model: str
    got: Verdict | None
    message: str


def broken(expectations: Iterable[Expectation], models: Sequence[Model]) -> tuple[Broken, ...]:
    """The expectations that do not hold, in the configuration's order."""
    found: list[Broken] = []
    for expectation in expectations:
        matching = [model for model in models if matches(expectation.model, model.id)]
        if not matching:
            found.append(Broken(expectation, expectation.model, None, _missing(expectation.model, models)))
        for model in matching:
            if model.verdict is not expectation.verdict:
                message = f"{model.id} must be {expectation.verdict} and is {model.verdict}"
                found.append(Broken(expectation, model.id, model.verdict, message))
    return tuple(found)


def counts(level: FailOn, verdict: Verdict) -> bool:
    """Whether a verdict alone is something to report at `level`."""
    if verdict is Verdict.OUT:
        return level in (FailOn.OUT, FailOn.UNRESOLVED)
    return verdict is Verdict.UNRESOLVED and level is FailOn.UNRESOLVED


def fails(
    level: FailOn, models: Iterable[Model], broken_expectations: Sequence[Broken], files: Iterable[FileResult]
) -> bool:
    """Whether there is something to report at `level`. A file that could not be read is unresolved.

    `models` are those whose verdict is not silenced.
    """
    if level is FailOn.NEVER:
        return False
    unread = any(file.status is FileStatus.ERROR for file in files)
    if level is FailOn.UNRESOLVED and unread:
        return True
    return bool(broken_expectations) or any(counts(level, model.verdict) for model in models)


def matches(pattern: str, identifier: str) -> bool:
    """Whether `pattern` names the model, by its identifier or by its recipe's table; `*` stands for any text."""
    names = (identifier, identifier.rpartition("#")[2])
    if "*" not in pattern:
        return pattern in names
    # Brackets and question marks are part of identifiers.
    form = pattern.replace("[", "[[]").replace("?", "[?]")
    return any(fnmatch.fnmatchcase(name, form) for name in names)


def _missing(name: str, models: Sequence[Model]) -> str:
    known = [model.id for model in models] + [model.id.rpartition("#")[2] for model in models if model.recipe]
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return f"no model is called {name!r}{hint}"
