"""`torch.nn.Module`, put together from the files of `auditor.torch.nn`, and what the rest of the evaluator asks it."""

from __future__ import annotations

from auditor.interpreter import Interpreter
from auditor.places import Site
from auditor.torch.nn import calling, containers, parts, storage
from auditor.torch.nn.calling import HOOKS, call_module
from auditor.torch.nn.module import MODULE, find_module, is_module, kept_module, unknown_module
from auditor.torch.nn.parts import children, walk
from auditor.torch.nn.unlisted import TRACED_WITH, unlisted
from auditor.values import NONE, Args, Const, Value


def _same(it: Interpreter, args: Args, site: Site | None) -> Value:
    return args.pos[0]


def _nothing(it: Interpreter, args: Args, site: Site | None) -> Value:
    return NONE


_SAME = ["to", "eval", "train", "half", "float", "double", "bfloat16", "cuda", "cpu", "requires_grad_"]
_SAME += ["share_memory", "to_empty", "compile", "type"]
_NOTHING = ["__init__", "zero_grad", "register_load_state_dict_post_hook", "_register_load_state_dict_pre_hook"]

MODULE.methods |= {
    **dict.fromkeys(_SAME, _same),
    **dict.fromkeys(_NOTHING, _nothing),
    **calling.METHODS,
    **storage.METHODS,
    **parts.METHODS,
    "__getattr__": unlisted,
    "extra_repr": lambda it, args, site: Const(""),
}
NATIVES: dict[str, Value] = {
    "torch.nn.Module": MODULE,
    "torch.nn.modules.module.Module": MODULE,
    **containers.NATIVES,
    **storage.NATIVES,
}
__all__ = [
    "HOOKS",
    "MODULE",
    "NATIVES",
    "TRACED_WITH",
    "call_module",
    "children",
    "find_module",
    "is_module",
    "kept_module",
    "unknown_module",
    "walk",
]
