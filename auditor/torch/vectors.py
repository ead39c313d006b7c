"""The numbers of a short vector, one by one: where a cache is written is often put together and taken apart again.

begin = torch.cat([layer, torch.tensor([0, 0]), torch.tensor((offset,))])
end = torch.cat([layer + 1, sizes, torch.tensor((offset + rows,))])
cache[tuple(slice(b.item(), e.item()) for b, e in zip(begin.split(1), end.split(1)))] = update
"""

from __future__ import annotations

from collections.abc import Sequence

from auditor.interpreter import Interpreter
from auditor.places import Site
from auditor.torch.ops.op import Op, first
from auditor.values import Args, Const, Num, Seq, Tensor, Unknown, Value

_LONGEST = 16


def of_numbers(made: Tensor, values: Sequence[Value]) -> Tensor:
    """`made`, a vector of these values, where all of them are numbers."""
    if 1 < len(values) <= _LONGEST and made.shape == (len(values),) and all(map(_is_number, values)):
        made.numbers = tuple(values)
    return made


def joined(made: Tensor, parts: Sequence[Tensor]) -> Tensor:
    """`made`, parts one behind another."""
    if made.shape is None or len(made.shape) != 1 or not isinstance(made.shape[0], int) or made.shape[0] > _LONGEST:
        return made
    return of_numbers(made, [n for t in parts for n in _listed(t)])


def apart(op: Op) -> Op:
    """`op`, which takes a tensor apart, with the numbers of each part."""

    def run(it: Interpreter, args: Args, site: Site | None) -> Value:
        parts, t = op(it, args, site), first(args)
        return _parted(t, parts) if t.numbers and isinstance(parts, Seq) else parts

    return run


def _parted(t: Tensor, parts: Seq) -> Seq:
    at, out = 0, []
    for part in parts.items:
        if not isinstance(part, Tensor) or part.shape is None or not all(isinstance(d, int) for d in part.shape):
            return parts
        count = part.shape[0] if part.shape else 1
        assert isinstance(count, int)
        out.append(_with(part, t.numbers[at : at + count]))
        at += count
    return Seq(parts.kind, [*out], parts.rest)


def taken(made: Tensor, t: Tensor, key: Value) -> Tensor:
    """`made`, what `t[key]` is."""
    match key:
        case Const(value=int(n)) if -len(t.numbers) <= n < len(t.numbers):
            return _with(made, t.numbers[n : n + 1] or t.numbers[n:])
        case Seq(kind="slice", items=bounds) if all(isinstance(b, Const) for b in bounds):
            return _with(made, t.numbers[slice(*(b.value for b in bounds if isinstance(b, Const)))])
    return made


def _with(part: Tensor, numbers: Sequence[Value]) -> Tensor:
    """A part of its own, with these numbers: the parts of a tensor that nothing tells apart are one object."""
    made = Tensor(
        part.shape, part.dtype, part.reason, part.cuts, part.tags, part.base, places=part.places, flags=part.flags
    )
    made.of = part.of
    if len(numbers) == 1:
        made.data = numbers[0]
    return of_numbers(made, numbers)


def _listed(t: Tensor) -> list[Value]:
    if t.numbers:
        return list(t.numbers)
    length = t.shape[0] if t.shape else None
    return [t.data] * length if isinstance(length, int) and length <= _LONGEST and t.data is not None else []


def _is_number(value: Value) -> bool:
    return isinstance(value, (Num, Unknown)) or (isinstance(value, Const) and type(value.value) is int)
