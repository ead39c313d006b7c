"""Modules by file and by name, when their statements are evaluated, and what is known of libraries without sources.

A module of the sources is evaluated name by name: looking a name up runs the top-level statements that bind or mutate
it. That happens outside the journal, so that it is done once for all runs; only after a run has changed a module from
outside is it journaled and undone with the run.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping as AbcMapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from auditor.checkpoints import Checkpoints
from auditor.dims import Atom
from auditor.heap import SHARED
from auditor.interpreter import Interpreter
from auditor.joins import union
from auditor.keeping import Keeper
from auditor.modules import ModuleSource, SyntaxProblem, index
from auditor.places import Site
from auditor.sources import SourceFile, Sources, Unreadable
from auditor.values import Args, Const, Env, External, Module, NativeClass, Unknown, Value

FILE_PREFIX = "/@/"
_INSIDE = frozenset(f"torch.nn.functional.{n}" for n in ("linear", "embedding", "layer_norm", "rms_norm", "conv1d"))
"""Functions that PyTorch's own layers call."""
LOWERING_SET = "coremltools.converters[...] = "
"""What is called when a script puts a function or class of its own into coremltools' converters."""
GIVEN_SHAPES = "...(dynamic_shapes=)"
"""What is called when a function that nobody can read is given dynamic shapes: it may export."""
_PLACEMENT = frozenset({"cuda", "cpu", "pin_memory", "is_cuda"})
"""Methods of tensors that say where one is, which changes no shape."""


