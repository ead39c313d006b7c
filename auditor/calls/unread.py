"""A call that nobody can read: what it gives, and what it says of itself by its name."""

from __future__ import annotations

from collections.abc import Iterable

from auditor.calls.effects import hand, taint
from auditor.calls.graph_edits import operated
from auditor.interpreter import Interpreter
from auditor.places import Site, here
from auditor.roles import words
from auditor.torch import last_row
from auditor.values import Args, Bound, Function, Seq, Tensor, Union, Unknown, Value, merge_flags

_READS = frozenset(
    {"get", "pop", "copy", "items", "keys", "values", "to_dict", "item", "tolist", "get_tensor", "get_slice"}
)
"""Methods of plain data that give plain data."""


def unread(it: Interpreter, function: Value, args: Args, site: Site | None) -> Unknown:
    """A call that nobody can read: its result is unknown, and so are the modules that it received."""
    name = (
        function.name
        if isinstance(function, Unknown) and function.name
        else getattr(function, "dotted", "") or "a value"
    )
    reason = function.reason if isinstance(function, Unknown) else f"the call to `{name}` cannot be read"
    places = function.places if isinstance(function, Unknown) and function.places else here(site)
    reads = isinstance(function, Unknown) and function.kind == "data" and name.rpartition(".")[2] in _READS
    result = Unknown(
        reason, f"{name}()", "data" if reads else "", places=places, flags=merge_flags([function, *args.all()])
    )
    taint(it, args, Unknown(reason, places=places))
    hand(it, name, args, Unknown(reason, places=places))
    operated(it, function, args, site)
    it.assumed.forget()
    if it.events is not None and (it.events.last_rows or type(function) is not Unknown):
        last_row.called(it, function, args, result)
    if site is not None and not reads:
        last = name.removesuffix(".default").rpartition(".")[2]
        _written_unread(it, args.all(), reason, site, last.endswith("_") and not last.endswith("__"))
    return result


_PATCHES = frozenset({"patch", "patches", "patched", "patching", "monkey", "monkeypatch", "hijack"})
_HOOKS = frozenset({"hook", "hooks"})
_REPLACES = frozenset({"apply", "inject", "override", "replace", "swap"})


def says_it_patches(dotted: str, args: Args) -> bool:
    """Whether a function that nobody can read says by its name that it changes the code of others.

    `apply_fused_kernels()` is given nothing that it could work on, so that it works on what is there.
    """
    said = words(dotted.rpartition(".")[2])
    alone = not args.pos and len(said) > 1 and said[0] in _REPLACES
    alone = alone or (not _HOOKS.isdisjoint(said) and any(isinstance(v, (Function, Bound)) for v in args.all()))
    return "()" not in dotted and (alone or not _PATCHES.isdisjoint(words(dotted)))


def _written_unread(it: Interpreter, values: Iterable[Value], reason: str, site: Site, in_place: bool = False) -> None:
    """A call that nobody can read may write to the states that it receives; `in_place` when its name says so."""
    for v in values:
        if isinstance(v, Tensor) and it.events is not None and (in_place or (v.base is not None and v.base.watched)):
            it.events.written(v, site, None, unclear=f"is handed to code that nobody can read: {reason}")
        elif isinstance(v, (Seq, Union)):
            _written_unread(it, v.items if isinstance(v, Seq) else v.options, reason, site, in_place)
