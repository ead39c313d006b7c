"""Recording stand-ins for torch, coreai_torch, coremltools and numpy: enough to run a generated script to its export.

A tensor is its shape as a function of the lengths of the inputs, so that `forward` runs once, on the example, and
what it gave can be asked at other lengths. A length is an `int` that remembers how it was made; `int()` of one forgets
it, as `torch.jit.trace` does.
"""

from __future__ import annotations

import io
import math
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from typing import Any

Lengths = dict[str, int]
"""What the flexible axes of the inputs are, by the name of the axis."""


class Refused(Exception):
    """The program does not run at these lengths."""


class Length(int):
    """An axis as a number: `told` gives it for other lengths. `wraps` when a remainder went into it."""

    told: Callable[[Lengths], int]
    wraps: bool

    def __new__(cls, value: int, told: Callable[[Lengths], int], wraps: bool = False) -> Length:
        made = super().__new__(cls, value)
        made.told, made.wraps = told, wraps
        return made

    def item(self) -> int:
        return int(self)

    def _with(self, other: Any, how: Callable[[int, int], int], wraps: bool = False) -> Any:
        if not isinstance(other, int):
            return NotImplemented
        theirs = at(other)
        mine = self.told
        wraps = wraps or self.wraps or getattr(other, "wraps", False)
        return Length(how(int(self), int(other)), lambda e: how(mine(e), theirs(e)), wraps)

    def __add__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: a + b)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: a - b)

    def __rsub__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: b - a)

    def __mul__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: a * b)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: a // b)

    def __mod__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: a % b, wraps=True)

    def __neg__(self) -> Any:
        return self * -1


def at(value: int) -> Callable[[Lengths], int]:
    return value.told if isinstance(value, Length) else lambda e: int(value)


Told = Callable[[Lengths], tuple[int, ...]]


@dataclass
class Recorded:
    """One export: the module, its inputs by name as (example, names of flexible axes), and what the call names."""

    module: Any
    inputs: dict[str, tuple[Tensor, dict[int, str]]]
    fixed: dict[str, tuple[int, ...]]
    states: list[str]
    outputs: list[str]
    traced: bool


class Recorder:
    """What a script exported, and what was written while `forward` ran. `lengths` are those of the example."""

    exports: list[Recorded]
    writes: list[tuple[str, bool]]
    checks: list[Callable[[Lengths], None]]
    lengths: Lengths

    def __init__(self) -> None:
        self.exports, self.writes, self.checks, self.lengths = [], [], [], {}


RECORDER = Recorder()


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

    clone = contiguous = detach = float = half = softmax = tanh = relu = sigmoid = _same

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


def fits(target: Sequence[int], value: Sequence[int]) -> None:
    if broadcast(target, value) != tuple(target):
        raise Refused("a value that does not fit where it is written")


