"""coremltools: the types that a conversion declares, of its inputs (with their shapes), its states and its outputs."""

from __future__ import annotations

from auditor import dims
from auditor.answers import common
from auditor.containers.iteration import iterate
from auditor.dims import Dim
from auditor.frameworks.dynamic_shapes import stands_apart
from auditor.frameworks.forward_inputs import forward_of, parameter_names
from auditor.frameworks.records import record
from auditor.graph_facts.declaration import Declared, Dimension
from auditor.interpreter import Interpreter
from auditor.places import Site
from auditor.roles import role_by_name
from auditor.torch.tensors import size
from auditor.values import (
    NONE,
    Const,
    Instance,
    Star,
    Tensor,
    Union,
    Unknown,
    Value,
    each_once,
    is_none,
    merge_flags,
    text_of,
)

RANGE = record("coremltools.RangeDim", "lower_bound", "upper_bound", "default", "symbol")
SHAPE = record("coremltools.Shape", "shape", "default")
ENUMERATED = record("coremltools.EnumeratedShapes", "shapes", "default")
TENSOR_TYPE = record("coremltools.TensorType", "name", "shape", "dtype", "default_value", wraps={"shape": SHAPE})
IMAGE_TYPE = record("coremltools.ImageType", "name", "shape", "scale", "bias")
STATE_TYPE = record("coremltools.StateType", "wrapped_type", "name")
TYPES = (RANGE, SHAPE, ENUMERATED, TENSOR_TYPE, IMAGE_TYPE, STATE_TYPE)


def input_types(it: Interpreter, module: Value, given: Value, site: Site) -> tuple[list[Declared], Unknown | None]:
    """The inputs of a list of types, and why there may be more. A type without a name has that of its parameter."""
    parameters = parameter_names(forward_of(it, module, site))
    source = iterate(it, given, site)
    more = source.rest
    out: list[Declared] = []
    each = [(isinstance(i, Star), one) for i in source.items for one in each_once([i])]
    for n, (repeated, one) in enumerate(each):
        parameter = parameters[n] if n < len(parameters) else f"arg{n}"
        out.append(_input(it, one, parameter, site))
        name = one.attrs.get("name") if repeated and isinstance(one, Instance) else None
        if isinstance(name, Unknown) and name.kind == "data":
            more = more or name  # any number of inputs, whatever they are called: caches, too
    return out, more


def _input(it: Interpreter, item: Value, parameter: str, site: Site) -> Declared:
    if isinstance(item, Union):
        options = [_input(it, o, parameter, site) for o in item.options]
        same = all(o.axes == options[0].axes and _alike(o.value, options[0].value) for o in options)
        return options[0] if same else Declared(options[0].name, options[0].value, None, item, parameter)
    if not isinstance(item, Instance):
        return Declared(parameter, item, None, item if isinstance(item, Unknown) else None, parameter)
    name = _name(item) or parameter
    shape = item.attrs.get("shape")
    value, axes = _shape(it, shape, item, site)
    return Declared(name, value, axes, shape if shape is not None else item, parameter)


def _alike(a: Value, b: Value) -> bool:
    return isinstance(a, Tensor) and isinstance(b, Tensor) and a.shape == b.shape


def _shape(
    it: Interpreter, shape: Value | None, item: Instance, site: Site
) -> tuple[Value, dict[int, Dimension] | None]:
    """(example tensor, flexible axes) of an input type."""
    if isinstance(shape, Instance) and shape.cls is SHAPE:
        shape = shape.attrs.get("shape")
    if isinstance(shape, Instance) and shape.cls is ENUMERATED:
        return _enumerated(it, shape, site)
    if isinstance(shape, Union) and all(_shape(it, o, item, site)[1] == {} for o in shape.options):
        reason = Unknown("a shape that is one of several", places=shape.places or item.places)
        return Tensor(None, _dtype(item), reason=reason, flags=shape.flags), {}
    if shape is None:
        return Tensor(None, _dtype(item), reason=Unknown("an input without a shape", places=item.places)), None
    source = iterate(it, shape, site)
    if not source.exact:
        reason = source.rest or Unknown("a shape of unknown rank", places=shape.places)
        return Tensor(None, _dtype(item), reason=reason), None
    lengths: list[Dim] = []
    axes: dict[int, Dimension] = {}
    for n, d in enumerate(source.items):
        varies = isinstance(d, Instance) and d.cls is RANGE and _varies(d)
        if varies is None and stands_apart(n, len(source.items)):
            axes[n] = Dimension(False, source=d, unread=True)
            lengths.append(1)
            continue
        if varies is None:
            reason = Unknown("whether a range has one length or more is not known", places=d.places or shape.places)
            return Tensor(None, _dtype(item), reason=reason, flags=d.flags), None
        length = _length(d, varies)
        if length is None:
            return Tensor(
                None, _dtype(item), reason=Unknown("a dimension that is not known", places=d.places or shape.places)
            ), None
        if varies and isinstance(d, Instance):
            axes[n] = Dimension(True, label=f"range{d.born}", source=d)
        lengths.append(length)
    flags = merge_flags([shape, *source.items])
    sized = tuple(d.flags for d in source.items) if flags else ()
    return Tensor(tuple(lengths), _dtype(item), places=shape.places or item.places, flags=flags, sized=sized), axes


