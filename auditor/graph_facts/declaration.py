"""An export call as a framework reads it: what facts of a graph are computed from."""

from __future__ import annotations

from collections.abc import Mapping as AbcMapping
from collections.abc import Sequence
from dataclasses import dataclass

from auditor.places import Site
from auditor.values import External, Seq, Union, Unknown, Value, each_once, is_given, text_of

SAVED = "(saved)"
"""The name of a program that is one of several that the script has saved itself."""


@dataclass(frozen=True, slots=True)
class Dimension:
    """What an input's declaration says of one axis: a range, or a fixed size (None when it is not known).

    `unread`: whether it is one or the other is not known; it counts as fixed where it is not the query that lies there.
    """

    dynamic: bool
    size: int | None = None
    widths: tuple[int, ...] = ()
    label: str = ""
    source: Value | None = None
    unread: bool = False


@dataclass(frozen=True, slots=True)
class Declared:
    """One declared input: its axes that are not fixed (None when that is not known), and the example value.

    `parameter` is the parameter of `forward` that it is bound to, when that has another name.
    """

    name: str
    value: Value
    axes: dict[int, Dimension] | None
    source: Value | None = None
    parameter: str = ""

    @property
    def varying(self) -> frozenset[int]:
        """The axes of which it is known that they are not fixed."""
        return frozenset(n for n, x in (self.axes or {}).items() if not x.unread)


@dataclass(frozen=True, slots=True)
class Declaration:
    """An export call, as its framework reads it.

    `state_names` is None when the call names none (states are then what `forward` writes), an `Unknown` when they are
    not known. `input_names` are the names of the inputs that are no states, when given. `traced` holds the example
    inputs of `torch.jit.trace` by parameter, as far as they are known; None when the module is not traced.
    """

    module: Value
    inputs: tuple[Declared, ...]
    input_names: tuple[str, ...] | None
    output_names: tuple[str, ...] | None
    state_names: tuple[str, ...] | Unknown | None
    state_source: Value | None
    more: Unknown | None
    site: Site
    input_source: Value | None = None
    core_ml: bool = False
    traced: AbcMapping[str, Value] | None = None
    output_source: Value | None = None


WRITTEN = "graph_signature.mutated"
"""How unknown state names are called that are those of what `forward` writes, as `torch.export` has listed it."""


def names_of(value: Value | None) -> tuple[str, ...] | Unknown | None:
    """A sequence of names: None when it is not given, an `Unknown` when it is not known."""
    if not is_given(value):
        return None
    if isinstance(value, Union):
        found = [names_of(o) for o in value.options]
        if all(f == found[0] for f in found):
            return found[0]
        return Unknown("the names are one of several", places=value.places, flags=value.flags)
    if isinstance(value, Seq):
        if value.rest is not None:
            return value.rest
        out: list[str] = []
        for one in each_once(value.items):
            text = text_of(one)
            if text is None:
                return Unknown("a name that is not known", places=one.places or value.places)
            out.append(text)
        return tuple(out)
    if isinstance(value, Unknown):
        return value
    if isinstance(value, External):
        reason = f"`{value.dotted}` is needed, and its source is not among those read: give it with --library"
        return Unknown(reason, places=value.places)
    return Unknown("the names are not known", places=value.places)


def names_given(declarations: Sequence[Declaration]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of inputs and outputs, where all declarations of a graph agree on them."""
    inputs = {d.input_names or tuple(i.name for i in d.inputs) for d in declarations}
    outputs = {d.output_names or () for d in declarations}
    return inputs.pop() if len(inputs) == 1 else (), outputs.pop() if len(outputs) == 1 else ()
