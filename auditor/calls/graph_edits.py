"""Edits of the graph of an exported program, after which it is not what `forward` computes."""

from __future__ import annotations

from typing import TypeGuard

from auditor.interpreter import Interpreter
from auditor.places import Site, here
from auditor.values import Args, Const, External, Native, Seq, Unknown, Value

GRAPHS = frozenset(f"`{name}` of an exported program" for name in ("graph", "graph_module"))
"""Why the graph of a program, and whatever is taken out of it, is not known (see `torch_export`)."""

_EDITS = frozenset(
    {"replace_input_with", "replace_all_uses_with", "update_arg", "update_kwarg", "insert_arg", "erase_node", "append"}
    | {"call_function", "call_method", "call_module", "create_node", "output", "node_copy", "graph_copy", "prepend"}
    | {"inserting_before", "inserting_after", "recompile"}
)
"""Methods by which a graph is changed."""


def operated(it: Interpreter, function: Value, args: Args, site: Site | None) -> None:
    """A graph of an exported program may be changed by a call: what it computes is then not what `forward` does.

    Passes that rewrite a graph and mean the same are common; what has looked for the outputs, makes an operation that
    takes rows out of others, or cannot be read, may mean another thing.
    """
    method = function.name.rpartition(".")[2] if _of_graph(function) else ""
    given = any(map(_of_graph, args.all())) and not method
    it.outputs_sought = it.outputs_sought or method == "output_node"
    if given or (method in _EDITS and it.outputs_sought) or (method in _MAKES and _takes_rows(args)):
        _poisoned(it, site)


_MAKES = frozenset({"call_function", "create_node"})
_TAKING = frozenset(
    {"slice", "select", "narrow", "index", "index_select", "gather", "mean", "sum", "amax", "max", "argmax", "topk"}
    | {"cumsum", "roll", "flip", "select_scatter", "slice_scatter", "index_put", "zeros_like", "full_like"}
)
"""Operators whose result may have other rows than what goes in."""


def _takes_rows(args: Args) -> bool:
    """Whether a node is made of an operator that may take rows out of others.

    One that works on the first axis does not (that of the layers or of the batch), nor one that begins at the start.
    """
    made = [v for v in args.all() if isinstance(v, (External, Native))]
    name = (made[0].dotted if isinstance(made[0], External) else made[0].name) if made else ""
    if _TAKING.isdisjoint(name.split(".")):
        return False
    given = next((v for v in args.all() if isinstance(v, Seq) and v.kind == "tuple"), None)
    settings = [i.value for i in given.items[1:] if isinstance(i, Const)] if given is not None else []
    return not any(type(s) is int and s == 0 for s in settings[:2])


def edited(it: Interpreter, obj: Value, site: Site | None) -> None:
    """A part of an exported program's graph is set."""
    if _of_graph(obj) and it.outputs_sought:
        _poisoned(it, site)


def sought(it: Interpreter, a: Value, b: Value) -> None:
    """`node.op == "output"`."""
    named = b.items if isinstance(b, Seq) else [b]
    if _of_graph(a) and any(isinstance(n, Const) and n.value == "output" for n in named):
        it.outputs_sought = True


def _of_graph(v: Value) -> TypeGuard[Unknown]:
    return isinstance(v, Unknown) and v.reason in GRAPHS


def _poisoned(it: Interpreter, site: Site | None) -> None:
    places = here(site)
    it.poison = it.poison or Unknown("the graph of an exported program is edited", places=places)
