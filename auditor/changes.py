"""Command lines with one option changed: the variants of a script, and the counterfactuals of a fix."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from auditor.stdlib.options.option import Option
from auditor.values import Const, text_of

_MOST_CHOICES = 6


@dataclass(frozen=True, slots=True)
class Changed:
    """`text` says the change as an instruction; `argv` is the command line with it.

    A `trial` only shows whether the option makes a difference.
    """

    text: str
    flag: str
    argv: tuple[str, ...]
    trial: bool = False


def changed(argv: tuple[str, ...], options: Iterable[Option]) -> Iterator[Changed]:
    """One change for each switch, one for each other choice of an option that has choices."""
    for option in options:
        if option.kind == "switch":
            yield _switched(argv, option)
        elif option.kind == "choice":
            yield from _chosen(argv, option)


def counted(argv: tuple[str, ...], options: Iterable[Option]) -> Iterator[Changed]:
    """A trial for each option that takes a number: one more than it is."""
    for option in options:
        if option.kind != "value" or option.action != "store" or option.positional:
            continue
        place = next((n + 1 for n, word in enumerate(argv[:-1]) if word in option.names), None)
        default = option.settings.get("default")
        now = argv[place] if place is not None else str(default.value) if isinstance(default, Const) else ""
        if now.isdecimal():
            more = str(int(now) + 1)
            words = (*argv, option.flag, more) if place is None else (*argv[:place], more, *argv[place + 1 :])
            yield Changed(f"use {option.flag} {more}", option.flag, words, trial=True)


def _switched(argv: tuple[str, ...], option: Option) -> Changed:
    present = [a for a in argv if a in option.names]
    if present:
        return Changed(f"drop {option.flag}", option.flag, tuple(a for a in argv if a not in option.names))
    negative = option.off
    if option.action == "boolean" and negative in argv:
        return Changed(f"drop {negative}", option.flag, tuple(a for a in argv if a != negative))
    default = option.settings.get("default")
    if option.action == "boolean" and isinstance(default, Const) and default.value:
        return Changed(f"pass {negative}", option.flag, (*argv, negative))
    return Changed(f"pass {option.flag}", option.flag, (*argv, option.flag))


def _chosen(argv: tuple[str, ...], option: Option) -> Iterator[Changed]:
    choices = [t for t in (text_of(c) for c in option.choices or ()) if t]
    current, place = _current(argv, option, choices)
    default = text_of(option.settings["default"]) if "default" in option.settings else None
    for choice in [c for c in choices if c not in (current, None if current else default)][:_MOST_CHOICES]:
        if place is not None:
            new = (*argv[:place], choice, *argv[place + 1 :])
        else:
            new = (choice, *argv) if option.positional else (*argv, option.flag, choice)
        label = choice if option.positional else f"{option.flag} {choice}"
        yield Changed(f"use {label}", option.flag, new)


def _current(argv: tuple[str, ...], option: Option, choices: list[str]) -> tuple[str | None, int | None]:
    """The choice that the command line makes, and where it stands."""
    for n, word in enumerate(argv):
        if option.positional and word in choices and (n == 0 or not argv[n - 1].startswith("-")):
            return word, n
        if word in option.names and n + 1 < len(argv):
            return argv[n + 1], n + 1
    return None, None
