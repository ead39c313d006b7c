"""Calls of functions of libraries whose source is not among those read."""

from __future__ import annotations

import sys

from auditor.calls.effects import handed, spoil, spoil_settings
from auditor.calls.unread import says_it_patches, unread
from auditor.interpreter import Interpreter
from auditor.loader import GIVEN_SHAPES
from auditor.places import Site, here
from auditor.torch.modules import find_module, kept_module, unknown_module
from auditor.values import Args, Bound, External, ExternalObject, Function, Unknown, Value, merge_flags


def call_external(it: Interpreter, function: External, args: Args, site: Site | None) -> Value:
    """What the tables say of the function; else plain data, an object of a class, or what nobody can read."""
    loader = it.loader
    dotted = function.dotted
    known = loader.patched.get(dotted) or loader.natives.get(dotted) or loader.operator(it, dotted)
    if known is not None and known is not function:
        return it.call(known, args, site)
    if dotted in loader.keeps_module or "*." + dotted.rsplit(".", 1)[-1] in loader.keeps_module:
        module = kept_module(args) or unknown_module(args)
        if module is not None and not isinstance(args.kw.get("backend"), (Function, Bound)):
            return module
    last = dotted.rsplit(".", 1)[-1]
    top = dotted.split(".")[0]
    if loader.is_data(dotted):
        return Unknown(
            f"`{dotted}()` is known at run time only",
            f"{last}()",
            "data",
            places=here(site),
            flags=merge_flags(args.all()),
        )
    if dotted in loader.harmless or top in loader.harmless:
        return _opaque(dotted, args, site, "unread")
    if top in sys.stdlib_module_names:
        handed(it, args, Unknown(f"`{dotted}` may run what it receives", places=here(site)))
        return _opaque(dotted, args, site, "")
    if last[:1].isupper() and not dotted.startswith("torch.ops.") and find_module(args) is None:
        return ExternalObject(dotted, args, places=function.places or here(site), flags=merge_flags(args.all()))
    missing = loader.why_unread(dotted)
    cause = Unknown(missing, places=function.places or here(site))
    nobody = Unknown(missing, dotted, places=cause.places)
    program: Value = nobody
    if "dynamic_shapes" in args.kw:
        program = it.call(loader.natives[GIVEN_SHAPES], Args([nobody, *args.pos], args.kw, args.more), site)
    spoil(it, args, cause)
    spoil_settings(it, dotted, args, cause)
    it.may_raise("Exception")
    if it.events is None and says_it_patches(dotted, args):
        it.poison = it.poison or Unknown(f"{missing}, and may replace what layers call", places=here(site))
    result = unread(it, nobody, args, site)
    return result if program is nobody else program


def _opaque(dotted: str, args: Args, site: Site | None, kind: str) -> Value:
    last = dotted.rsplit(".", 1)[-1]
    if last[:1].isupper() and not last.endswith("()"):
        return ExternalObject(dotted, args, places=here(site), flags=merge_flags(args.all()))
    return Unknown(
        f"`{dotted}()` is known at run time only",
        f"{dotted}()",
        kind,
        places=here(site),
        flags=merge_flags(args.all()),
    )
