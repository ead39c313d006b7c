"""`torch.nn.Module`, put together from the files of `auditor.torch.nn`, and what the rest of the evaluator asks it."""

from __future__ import annotations

from auditor.handlers import itself, nothing
from auditor.torch.nn import calling, containers, parts, storage
from auditor.torch.nn.calling import HOOKS, call_module
from auditor.torch.nn.module import MODULE, find_module, is_module, kept_module, unknown_module
from auditor.torch.nn.parts import children, tensors, walk
from auditor.torch.nn.unlisted import TRACED_WITH, unlisted
from auditor.values import Const, Value

_SAME = ["to", "eval", "train", "half", "float", "double", "bfloat16", "cuda", "cpu", "requires_grad_"]
_SAME += ["share_memory", "to_empty", "compile", "type"]
_NOTHING = ["__init__", "zero_grad", "register_load_state_dict_post_hook", "_register_load_state_dict_pre_hook"]

MODULE.methods |= {
    **dict.fromkeys(_SAME, itself),
    **dict.fromkeys(_NOTHING, nothing),
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
    "tensors",
    "unknown_module",
    "walk",
]