@dataclass(slots=True)
class Loader:
    """The modules of one scan. `natives` maps dotted names to what this project knows of them.

    `problems` are the files that could not be used, each with the reason; `refused` has the paths of those that were
    imported, by the name. `programs` are exported programs and traced modules that a run has saved, by script and file
    name; `operators` the functions of custom operators, by dotted name and by the file that registers them.
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
    causal: dict[str, Value] = field(default_factory=dict)
    literals: dict[int, Value] = field(default_factory=dict)
    main: Module | None = None
    argv: Value | None = None
    argv_read: bool = False
    patched: dict[str, Value] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    programs: dict[tuple[str, str], Value] = field(default_factory=dict)
    operators: dict[str, dict[str, Value]] = field(default_factory=dict)
    keeper: Keeper = field(default_factory=Keeper)
    _atoms: dict[str, Atom] = field(default_factory=dict)
    _data_cache: dict[str, bool] = field(default_factory=dict)
    _resolved: dict[tuple[str, str, str, tuple[str, ...]], SourceFile | None] = field(default_factory=dict)

    @property
    def unread(self) -> dict[str, tuple[str, Site]]:
        """The imports without a source that the run has met so far, by package."""
        return self.keeper.met.unread

    # -- files --------------------------------------------------------------------------------------------------

    def source_of(self, file: SourceFile) -> ModuleSource:
        """The index of a file. Raises `SyntaxProblem`; `Unreadable` for one that an import found so."""
        found = self.indexed.get(file.path)
        if found is None:
            if file.refused:
                raise Unreadable(file.path, file.refused)
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

    def opened(self, file: SourceFile) -> Module | None:
        """The shared module of a file; None when there is none, and `problems` says why."""
        try:
            return self._load(file)
        except Unreadable as error:
            self.problems[file.path] = error.reason
        except SyntaxProblem as error:
            self.problems[file.path] = str(error)
        return None

    def resolve(self, dotted: str, importer: SourceFile | None, search: list[str]) -> SourceFile | None:
        """The source that an import in a file finds; `search` are the folders that the script has put before."""
        folder, package = (importer.folder, importer.package) if importer is not None else ("", "")
        key = dotted, folder, package, tuple(search)
        if key not in self._resolved:
            self._resolved[key] = self.sources.module(dotted, importer, search)
        return self._resolved[key]

    def module_of(self, env: Env) -> Module:
        """The module in which a scope lies."""
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
                if n not in module.pending and self.evaluate(it, module, [n]):
                    found = module.env.names.get(name)
                    if found is not None:
                        break
        elif not module.pending.issuperset(numbers):
            self.evaluate(it, module, [n for n in numbers if n not in module.pending])
            found = module.env.names.get(name)
        if name in module.own:
            self.keeper.own = True
        return found

    def evaluate(self, it: Interpreter, module: Module, numbers: list[int]) -> bool:
        """Evaluate statements of a module by their numbers; True when all came to their end."""
        module.pending.update(numbers)
        try:
            return self.keeper.make(it, module, [module.source.statements[n] for n in numbers])
        finally:
            module.pending.difference_update(numbers)

    def start_run(self, argv: Value) -> None:
        """Forget what the run before has set: its command line, what it has replaced and defined."""
        self.argv_read = False
        self.argv = argv
        self.patched = {"sys.argv": argv}
        self.keeper.start_run()
        for functions in self.operators.values():
            for path in [p for p in functions if self.sources.audited(p)]:
                del functions[path]  # what a run does itself, it does again

    # -- libraries without sources --------------------------------------------------------------------------------

    def is_native(self, dotted: str) -> bool:
        """Whether a package or one of its parents is known by its public API, and so not read."""
        parts = dotted.split(".")
        return any(".".join(parts[:n]) in self.native_packages for n in range(1, len(parts) + 1))

    def external(self, dotted: str, places: tuple[Site, ...] = ()) -> Value:
        """A name of a library without sources: as the script has replaced it, as the tables know it, or as such."""
        patched = self.patched.get(dotted)
        if patched is not None:
            self.keeper.own = True
            self.argv_read = self.argv_read or dotted == "sys.argv"
            return patched
        known = self.natives.get(dotted)
        if known is not None:
            return known
        if dotted.startswith("transformers.") and dotted.endswith(("ForCausalLM", "LMHeadModel")):
            return self._causal(dotted.rpartition(".")[2])
        found = self.externals.get((dotted, places))
        if found is None:
            found = self.externals[dotted, places] = External(dotted, self._unread_data(dotted, places), places=places)
        return found

    def _unread_data(self, dotted: str, places: tuple[Site, ...]) -> Unknown | None:
        """What a name of an unread module stands for, the same number wherever it is imported."""
        if self.is_native(dotted) or dotted.split(".")[0] in sys.stdlib_module_names:
            return None
        atom = self._atoms.setdefault(dotted, Atom(dotted, minimum=0))
        return Unknown(self.why_unread(dotted), dotted, atom=atom, places=places, born=SHARED)

    def _causal(self, name: str) -> Value:
        """A class of models for text: what is known of all of them, under its own name."""
        known = self.natives.get(f"transformers.{name}") or self.causal.get(name)
        if known is None:
            auto = self.natives["transformers.AutoModelForCausalLM"]
            assert isinstance(auto, NativeClass)
            known = self.causal[name] = replace(auto, name=f"transformers.{name}")
        return known

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

    def operator(self, it: Interpreter, dotted: str) -> Value | None:
        """What a custom operator computes, when a file that this run has imported says so."""
        functions = self.operators.get(dotted, {})
        found = [f for path, f in functions.items() if path in it.imported or self.sources.audited(path)]
        return union(found) if found else None

    def lacking(self, top: str) -> str:
        """What could not be imported of a package, and why: unusable, or elsewhere in the library."""
        dotted, _ = self.unread[top]
        if dotted in self.refused:
            path = self.refused[dotted]
            return f"`{dotted}` (`{path}` could not be read: {self.problems[path]})"
        path = self._home(dotted)
        return f"`{dotted}`, which the library has as {path} (another version?)," if path else f"`{top}`"

    def has_moved(self, dotted: str) -> bool:
        """Whether a library has a module of that name, and elsewhere than an import looks for it."""
        return bool(self._home(dotted))

    def _home(self, dotted: str) -> str:
        """Where the sources have a module that an import does not find; empty when they have none."""
        if dotted not in self.moved:
            self.moved[dotted] = next(iter(self.sources.elsewhere(dotted)), "")
        return self.moved[dotted]

    def why_unread(self, dotted: str) -> str:
        """Why a call of something without a source cannot be read."""
        top = dotted.lstrip(".").split(".")[0].removesuffix("()")
        if top in self.unread:
            needed = f"`{dotted}` is needed"
            if self.unread[top][0] in self.refused or self._home(self.unread[top][0]):
                return f"the import of {self.lacking(top)} could not be resolved ({needed})"
            return f"the import of `{top}` could not be resolved ({needed}): give its source with --library"
        return f"the call to `{dotted}` cannot be read"

    def is_data(self, dotted: str) -> bool:
        """Whether calling `dotted` gives plain data: listed by name, by package or by pattern."""
        found = self._data_cache.get(dotted)
        if found is None:
            packages = {dotted, dotted.split(".")[0]}
            found = bool(packages & self.data) or any("*" in p and fnmatchcase(dotted, p) for p in self.data)
            self._data_cache[dotted] = found
        return found
