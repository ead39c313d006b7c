"""The items of any container by the methods behind `[]`, `del` and `in`."""

from __future__ import annotations

from auditor import operators
from auditor.containers.reading import get_item
from auditor.containers.writing import delete_item, set_item
from auditor.interpreter import Handler, Interpreter
from auditor.places import Site
from auditor.values import NONE, Args, Value


def _set_item(it: Interpreter, args: Args, site: Site | None) -> Value:
    assert site is not None
    set_item(it, args.pos[0], args.pos[1], it.tag(args.pos[2]), site)
    return NONE


def _get_item(it: Interpreter, args: Args, site: Site | None) -> Value:
    assert site is not None
    return get_item(it, args.pos[0], args.pos[1], site)


def _delete_item(it: Interpreter, args: Args, site: Site | None) -> Value:
    assert site is not None
    delete_item(it, args.pos[0], args.pos[1], site)
    return NONE


ITEMS: dict[str, Handler] = {
    "__setitem__": _set_item,
    "__getitem__": _get_item,
    "__delitem__": _delete_item,
    "__contains__": lambda it, args, site: operators.compare("in", args.pos[1], args.pos[0]),
}
