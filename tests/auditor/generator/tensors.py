"""A tensor that is its shape, as a function of the lengths of the inputs.

So `forward` runs once, on the example, and what it gave can be asked at other lengths.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tests.auditor.generator.lengths import Length, Lengths, Refused, at, broadcast, fits
from tests.auditor.generator.recorder import RECORDER

Told = Callable[[Lengths], tuple[int, ...]]


class Tensor:
    def __init__(self, told: Told, dtype: str = "float32", name: str = "", vocabulary: bool = False) -> None:
        self._told, self.dtype, self.name = told, dtype, name
        self._seen: dict[tuple[tuple[str, int], ...], tuple[int, ...]] = {}

    def at(self, lengths: Lengths) -> tuple[int, ...]:
        key = tuple(sorted(lengths.items()))
        found = self._seen.get(key)
        if found is None:
            found = self._seen[key] = self._told(lengths)
        return found

    @property
    def now(self) -> tuple[int, ...]:
        return self.at(RECORDER.lengths)

    @property
    def shape(self) -> tuple[int, ...]:
        def one(n: int) -> Length:
            return Length(self.now[n], lambda e: self.at(e)[n])

        return tuple(one(n) for n in range(len(self.now)))

    ndim = property(lambda self: len(self.now))
    data = property(lambda self: self)

    def size(self, axis: int | None = None) -> Any:
        return self.shape if axis is None else self.shape[axis]

    def dim(self) -> int:
        return len(self.now)

    def _like(self, told: Told, dtype: str = "") -> Tensor:
        return Tensor(told, dtype or self.dtype, self.name)

    def _same(self, *_: Any, **__: Any) -> Tensor:
        return self._like(self.at)

    clone = contiguous = detach = float = half = softmax = tanh = relu = sigmoid = tril = _same

    def to(self, kind: Any = None, **_: Any) -> Tensor:
        return self._like(self.at, kind if isinstance(kind, str) else "")

    def int(self) -> Tensor:
        return self._like(self.at, "int32")

    def view(self, *sizes: Any) -> Tensor:
        given = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
        asked = [at(s) for s in given]

        def told(e: Lengths) -> tuple[int, ...]:
            total, want = math.prod(self.at(e)), [a(e) for a in asked]
            if -1 in want:
                rest = -math.prod(want)
                if not rest or total % rest:
                    raise Refused("a reshape that does not fit")
                want[want.index(-1)] = total // rest
            if math.prod(want) != total:
                raise Refused("a reshape to another number of elements")
            return tuple(want)

        return self._checked(told)

    reshape = view

    def _checked(self, told: Told, dtype: str = "") -> Tensor:
        made = self._like(told, dtype)
        made.at(RECORDER.lengths)
        return made

    def permute(self, *order: int) -> Tensor:
        return self._like(lambda e: tuple(self.at(e)[o] for o in order))

    def transpose(self, a: int, b: int) -> Tensor:
        def told(e: Lengths) -> tuple[int, ...]:
            shape = list(self.at(e))
            shape[a], shape[b] = shape[b], shape[a]
            return tuple(shape)

        return self._like(told)

    def unsqueeze(self, axis: int) -> Tensor:
        def told(e: Lengths) -> tuple[int, ...]:
            shape = list(self.at(e))
            shape.insert(axis if axis >= 0 else len(shape) + 1 + axis, 1)
            return tuple(shape)

        return self._like(told)

    def squeeze(self, axis: int) -> Tensor:
        def told(e: Lengths) -> tuple[int, ...]:
            shape = list(self.at(e))
            if shape[axis] == 1:
                del shape[axis]
            return tuple(shape)

        return self._like(told)

    def flip(self, *_: int) -> Tensor:
        return self._same()

    def _without(self, axis: int, keep: bool, dtype: str = "") -> Tensor:
        def told(e: Lengths) -> tuple[int, ...]:
            shape = list(self.at(e))
            shape[axis] = 1
            if not keep:
                del shape[axis]
            return tuple(shape)

        return self._like(told, dtype)

    def argmax(self, dim: int = -1, keepdim: bool = False) -> Tensor:
        return self._without(dim, keepdim, "int64")

    def mean(self, dim: int = -1, keepdim: bool = False) -> Tensor:
        return self._without(dim, keepdim)

    sum = mean

    def narrow(self, axis: int, start: int, length: int) -> Tensor:
        asked = at(length)
        return self._like(lambda e: (*self.at(e)[:axis], asked(e), *self.at(e)[axis + 1 :]))

    def select(self, axis: int, index: int) -> Tensor:
        return self._without(axis, False)

    def index_select(self, axis: int, index: Tensor) -> Tensor:
        return self._like(lambda e: (*self.at(e)[:axis], index.at(e)[0], *self.at(e)[axis + 1 :]))

    def split(self, each: int, dim: int = 0) -> list[Tensor]:
        return [self.narrow(dim, 0, each) for _ in range(self.now[dim] // each)]

    def unbind(self, axis: int = 0) -> list[Tensor]:
        return [self.select(axis, n) for n in range(self.now[axis])]

    def __len__(self) -> int:
        return self.now[0]

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.unbind(0))

    def item(self) -> int:
        return 0

    def __int__(self) -> int:
        return 0

    def _joined(self, other: Any, dtype: str = "") -> Tensor:
        theirs = other.at if isinstance(other, Tensor) else lambda e: ()
        return self._checked(lambda e: broadcast(self.at(e), theirs(e)), dtype)

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = _joined

    def __le__(self, other: Any) -> Tensor:
        return self._joined(other, "bool")

    __lt__ = __ge__ = __gt__ = __le__

    def __matmul__(self, other: Tensor) -> Tensor:
        return self._checked(lambda e: (*self.at(e)[:-1], other.at(e)[-1]))

    T = property(lambda self: self.transpose(-2, -1))

    def __getitem__(self, key: Any) -> Tensor:
        parts = list(key) if isinstance(key, tuple) else [key]

        def told(e: Lengths) -> tuple[int, ...]:
            return indexed(self.at(e), parts, e)

        return self._checked(told)

    def __setitem__(self, key: Any, value: Any) -> None:
        parts = key if isinstance(key, tuple) else (key,)
        if isinstance(value, Tensor):
            RECORDER.checks.append(lambda e: fits(indexed(self.at(e), list(parts), e), value.at(e)))
        bounds = [b for p in parts for b in ((p.start, p.stop) if isinstance(p, slice) else (p,))]
        RECORDER.writes.append((self.name, any(getattr(b, "wraps", False) for b in bounds)))

    def copy_(self, other: Any) -> Tensor:
        RECORDER.writes.append((self.name, False))
        return self


def indexed(shape: tuple[int, ...], parts: list[Any], e: Lengths) -> tuple[int, ...]:
    """The shape of `tensor[parts]` at the lengths `e`."""
    rest, out = list(shape), []
    if Ellipsis in [p for p in parts if not isinstance(p, (Tensor, slice))]:
        n = next(i for i, p in enumerate(parts) if p is Ellipsis)
        fill = len(shape) - sum(p is not None and p is not Ellipsis for p in parts)
        parts = [*parts[:n], *[slice(None)] * fill, *parts[n + 1 :]]
    for p in parts:
        if p is None:
            out.append(1)
        elif isinstance(p, slice):
            bounds = [None if b is None else at(b)(e) for b in (p.start, p.stop, p.step)]
            out.append(len(range(*slice(*bounds).indices(rest.pop(0)))))
        elif isinstance(p, Tensor):
            rest.pop(0)
            out += p.at(e)
        elif isinstance(p, list):
            rest.pop(0)
            out.append(len(p))
        else:
            rest.pop(0)
    return (*out, *rest)


def constant(sizes: Sequence[int], dtype: str, name: str = "") -> Tensor:
    asked = [at(s) for s in sizes]
    return Tensor(lambda e: tuple(a(e) for a in asked), dtype, name)