def _length(d: Value, varies: bool) -> Dim | None:
    """How long a dimension is in the example; None for one that is not known."""
    if not isinstance(d, Instance) or d.cls is not RANGE:
        return size(d)
    if not varies:
        low = size(d.attrs.get("lower_bound", NONE))
        return 1 if low is None else low
    default = size(d.attrs.get("default", NONE))
    return default if isinstance(default, int) and default > 0 else 1


def _varies(bounds: Instance) -> bool | None:
    """Whether a range has more than one length; None when one of its bounds does not say.

    A bound out of a checkpoint is larger than 1.
    """
    low = _numbers(bounds.attrs.get("lower_bound", Const(1)))
    high = _numbers(bounds.attrs.get("upper_bound", Const(-1)))
    return common(None if a is None or b is None else _apart(a, b) for a in low for b in high)


def _apart(a: Dim, b: Dim) -> bool:
    """Whether two bounds are taken to differ: a length that is not known is more than 1."""
    return a != b if isinstance(a, int) and isinstance(b, int) else True


def _numbers(bound: Value) -> list[Dim | None]:
    """The numbers that a bound may be; None for one that nobody knows before the script runs."""
    if isinstance(bound, Union):
        return [n for o in bound.options for n in _numbers(o)]
    if isinstance(bound, Unknown) and bound.kind != "data":
        return [None]
    d = size(bound)
    return [-1] if d is None else list(dims.alternatives(d))


def _enumerated(it: Interpreter, shape: Instance, site: Site) -> tuple[Value, dict[int, Dimension] | None]:
    """The first of several shapes, and the axes in which they differ."""
    shapes = [iterate(it, s, site) for s in iterate(it, shape.attrs.get("shapes", NONE), site).items]
    rows = [[size(d) for d in s.items] for s in shapes if s.exact]
    if not rows or len(rows) != len(shapes) or any(len(r) != len(rows[0]) or None in r for r in rows):
        return Tensor(None, reason=Unknown("enumerated shapes that are not known", places=shape.places)), None
    axes: dict[int, Dimension] = {}
    for n in range(len(rows[0])):
        widths = {r[n] for r in rows}
        if len(widths) > 1 and all(isinstance(w, int) for w in widths):
            axes[n] = Dimension(False, widths=tuple(sorted(w for w in widths if isinstance(w, int))), source=shape)
    return Tensor(tuple(d for d in rows[0] if d is not None), places=shape.places), axes


def _dtype(item: Instance) -> str:
    given = item.attrs.get("dtype")
    name = getattr(given, "dotted", "") or getattr(given, "name", "") or ""
    return str(name).rsplit(".", 1)[-1]


def type_names(it: Interpreter, value: Value, site: Site) -> tuple[str, ...] | Unknown | None:
    """The names of a list of types; an unnamed state has the name of its position."""
    if is_none(value):
        return None
    source = iterate(it, value, site)
    if source.rest is not None:
        return source.rest
    out: list[str] = []
    for n, item in enumerate(source.items):
        for one in each_once([item]):
            if not isinstance(one, Instance):
                return Unknown("a type that is not known", places=one.places or value.places)
            inner = one.attrs.get("wrapped_type")
            name = _name(one)
            if name is None and isinstance(inner, Instance):
                name = _name(inner)
            out.append(name or f"#{n}")
    return tuple(out)


def undecided_state(it: Interpreter, states: Value, site: Site) -> Unknown | None:
    """Set when a state that is no cache is declared on one of two ways only, and nobody knows which one is taken.

    A state that a loop declares once for each of many layers has their number in its name.
    """
    for item in iterate(it, states, site).items:
        for one in item.items if isinstance(item, Star) else ():
            name = _name(one) if isinstance(one, Instance) else None
            if name is not None and "*" not in name and not role_by_name(name).is_kv:
                return Unknown(f"whether `{name}` is declared", places=one.places or states.places or (site,))
    return None


def _name(of: Instance) -> str | None:
    return text_of(of.attrs.get("name", NONE))
