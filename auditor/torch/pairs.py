"""Results of two parts that unpack as a tuple and have names."""

from __future__ import annotations

from auditor.objects.inheritance import OBJECT
from auditor.values import Instance, NativeClass, Seq, Value

_PAIR = NativeClass("torch.return_types", bases=(OBJECT,))


def named_pair(a: Value, b: Value, names: tuple[str, str]) -> Value:
    """`max(dim=...)`, `topk`, `load_state_dict` and their like: `names` are those of the first and the second part."""
    return Instance(_PAIR, {names[0]: a, names[1]: b}, Seq("tuple", [a, b]))
