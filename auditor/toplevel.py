"""What a top-level statement binds, changes and does, read off Python's own syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import Any

Effect = tuple[str, str]
"""A name of the module, and `bind` or `mutate`."""

Import = tuple[int, str, tuple[str, ...]]
"""How many dots, the dotted name behind them, and what is imported from there: nothing by `import x`."""

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def effects(node: ast.stmt) -> Iterator[Effect]:
    """The names that the statement binds or mutates, those of its blocks included; `*` for all names of a module."""
    own = _OWN.get(type(node))
    if own is not None:
        yield from own(node)
    if not isinstance(node, DEFINITIONS):
        for inner in inside(node):
            yield from effects(inner)


def inside(node: ast.stmt) -> Iterator[ast.stmt]:
    """The statements in the blocks of a compound statement that is no definition."""
    for block in ("body", "orelse", "finalbody"):
        yield from getattr(node, block, ())
    for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield from part.body


def _definition(node: Any) -> Iterator[Effect]:
    yield node.name, "bind"
    yield from ((d.partition(".")[0], "mutate") for d in _decorators(node) if _commands(d))


def _import(node: ast.Import) -> Iterator[Effect]:
    return ((a.asname or a.name.split(".")[0], "bind") for a in node.names)


def _import_from(node: ast.ImportFrom) -> Iterator[Effect]:
    return ((a.asname or a.name, "bind") for a in node.names)


def _assign(node: ast.Assign) -> Iterator[Effect]:
    return (effect for target in node.targets for effect in _target(target))


def _annotated(node: ast.AnnAssign) -> Iterator[Effect]:
    return iter(()) if node.value is None else _target(node.target)


def _augmented(node: ast.AugAssign) -> Iterator[Effect]:
    return ((name, "mutate") for name, _ in _target(node.target))


def _delete(node: ast.Delete) -> Iterator[Effect]:
    return ((name, "mutate") for target in node.targets for name, _ in _target(target))


def _call(node: ast.Expr) -> Iterator[Effect]:
    """`rows.append(x)`, `table["a"].update(b)`: what the method is called on may change."""
    if isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
        yield from _root(node.value.func.value)


def _root(value: ast.expr) -> Iterator[Effect]:
    while isinstance(value, (ast.Attribute, ast.Subscript, ast.Call)):
        value = value.func if isinstance(value, ast.Call) else value.value
    if isinstance(value, ast.Name):
        yield value.id, "mutate"


def _for(node: Any) -> Iterator[Effect]:
    return _target(node.target)


def _with(node: Any) -> Iterator[Effect]:
    bound = (item.optional_vars for item in node.items)
    return (effect for target in bound if target is not None for effect in _target(target))


def _try(node: Any) -> Iterator[Effect]:
    return ((handler.name, "bind") for handler in node.handlers if handler.name is not None)


def _match(node: ast.Match) -> Iterator[Effect]:
    for part in (part for case in node.cases for part in ast.walk(case.pattern)):
        captured = part.rest if isinstance(part, ast.MatchMapping) else getattr(part, "name", None)
        if captured is not None:
            yield captured, "bind"


_OWN: dict[type[ast.stmt], Callable[[Any], Iterator[Effect]]] = {
    **dict.fromkeys(DEFINITIONS, _definition),
    ast.Import: _import,
    ast.ImportFrom: _import_from,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.Delete: _delete,
    ast.Expr: _call,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Try: _try,
    ast.TryStar: _try,
    ast.Match: _match,
}


def _target(target: ast.expr) -> Iterator[Effect]:
    """What is assigned to: a name is bound, and what an attribute or an item belongs to is mutated."""
    match target:
        case ast.Name(id=name):
            yield name, "bind"
        case ast.Tuple(elts=items) | ast.List(elts=items):
            for item in items:
                yield from _target(item)
        case ast.Starred(value=value):
            yield from _target(value)
        case ast.Attribute(value=value) | ast.Subscript(value=value):
            while isinstance(value, (ast.Attribute, ast.Subscript)):
                value = value.value
            if isinstance(value, ast.Name):
                yield value.id, "mutate"


def imports(body: Iterable[ast.stmt]) -> Iterator[Import]:
    """The imports that run when the file is imported: those of its blocks as well, but for the checker of types."""
    for node in body:
        if isinstance(node, ast.Import):
            yield from ((0, alias.name, ()) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.level, node.module or "", tuple(alias.name for alias in node.names)
        elif not isinstance(node, DEFINITIONS) and not _is_for_types(node):
            yield from imports(inside(node))


def _is_for_types(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def walruses(node: ast.AST) -> Iterator[str]:
    """The module-level names that `:=` binds inside a statement."""
    if isinstance(node, ast.NamedExpr):
        yield node.target.id
    if not isinstance(node, (*DEFINITIONS, ast.Lambda)):
        for child in ast.iter_child_nodes(node):
            yield from walruses(child)


def is_main_guard(node: ast.stmt) -> bool:
    """Whether it is `if __name__ == "__main__":`, or another test of that name."""
    return isinstance(node, ast.If) and "__name__" in ast.dump(node.test)


def has_effect(node: ast.stmt) -> bool:
    """Whether running the statement may change something outside its own names: a call, or a write to an attribute."""
    match node:
        case ast.Expr(value=ast.Call()):
            return True
        case ast.Assign(targets=targets):
            return any(isinstance(t, (ast.Attribute, ast.Subscript)) for t in targets)
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
            return isinstance(target, (ast.Attribute, ast.Subscript))
        case ast.Delete():
            return True
    if isinstance(node, DEFINITIONS) or is_main_guard(node):
        return False
    return any(map(has_effect, inside(node)))


def registers(node: ast.stmt) -> bool:
    """Whether a decorator puts what the statement defines into a table."""
    if not isinstance(node, DEFINITIONS):
        return False
    return any("regist" in n.lower() or n.rpartition(".")[2] in ("impl", "custom_op") for n in _decorators(node))


def _decorators(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> list[str]:
    return [ast.unparse(d.func if isinstance(d, ast.Call) else d) for d in node.decorator_list]


def _commands(decorator: str) -> bool:
    """Whether it puts a function into a group of commands: `@app.command()`, where `@click.command()` makes one."""
    group, _, method = decorator.rpartition(".")
    return method in ("command", "callback", "group") and group not in ("", "click", "typer")