def broadcast(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    rank = max(len(a), len(b))
    pairs = zip((1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b), strict=True)
    out = []
    for x, y in pairs:
        if x != y and 1 not in (x, y):
            raise Refused("shapes that do not broadcast")
        out.append(max(x, y) if 1 in (x, y) else x)
    return tuple(out)


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


# -- torch ------------------------------------------------------------------------------------------------------


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


@dataclass
class Dim:
    name: str
    min: int = 1
    max: int = 1 << 20


@dataclass
class Program:
    module: Any
    inputs: dict[str, Tensor]
    dynamic: Any

    def run_decompositions(self, *_: Any) -> Program:
        return self


def parameters(module: Any) -> list[str]:
    code = type(module).forward.__code__
    return list(code.co_varnames[1 : code.co_argcount])


def export(module: Any, args: Any = (), kwargs: Any = None, *, dynamic_shapes: Any = None, strict: bool = True) -> Any:
    inputs = dict(zip(parameters(module), args or (), strict=False)) | dict(kwargs or {})
    return Program(module, inputs, dynamic_shapes)


@dataclass
class Traced:
    module: Any
    examples: list[Tensor]


def trace(module: Any, examples: Any, **_: Any) -> Traced:
    return Traced(module, list(examples) if isinstance(examples, (tuple, list)) else [examples])


# -- coreai_torch -----------------------------------------------------------------------------------------------


class TorchConverter:
    def add_exported_program(
        self, program: Program, input_names: Any = (), output_names: Any = (), state_names: Any = (), **_: Any
    ) -> TorchConverter:
        dynamic = program.dynamic or {}
        inputs, fixed = {}, {}
        for n, (name, value) in enumerate(program.inputs.items()):
            entry = dynamic[n] if isinstance(dynamic, (tuple, list)) else dynamic.get(name)
            axes = {a: d.name for a, d in (entry or {}).items() if isinstance(d, Dim)}
            inputs[name], fixed[name] = (value, axes), value.now
        states = list(state_names or ())
        RECORDER.exports.append(Recorded(program.module, inputs, fixed, states, list(output_names), False))
        return self

    def to_coreai(self) -> TorchConverter:
        return self

    def save_asset(self, path: Any) -> None:
        return None


# -- coremltools ------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class RangeDim:
    lower_bound: int = 1
    upper_bound: int = -1
    default: int | None = None
    symbol: str | None = None


@dataclass
class EnumeratedShapes:
    shapes: Any
    default: Any = None


@dataclass
class TensorType:
    name: str | None = None
    shape: Any = None
    dtype: Any = None


@dataclass
class StateType:
    wrapped_type: TensorType
    name: str | None = None


@dataclass
class Model:
    saved: list[str] = field(default_factory=list)

    def save(self, path: Any) -> None:
        self.saved.append(str(path))


def convert(model: Traced, inputs: Any = (), outputs: Any = (), states: Any = (), **_: Any) -> Model:
    declared, fixed = {}, {}
    for parameter, given, example in zip(parameters(model.module), inputs, model.examples, strict=False):
        shape = given.shape.shapes if isinstance(given.shape, EnumeratedShapes) else given.shape
        axes, static = {}, []
        if isinstance(given.shape, EnumeratedShapes):
            axes, static = {n: f"enumerated{n}" for n in range(len(shape[0])) if len({s[n] for s in shape}) > 1}, []
        else:
            for n, d in enumerate(shape):
                ranged = isinstance(d, RangeDim) and d.lower_bound != d.upper_bound
                if ranged:
                    axes[n] = f"range{id(d)}"
                static.append(1 if ranged else d.lower_bound if isinstance(d, RangeDim) else int(d))
        declared[parameter], fixed[parameter] = (example, axes), tuple(static)
    names = [s.name for s in states or ()]
    RECORDER.exports.append(Recorded(model.module, declared, fixed, names, [o.name for o in outputs or ()], True))
    return Model()


def _made(module_name: str, **names: Any) -> types.ModuleType:
    made = types.ModuleType(module_name)
    vars(made).update(names)
    return made


@contextmanager
def no_grad() -> Iterator[None]:
    yield


def modules() -> dict[str, types.ModuleType]:
    """The stand-ins by the names under which scripts import them."""

    def zeros(*sizes: Any, dtype: str = "float32") -> Tensor:
        return constant(sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes, dtype)

    def arange(stop: int, dtype: str = "int64") -> Tensor:
        return constant((stop,), dtype)

    types_ = {t: t for t in ("int32", "int64", "float16", "float32", "bool")}
    functional = _made("torch.nn.functional", scaled_dot_product_attention=attention)
    nn = _made(
        "torch.nn",
        Module=Module,
        Linear=Linear,
        Embedding=Embedding,
        LayerNorm=LayerNorm,
        ModuleList=ModuleList,
        Sequential=Sequential,
        functional=functional,
    )
    exporting = _made("torch.export", export=export, Dim=Dim)
    jit = _made("torch.jit", trace=trace)
    torch = _made("torch", nn=nn, export=exporting, jit=jit, Tensor=Tensor, **types_)
    vars(torch).update(zeros=zeros, ones=zeros, randn=zeros, arange=arange, cat=cat, stack=stack, no_grad=no_grad)
    vars(torch).update(
        argmax=lambda t, dim=-1: t.argmax(dim), tensor=lambda data, dtype="int64": constant((len(data),), dtype)
    )
    vars(torch).update(index_select=lambda t, dim, index: t.index_select(dim, index))
    coreml = _made(
        "coremltools",
        convert=convert,
        RangeDim=RangeDim,
        EnumeratedShapes=EnumeratedShapes,
        TensorType=TensorType,
        StateType=StateType,
        target=types.SimpleNamespace(iOS18="iOS18"),
        precision=types.SimpleNamespace(FLOAT16="fp16"),
    )
    return {
        "torch": torch,
        "torch.nn": nn,
        "torch.nn.functional": functional,
        "torch.export": exporting,
        "torch.jit": jit,
        "coreai_torch": _made("coreai_torch", TorchConverter=TorchConverter),
        "coremltools": coreml,
        "numpy": _made("numpy", **types_),
    }


STAND_INS = modules()


def run(script: str) -> list[Recorded]:
    """Execute the script in this process, with the stand-ins in place of the libraries: what it exported."""
    saved = {n: sys.modules.get(n) for n in STAND_INS}
    arguments = sys.argv
    RECORDER.__init__()  # type: ignore[misc]
    sys.modules.update(STAND_INS)
    sys.argv = ["export.py"]
    try:
        module = types.ModuleType("__main__")
        before, sys.modules["__main__"] = sys.modules["__main__"], module
        try:
            with redirect_stdout(io.StringIO()):
                exec(compile(script, "export.py", "exec"), module.__dict__)
        finally:
            sys.modules["__main__"] = before
    finally:
        sys.argv = arguments
        for name, old in saved.items():
            if old is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = old
    return RECORDER.exports
