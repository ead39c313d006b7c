"""Modules and names: what an import gives, and when a module's statements are evaluated.

A module of the sources is evaluated name by name: looking a name up runs the top-level statements that bind or mutate
it. That happens outside the journal, so that it is done once for all runs; only after a run has changed a module from
outside is it journaled and undone with the run.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping as AbcMapping
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from auditor.calls.effects import handed, spoil, spoil_settings
from auditor.calls.unread import says_it_patches, unread
from auditor.checkpoints import Checkpoints
from auditor.heap import SHARED
from auditor.interpreter import Frame, Interpreter, RaiseSignal
from auditor.joins import union
from auditor.keeping import Keeper
from auditor.modules import ModuleSource, SyntaxProblem, index
from auditor.places import Site
from auditor.sources import SourceFile, Sources, Unreadable
from auditor.torch.modules import find_module, kept_module, unknown_module
from auditor.values import (
    Args,
    Const,
    Env,
    External,
    ExternalObject,
    Instance,
    Module,
    Native,
    Unknown,
    Value,
    merge_flags,
)

FILE_PREFIX = "/@/"
_INSIDE = frozenset(f"torch.nn.functional.{n}" for n in ("linear", "embedding", "layer_norm", "rms_norm", "conv1d"))
"""Functions that PyTorch's own layers call."""
LOWERING_SET = "coremltools.converters[...] = "
"""What is called when a script puts a function or class of its own into coremltools' converters."""
_PLACEMENT = frozenset({"cuda", "cpu", "pin_memory", "is_cuda"})
"""Methods of tensors that say where one is, which changes no shape."""


