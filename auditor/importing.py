"""What `import` statements bind, and what a module does when it is imported."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from auditor.interpreter import Frame, Interpreter, RaiseSignal
from auditor.modules import ModuleSource
from auditor.places import Site, here
from auditor.sources import Unreadable
from auditor.values import Args, Const, External, Module, Unknown, Value


def import_module(it: Interpreter, dotted: str, importer: Module | None, site: Site) -> Value:
    """What `import dotted` finds, for the module that imports: one of the sources, or a library without."""
    top = dotted.split(".")[0]
    if top == "typing_extensions":  # the same names, for older Pythons
        return it.loader.external(dotted.replace(top, "typing", 1), ())
    if it.loader.is_native(dotted) or top in sys.stdlib_module_names:
        return it.loader.external(dotted, ())
    return _from_sources(it, dotted, importer, site) or _missing(it, dotted, site)


def _from_sources(it: Interpreter, dotted: str, importer: Module | None, site: Site) -> Module | None:
    if importer is not None:
        for end in (at for at, char in enumerate(dotted) if char == "."):
            package = _audited(it, importer.source, 0, dotted[:end])
            if package is not None:
                imported(it, package)
    found = it.loader.resolve(dotted, importer.source.file if importer is not None else None, it.search)
    module = it.loader.opened(found) if found is not None else None
    if module is not None:
        imported(it, module)
    elif found is not None:
        it.loader.refused[dotted] = found.path
    return module


def imported(it: Interpreter, module: Module) -> None:
    """Run what a module of the audited tree does when it is imported, once a run: calls, and writes elsewhere."""
    path = module.source.file.path
    source: ModuleSource = module.source
    keeper = it.loader.keeper
    audited = it.loader.sources.audited(path)
    if path not in it.imported:
        keeper.begins(it, module)
    if not (source.acts if audited else source.registers):
        if audited and path not in it.imported:
            it.imported.add(path)
            _passed_on(it, source)
        it.imported.add(path)
        return
    keeper.met.imports[path] = module
    if path in it.imported:
        return
    it.imported.add(path)
    if not audited:
        for number in (n for n, s in enumerate(source.statements) if s.registers and n not in module.pending):
            made = module.env.names.keys() & source.statements[number].binds
            if not made:
                it.loader.evaluate(it, module, [number])
            for name in sorted(made) if module.noted else ():
                keeper.recall(it, module, name)
        return
    with keeper.in_run(it):
        for number, statement in enumerate(source.statements):
            waits = statement.waits and not source.ordered
            if not (waits or statement.main_guard) and number not in module.pending:
                module.pending.add(number)
                try:
                    keeper.anew(it, module, statement)
                except RaiseSignal:
                    break
                finally:
                    module.pending.discard(number)


def _passed_on(it: Interpreter, source: ModuleSource) -> None:
    """What the imports of a module do that does nothing else when it is imported."""
    for level, dotted, names in source.imports:
        for name in (dotted, *(f"{dotted}.{name}".lstrip(".") for name in names)):
            module = _audited(it, source, level, name)
            if module is not None:
                imported(it, module)


def _audited(it: Interpreter, source: ModuleSource, level: int, dotted: str) -> Module | None:
    """A module of the audited tree, if that is what an import in a file finds."""
    top = dotted.split(".")[0]
    if level:
        found = it.loader.sources.relative(source.file, level, dotted)
    elif it.loader.is_native(dotted) or top in sys.stdlib_module_names:
        return None
    else:
        found = it.loader.resolve(dotted, source.file, it.search)
    if found is None or found.path.endswith("/") or not it.loader.sources.audited(found.path):
        return None
    return it.loader.opened(found)


def _missing(it: Interpreter, dotted: str, site: Site) -> Value:
    """A module that no source and no knowledge of ours covers.

    One that the library has elsewhere is that of another version: where the script is made for either, it says how.
    """
    if it.maybe_raised and it.maybe_raised[-1].imports and it.loader.has_moved(dotted):
        raise RaiseSignal("ModuleNotFoundError")
    it.loader.keeper.met.unread.setdefault(dotted.split(".")[0], (dotted, site))
    it.may_raise("ModuleNotFoundError")
    return it.loader.external(dotted, (site,))


def import_from(
    it: Interpreter,
    dotted: str,
    level: int,
    name: str,
    importer: Module,
    site: Site,
    together: Sequence[str] = (),
) -> Value:
    """What `from dotted import name` binds; `together` are all names that the statement imports."""
    if level:
        base = it.loader.sources.relative(importer.source.file, level, dotted)
        if base is None:
            return _missing(it, "." * level + dotted + "." + name, site)
        module: Value | None = it.loader.opened(base)
        if isinstance(module, Module):
            imported(it, module)
        if module is None:
            return _unparsed(it, base.path, name, site)
    else:
        module = import_module(it, dotted, importer, site)
    if isinstance(module, External):
        return it.loader.external(f"{module.dotted}.{name}", module.places or (site,))
    assert isinstance(module, Module)
    found = it.loader.name_in(it, module, name)
    if found is not None:
        return found
    sub = _submodule(it, module, name, site)
    if sub is not None:
        return sub
    getter = it.loader.name_in(it, module, "__getattr__")
    if getter is not None:
        return it.call(getter, Args([Const(name)]), site)
    path = module.source.file.path
    moved = _moved(it, module, name, together, site)
    if moved is not None:
        return moved
    return Unknown(f"`{path}` has no `{name}` (another version of the library?)", f"{dotted}.{name}", places=(site,))


def _moved(it: Interpreter, module: Module, name: str, together: Sequence[str], site: Site) -> Value | None:
    """A name that another module of the same package defines, and only one: the library has moved it.

    Of several such modules it is the one that has all the names which the statement looks for in vain.
    """
    path = module.source.file.path
    homes = [p for p in it.loader.sources.siblings(path) if p != path and _defines(it, p, name)]
    if len(homes) > 1:
        gone = [n for n in together if n != name and it.loader.name_in(it, module, n) is None]
        homes = [p for p in homes if gone and all(_defines(it, p, n) for n in gone)]
    if len(homes) != 1:
        return None
    home = it.loader.opened(it.loader.sources.read(homes[0]))
    found = it.loader.name_in(it, home, name) if home is not None else None
    if found is not None:
        it.sinks.problem(f"{site.path}:{site.line}: `{path}` has no `{name}`; taken from {homes[0]} instead", site)
    return found


def _defines(it: Interpreter, path: str, name: str) -> bool:
    try:
        text = it.loader.sources.read(path).text
    except Unreadable:
        return False
    if not any(f"{word}{name}" in text for word in ("class ", "def ", "\n")) and not text.startswith(name):
        return False  # the expression below is slow on a long file
    return re.search(rf"^(?:class {name}\b|def {name}\b|{name}\s*[:=])", text, re.MULTILINE) is not None


def _unparsed(it: Interpreter, path: str, name: str, site: Site) -> Unknown:
    return Unknown(f"`{path}` could not be read: {it.loader.problems.get(path, '')}", name, places=(site,))


def _submodule(it: Interpreter, module: Module, name: str, site: Site | None) -> Value | None:
    file = module.source.file
    if not file.path.endswith(("__init__.py", "/")):
        return None
    sub = it.loader.sources.relative(file, 1, name)
    if sub is None or site is None:
        return None
    return it.loader.opened(sub) or _unparsed(it, sub.path, name, site)


def import_star(it: Interpreter, dotted: str, level: int, frame: Frame, site: Site) -> None:
    """Bind what `from dotted import *` does."""
    if level:
        base = it.loader.sources.relative(frame.module.source.file, level, dotted)
        module: Value | None = it.loader.opened(base) if base is not None else None
    else:
        module = import_module(it, dotted, frame.module, site)
    if not isinstance(module, Module):
        return
    source: ModuleSource = module.source
    names = [n for n in source.binders if not n.startswith("_")]
    for n in source.stars:
        it.loader.evaluate(it, module, [n])
    names += [n for n in module.env.names if not n.startswith("_")]
    it.heap.touch(frame.env)
    for name in dict.fromkeys(names):
        value = it.loader.name_in(it, module, name)
        if value is not None:
            frame.env.names.setdefault(name, value)


def module_attribute(it: Interpreter, module: Module, name: str, site: Site | None) -> Value:
    """`module.name`. Raises `RaiseSignal` when a module that was read has none."""
    found = it.loader.name_in(it, module, name)
    if found is not None:
        return found
    sub = _submodule(it, module, name, site)
    if sub is not None:
        return sub
    if name in ("__doc__", "__spec__", "__path__", "__dict__"):
        return Unknown(f"`{name}` of a module", name, "str" if name == "__doc__" else "")
    if module.source.stars:
        return Unknown(f"a name from `import *` in {module.source.file.path}", name, places=here(site))
    raise RaiseSignal("AttributeError")
