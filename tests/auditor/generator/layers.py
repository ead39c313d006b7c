"""Stand-ins for `torch.nn` and the functions of torch that layers call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.auditor.generator.lengths import Lengths, Refused, broadcast
from tests.auditor.generator.tensors import Tensor, constant


class Module:
    training = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)  # type: ignore[attr-defined]

    def eval(self) -> Any:
        return self

    half = float = requires_grad_ = eval

    def to(self, *_: Any, **__: Any) -> Any:
        return self

    def register_buffer(self, name: str, value: Tensor, persistent: bool = True) -> None:
        value.name = name
        setattr(self, name, value)

    def load_state_dict(self, *_: Any, **__: Any) -> None:
        return None


class Linear(Module):
    def __init__(self, width: int, out: int, bias: bool = True) -> None:
        self.weight = constant((out, width), "float32")
        self.out = out

    def forward(self, x: Tensor) -> Tensor:
        return Tensor(lambda e: (*x.at(e)[:-1], self.out), "float32")


class Embedding(Module):
    def __init__(self, count: int, width: int) -> None:
        self.weight = constant((count, width), "float32")
        self.width = width

    def forward(self, ids: Tensor) -> Tensor:
        return Tensor(lambda e: (*ids.at(e), self.width), "float32")


class LayerNorm(Module):
    def __init__(self, width: int, eps: float = 1e-5) -> None:
        pass

    def forward(self, x: Tensor) -> Tensor:
        return x._same()


class ModuleList(list, Module):  # type: ignore[type-arg]
    pass


class Sequential(Module):
    def __init__(self, *parts: Module) -> None:
        self.parts = parts

    def forward(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, **_: Any) -> Tensor:
    def told(e: Lengths) -> tuple[int, ...]:
        if k.at(e)[-2] != v.at(e)[-2]:
            raise Refused("keys and values of different lengths")
        if mask is not None:
            broadcast((q.at(e)[-2], k.at(e)[-2]), mask.at(e)[-2:])
        return (*q.at(e)[:-1], v.at(e)[-1])

    return q._checked(told)


def cat(parts: Sequence[Tensor], dim: int = 0) -> Tensor:
    def told(e: Lengths) -> tuple[int, ...]:
        shape = list(parts[0].at(e))
        shape[dim] = sum(p.at(e)[dim] for p in parts)
        return tuple(shape)

    return parts[0]._like(told)


def stack(parts: Sequence[Tensor], dim: int = 0) -> Tensor:
    return cat([p.unsqueeze(dim) for p in parts], dim)
