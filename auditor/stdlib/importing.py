"""`importlib`: modules that a script imports by name or by path."""

from __future__ import annotations

from auditor.expressions.text import format_value
from auditor.handlers import nothing
from auditor.importing import import_module
from auditor.interpreter import Interpreter
from auditor.loader import FILE_PREFIX
from auditor.modules import SyntaxProblem
from auditor.places import Site, here
from auditor.sources import Unreadable
from auditor.values import Args, Instance, Native, NativeClass, Unknown, Value, text_of


def _import_module(it: Interpreter, args: Args, site: Site | None) -> Value:
    name = text_of(args.pos[0])
    if name is None or "*" in name or site is None:
        return Unknown("a module whose name is not known is imported", "import_module()", places=here(site))
    return import_module(it, name, None, site)


SPEC = NativeClass("importlib.machinery.ModuleSpec")


def _spec_from_file(it: Interpreter, args: Args, site: Site | None) -> Value:
    path = args.get(1, "location")
    loader = Instance(SPEC, {"exec_module": Native("exec_module", nothing)})
    return Instance(
        SPEC, {"loader": loader, "name": args.pos[0]}, payload=format_value(path, "", None) if path is not None else "*"
    )


def _module_from_spec(it: Interpreter, args: Args, site: Site | None) -> Value:
    spec = args.pos[0]
    path = spec.payload if isinstance(spec, Instance) and isinstance(spec.payload, str) else "*"
    if path.startswith(FILE_PREFIX) and "*" not in path and it.loader.sources.exists(path[len(FILE_PREFIX) :]):
        try:
            return it.loader.library_module(path[len(FILE_PREFIX) :])
        except (Unreadable, SyntaxProblem) as error:
            return Unknown(f"the module at {path} could not be read: {error}", places=here(site))
    return Unknown(f"the module at `{path}` is not among the sources", "module", places=here(site))


NATIVES: dict[str, Value] = {
    "importlib.import_module": Native("import_module", _import_module),
    "importlib.util.spec_from_file_location": Native("spec_from_file_location", _spec_from_file),
    "importlib.util.module_from_spec": Native("module_from_spec", _module_from_spec),
    "importlib.machinery.SourceFileLoader": Native(
        "SourceFileLoader",
        lambda it, args, site: Instance(
            SPEC,
            {
                "load_module": Native(
                    "load_module", lambda it, a, s: _module_from_spec(it, Args([_spec_from_file(it, args, s)]), s)
                )
            },
        ),
    ),
}
