"""Attributes of a module that no table has: numbered families, what torch keeps inside, and none."""

from __future__ import annotations

from auditor import families
from auditor.interpreter import Interpreter, RaiseSignal
from auditor.places import Site, here
from auditor.torch.nn.module import self_of
from auditor.torch.nn.parts import parts_by_name
from auditor.torch.nn.storage import CALL_PROTOCOL
from auditor.values import Args, Bound, Unknown, Value, text_of


def unlisted(it: Interpreter, args: Args, site: Site | None) -> Value:
    """What asking for such an attribute gives. Raises `RaiseSignal('AttributeError')` for one that no module has."""
    name = text_of(args.pos[1])
    if name == "_modules":
        return parts_by_name(it, args, site)
    family = families.find(self_of(args), name or "")
    if family is not None:
        return family
    if name in CALL_PROTOCOL:  # a dict or a method, by which the script may change what a call does
        obj = self_of(args)
        it.heap.touch(obj)
        obj.taint = obj.taint or Unknown(f"`{name}` of a module is taken", places=here(site))
        return obj.taint
    if name == "save" and TRACED_WITH in self_of(args).attrs:
        return Bound(it.loader.external("torch.jit.save"), args.pos[0])
    if name in _UNFOLLOWED or (name in _COMPILED and TRACED_WITH in self_of(args).attrs):
        return Unknown(f"`{name}` of a module is not followed", f".{name}", places=here(site))
    raise RaiseSignal("AttributeError", Unknown(f"no attribute `{name}`", places=here(site)))


TRACED_WITH = "(traced with)"
"""Where a traced module keeps its example inputs."""
_COMPILED = frozenset(
    {"graph", "inlined_graph", "code", "code_with_constants", "original_name", "_c", "save_to_buffer"}
)
"""What only a traced module has, beside `save`."""
_UNFOLLOWED = frozenset(
    {"_parameters", "_buffers", "_apply", "_get_name", "_version", "dump_patches", "call_super_init", "T_destination"}
    | {"get_buffer", "set_submodule", "get_extra_state", "set_extra_state", "xpu", "ipu", "mtia"}
    | {"register_backward_hook", "register_full_backward_hook", "register_full_backward_pre_hook"}
    | {"register_state_dict_pre_hook", "register_state_dict_post_hook", "register_load_state_dict_pre_hook"}
)
"""What every module has and nothing here models: it is there, so that asking for it ends no run."""