@dataclass(slots=True)
class Loader:
    """The modules of one scan. `natives` maps dotted names to what this project knows of them.

    `programs` are exported programs and traced modules that a run has saved, by script and file name; `operators` the
    functions of custom operators, by dotted name and by the file that registers them.
    """

    sources: Sources
    natives: AbcMapping[str, Value]
    builtins: AbcMapping[str, Value]
    native_packages: frozenset[str]
    keeps_module: frozenset[str]
    harmless: frozenset[str]
    data: frozenset[str]
    checkpoints: Checkpoints = field(default_factory=Checkpoints)
    modules: dict[str, Module] = field(default_factory=dict)
    indexed: dict[str, ModuleSource] = field(default_factory=dict)
    externals: dict[tuple[str, tuple[Site, ...]], External] = field(default_factory=dict)
    literals: dict[int, Value] = field(default_factory=dict)
    main: Module | None = None
    argv: Value | None = None
    argv_read: bool = False
    patched: dict[str, Value] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    programs: dict[tuple[str, str], Value] = field(default_factory=dict)
    operators: dict[str, dict[str, Value]] = field(default_factory=dict)
    keeper: Keeper = field(default_factory=Keeper)
    _data_cache: dict[str, bool] = field(default_factory=dict)
    _resolved: dict[tuple[str, str, str, tuple[str, ...]], SourceFile | None] = field(default_factory=dict)

    @property
    def unread(self) -> dict[str, tuple[str, Site]]:
        """The imports without a source that the run has met so far, by package."""
        return self.keeper.met.unread

    # -- files --------------------------------------------------------------------------------------------------

    def source_of(self, file: SourceFile) -> ModuleSource:
        """The index of a file. Raises `SyntaxProblem`."""
        found = self.indexed.get(file.path)
        if found is None:
            found = self.indexed[file.path] = index(file)
        return found

    def main_module(self, path: str) -> Module:
        """A fresh module for a script that is run. Raises `Unreadable` and `SyntaxProblem`."""
        self.main = self._module(self.source_of(self.sources.read(path)), "__main__", Env())
        return self.main

    def loaded(self, it: Interpreter, name: str) -> Module | None:
        """The module that `sys.modules` has under a name, as far as it is one of the sources."""
        if name == "__main__":
            return self.main
        file = self.source_named(it, name)
        return self.modules.get(file.path) if file is not None and file.path in it.imported else None

    def source_named(self, it: Interpreter, name: str) -> SourceFile | None:
        """The source of a module that the script may import under a name."""
        return self.sources.module(name, self.main.source.file if self.main is not None else None, it.search)

    def library_module(self, path: str) -> Module:
        """The shared module of a file by its path."""
        file = self.sources.read(path)
        return self._load(file)

    def _module(self, source: ModuleSource, name: str, env: Env) -> Module:
        module = Module(name, env, source)
        env.module = module
        env.names["__name__"] = Const(name)
        env.names["__file__"] = Const(FILE_PREFIX + source.file.path)
        return module

    def _load(self, file: SourceFile) -> Module:
        found = self.modules.get(file.path)
        if found is None:
            found = self.modules[file.path] = self._module(self.source_of(file), file.name, Env(born=SHARED))
        return found

    def module_of(self, env: Env) -> Module:
        scope: Env | None = env
        while scope is not None:
            if scope.module is not None:
                return scope.module
            scope = scope.parent
        raise LookupError("a scope outside every module")

    # -- names --------------------------------------------------------------------------------------------------

    def name_in(self, it: Interpreter, module: Module, name: str) -> Value | None:
        """A module-level name, evaluating the statements that make it when they have not been yet."""
        found = module.env.names.get(name)
        if found is not None:
            if module.noted:
                self.keeper.recall(it, module, name)
            return found
        source: ModuleSource = module.source
        numbers = source.binders.get(name)
        if numbers is None:
            for n in source.stars:
                if n not in module.pending and self._run(it, module, [n]):
                    found = module.env.names.get(name)
                    if found is not None:
                        break
        elif not module.pending.issuperset(numbers):
            self._run(it, module, [n for n in numbers if n not in module.pending])
            found = module.env.names.get(name)
        if name in module.own:
            self.keeper.own = True
        return found

    def _run(self, it: Interpreter, module: Module, numbers: list[int]) -> bool:
        module.pending.update(numbers)
        try:
            return self.keeper.make(it, module, [module.source.statements[n] for n in numbers])
        finally:
            module.pending.difference_update(numbers)

    def start_run(self, argv: Value) -> None:
        self.argv_read = False
        self.argv = argv
        self.patched = {"sys.argv": argv}
        self.keeper.start_run()
        for functions in self.operators.values():
            for path in [p for p in functions if self.sources.audited(p)]:
                del functions[path]  # what a run does itself, it does again

    # -- imports ------------------------------------------------------------------------------------------------

    def import_module(self, it: Interpreter, dotted: str, importer: Module | None, site: Site) -> Value:
        top = dotted.split(".")[0]
        if top == "typing_extensions":  # the same names, for older Pythons
            return self.external(dotted.replace(top, "typing", 1), ())
        if self._is_native(dotted) or top in sys.stdlib_module_names:
            return self.external(dotted, ())
        return self._from_sources(it, dotted, importer, site) or self._missing(it, dotted, site)

    def _is_native(self, dotted: str) -> bool:
        """Whether a package or one of its parents is known by its public API, and so not read."""
        parts = dotted.split(".")
        return any(".".join(parts[:n]) in self.native_packages for n in range(1, len(parts) + 1))

    def _from_sources(self, it: Interpreter, dotted: str, importer: Module | None, site: Site) -> Module | None:
        file = importer.source.file if importer is not None else None
        key = (
            dotted,
            file.folder if file is not None else "",
            file.package if file is not None else "",
            tuple(it.search),
        )
        if key not in self._resolved:
            self._resolved[key] = self.sources.module(dotted, file, it.search)
        found = self._resolved[key]
        module = self._open(found) if found is not None else None
        if module is not None:
            self.imported(it, module)
        return module

    def imported(self, it: Interpreter, module: Module) -> None:
        """Run what a module of the audited tree does when it is imported, once a run: calls, and writes elsewhere."""
        path = module.source.file.path
        source: ModuleSource = module.source
        audited = self.sources.audited(path)
        if path not in it.imported:
            self.keeper.begins(it, module)
        if not (source.acts if audited else source.registers):
            it.imported.add(path)
            return
        self.keeper.met.imports[path] = module
        if path in it.imported:
            return
        it.imported.add(path)
        if not audited:
            for number in (n for n, s in enumerate(source.statements) if s.registers and n not in module.pending):
                made = module.env.names.keys() & source.statements[number].binds
                if not made:
                    self._run(it, module, [number])
                for name in sorted(made) if module.noted else ():
                    self.keeper.recall(it, module, name)
            return
        with self.keeper.in_run(it):
            for number, statement in enumerate(source.statements):
                waits = statement.waits and not source.ordered
                if not (waits or statement.main_guard) and number not in module.pending:
                    module.pending.add(number)
                    try:
                        self.keeper.anew(it, module, statement)
                    except RaiseSignal:
                        break
                    finally:
                        module.pending.discard(number)

    def _open(self, file: SourceFile) -> Module | None:
        try:
            return self._load(file)
        except (SyntaxProblem, Unreadable) as error:
            self.problems[file.path] = str(error)
            return None

    def _missing(self, it: Interpreter, dotted: str, site: Site) -> Value:
        """A module that no source and no knowledge of ours covers."""
        self.keeper.met.unread.setdefault(dotted.split(".")[0], (dotted, site))
        it.may_raise("ModuleNotFoundError")
        return self.external(dotted, (site,))

    def import_from(
        self,
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
            base = self.sources.relative(importer.source.file, level, dotted)
            if base is None:
                return self._missing(it, "." * level + dotted + "." + name, site)
            module: Value | None = self._open(base)
            if isinstance(module, Module):
                self.imported(it, module)
            if module is None:
                return self._unparsed(base.path, name, site)
        else:
            module = self.import_module(it, dotted, importer, site)
        if isinstance(module, External):
            return self.external(f"{module.dotted}.{name}", module.places or (site,))
        assert isinstance(module, Module)
        found = self.name_in(it, module, name)
        if found is not None:
            return found
        sub = self._submodule(it, module, name, site)
        if sub is not None:
            return sub
        getter = self.name_in(it, module, "__getattr__")
        if getter is not None:
            return it.call(getter, Args([Const(name)]), site)
        path = module.source.file.path
        moved = self._moved(it, module, name, together, site)
        if moved is not None:
            return moved
        return Unknown(
            f"`{path}` has no `{name}` (another version of the library?)", f"{dotted}.{name}", places=(site,)
        )

    def _moved(self, it: Interpreter, module: Module, name: str, together: Sequence[str], site: Site) -> Value | None:
        """A name that another module of the same package defines, and only one: the library has moved it.

        Of several such modules it is the one that has all the names which the statement looks for in vain.
        """
        path = module.source.file.path
        homes = [p for p in self.sources.siblings(path) if p != path and self._defines(p, name)]
        if len(homes) > 1:
            gone = [n for n in together if n != name and self.name_in(it, module, n) is None]
            homes = [p for p in homes if gone and all(self._defines(p, n) for n in gone)]
        if len(homes) != 1:
            return None
        home = self._open(self.sources.read(homes[0]))
        found = self.name_in(it, home, name) if home is not None else None
        if found is not None:
            it.sinks.problem(f"{site.path}:{site.line}: `{path}` has no `{name}`; taken from {homes[0]} instead", site)
        return found

    def _defines(self, path: str, name: str) -> bool:
        try:
            text = self.sources.read(path).text
        except Unreadable:
            return False
        if not any(f"{word}{name}" in text for word in ("class ", "def ", "\n")) and not text.startswith(name):
            return False  # the expression below is slow on a long file
        return re.search(rf"^(?:class {name}\b|def {name}\b|{name}\s*[:=])", text, re.MULTILINE) is not None

    def _unparsed(self, path: str, name: str, site: Site) -> Unknown:
        return Unknown(f"`{path}` could not be read: {self.problems.get(path, '')}", name, places=(site,))

    def _submodule(self, it: Interpreter, module: Module, name: str, site: Site | None) -> Value | None:
        file = module.source.file
        if not file.path.endswith(("__init__.py", "/")):
            return None
        sub = self.sources.relative(file, 1, name)
        if sub is None or site is None:
            return None
        return self._open(sub)

    def import_star(self, it: Interpreter, dotted: str, level: int, frame: Frame, site: Site) -> None:
        if level:
            base = self.sources.relative(frame.module.source.file, level, dotted)
            module: Value | None = self._open(base) if base is not None else None
        else:
            module = self.import_module(it, dotted, frame.module, site)
        if not isinstance(module, Module):
            return
        source: ModuleSource = module.source
        names = [n for n in source.binders if not n.startswith("_")]
        for n in source.stars:
            self._run(it, module, [n])
        names += [n for n in module.env.names if not n.startswith("_")]
        it.heap.touch(frame.env)
        for name in dict.fromkeys(names):
            value = self.name_in(it, module, name)
            if value is not None:
                frame.env.names.setdefault(name, value)

    def module_attribute(self, it: Interpreter, module: Module, name: str, site: Site | None) -> Value:
        found = self.name_in(it, module, name)
        if found is not None:
            return found
        sub = self._submodule(it, module, name, site)
        if sub is not None:
            return sub
        if name in ("__doc__", "__spec__", "__path__", "__dict__"):
            return Unknown(f"`{name}` of a module", name, "str" if name == "__doc__" else "")
        if module.source.stars:
            return Unknown(f"a name from `import *` in {module.source.file.path}", name, places=(site,) if site else ())
        raise RaiseSignal("AttributeError")

    # -- libraries without sources --------------------------------------------------------------------------------

    def external(self, dotted: str, places: tuple[Site, ...] = ()) -> Value:
        patched = self.patched.get(dotted)
        if patched is not None:
            self.keeper.own = True
            self.argv_read = self.argv_read or dotted == "sys.argv"
            return patched
        known = self.natives.get(dotted)
        if known is not None:
            return known
        if dotted.startswith("transformers.") and dotted.endswith(("ForCausalLM", "LMHeadModel")):
            return self.natives["transformers.AutoModelForCausalLM"]
        found = self.externals.get((dotted, places))
        if found is None:
            found = self.externals[dotted, places] = External(dotted, places=places)
        return found

    def replaced(self) -> bool:
        """Whether the script has replaced something of a library without sources, or its command line."""
        return len(self.patched) > 1 or self.patched.get("sys.argv") is not self.argv

    def restored(self) -> dict[str, Value]:
        """Take back what the script has replaced. Gives what it was."""
        replaced, self.patched = self.patched, {} if self.argv is None else {"sys.argv": self.argv}
        return replaced

    def patch_external(self, it: Interpreter, dotted: str, value: Value) -> None:
        """The script replaces something of a library without sources: honoured for the rest of the run."""
        if dotted == "sys.argv" and len(it.heap.frames) > 1 and dotted in self.patched:
            value = union([self.patched[dotted], value])  # set in one of several worlds
        self.keeper.own = True
        self.patched[dotted] = value
        if dotted in _INSIDE or (dotted.startswith("torch.Tensor.") and dotted.rpartition(".")[2] not in _PLACEMENT):
            it.poison = Unknown(f"`{dotted}`, which layers call, is replaced")
        if dotted.startswith("coremltools.converters."):
            name = dotted.rpartition("[")[2].rstrip("]").rpartition(".")[2]
            it.call(self.natives[LOWERING_SET], Args([value, Const(name)]), None)

    def define_operator(self, dotted: str, function: Value, path: str) -> None:
        """A file registers what a custom operator computes; of several functions (one a device) it may be any."""
        self.keeper.own = self.keeper.own or self.sources.audited(path)
        functions = self.operators.setdefault(dotted, {})
        functions[path] = union([functions[path], function]) if path in functions else function

    def _operator(self, it: Interpreter, dotted: str) -> Value | None:
        """What a custom operator computes, when a file that this run has imported says so."""
        functions = self.operators.get(dotted, {})
        found = [f for path, f in functions.items() if path in it.imported or self.sources.audited(path)]
        return union(found) if found else None

    def call_external(
        self, it: Interpreter, function: External, args: Args, site: Site | None, receiver: ExternalObject | None = None
    ) -> Value:
        dotted = function.dotted
        known = self.patched.get(dotted) or self.natives.get(dotted) or self._operator(it, dotted)
        if known is not None and known is not function:
            return it.call(known, args, site)
        if dotted in self.keeps_module or "*." + dotted.rsplit(".", 1)[-1] in self.keeps_module:
            module = kept_module(args) or unknown_module(args)
            if module is not None:
                return module
        last = dotted.rsplit(".", 1)[-1]
        top = dotted.split(".")[0]
        if self.is_data(dotted):
            return Unknown(
                f"`{dotted}()` is known at run time only",
                f"{last}()",
                "data",
                places=(site,) if site else (),
                flags=merge_flags(args.all()),
            )
        if dotted in self.harmless or top in self.harmless:
            return self._opaque(dotted, args, site, "unread")
        if top in sys.stdlib_module_names:
            handed(it, args, Unknown(f"`{dotted}` may run what it receives", places=(site,) if site else ()))
            return self._opaque(dotted, args, site, "")
        if last[:1].isupper() and not dotted.startswith("torch.ops.") and find_module(args) is None:
            return ExternalObject(
                dotted, args, places=function.places or ((site,) if site else ()), flags=merge_flags(args.all())
            )
        missing = self._reason(function)
        cause = Unknown(missing, places=function.places or ((site,) if site else ()))
        spoil(it, args, cause)
        spoil_settings(it, dotted, args, cause)
        it.may_raise("Exception")
        if it.events is None and says_it_patches(dotted, args):
            it.poison = it.poison or Unknown(
                f"{missing}, and may replace what layers call", places=(site,) if site else ()
            )
        return unread(it, Unknown(missing, dotted, places=function.places or ((site,) if site else ())), args, site)

    def lacking(self, top: str) -> str:
        """What could not be imported of a package, and where its library has a module of that name instead."""
        dotted, _ = self.unread[top]
        path = self._home(dotted)
        return f"`{dotted}`, which the library has as {path} (another version?)," if path else f"`{top}`"

    def _home(self, dotted: str) -> str:
        """Where the sources have a module that an import does not find; empty when they have none."""
        if dotted not in self.moved:
            self.moved[dotted] = next(iter(self.sources.elsewhere(dotted)), "")
        return self.moved[dotted]

    def is_data(self, dotted: str) -> bool:
        """Whether calling `dotted` gives plain data: listed by name, by package or by pattern."""
        found = self._data_cache.get(dotted)
        if found is None:
            packages = {dotted, dotted.split(".")[0]}
            found = bool(packages & self.data) or any("*" in p and fnmatchcase(dotted, p) for p in self.data)
            self._data_cache[dotted] = found
        return found

    def _reason(self, function: External) -> str:
        top = function.dotted.lstrip(".").split(".")[0].removesuffix("()")
        if top in self.unread:
            needed = f"`{function.dotted}` is needed"
            if self._home(self.unread[top][0]):
                return f"the import of {self.lacking(top)} could not be resolved ({needed})"
            return f"the import of `{top}` could not be resolved ({needed}): give its source with --library"
        return f"the call to `{function.dotted}` cannot be read"

    def _opaque(self, dotted: str, args: Args, site: Site | None, kind: str) -> Value:
        last = dotted.rsplit(".", 1)[-1]
        if last[:1].isupper() and not last.endswith("()"):
            return ExternalObject(dotted, args, places=(site,) if site else (), flags=merge_flags(args.all()))
        return Unknown(
            f"`{dotted}()` is known at run time only",
            f"{dotted}()",
            kind,
            places=(site,) if site else (),
            flags=merge_flags(args.all()),
        )


__all__ = ["FILE_PREFIX", "Instance", "Loader", "Native", "union"]
