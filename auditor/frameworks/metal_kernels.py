"""Custom Metal kernels of coreai-torch: what one gives has the shapes that its call says."""

from __future__ import annotations

from collections.abc import Sequence

from auditor import dims
from auditor.containers.iteration import iterate
from auditor.frameworks.coreai_torch import quiet
from auditor.interpreter import Interpreter
from auditor.objects.inheritance import OBJECT
from auditor.places import Site
from auditor.torch.rows import blended
from auditor.torch.tensors import as_tensor, result, sizes, unknown_tensor
from auditor.values import NONE, Args, Instance, NativeClass, Seq, Tensor, Value, text_of
from auditor.values.tags import ONE_ROW


def _kernel(it: Interpreter, args: Args, site: Site | None) -> Value:
    """A custom kernel: its results have the shapes that the call says, whatever goes in."""
    given = args.kw.get("result_shapes")
    inputs = [t for t in (as_tensor(a) for a in args.pos[1:]) if t is not None]
    if given is None or site is None:
        return unknown_tensor("a kernel call without result shapes", site, *inputs)
    outputs: list[Value] = []
    rows = room = False
    for shape in iterate(it, given, site).items:
        target = sizes(it, [shape], site)
        made = result(tuple(target) if target is not None else None, *inputs, site=site)
        if target is None:
            made = unknown_tensor("a kernel whose result shape is not known", site, *inputs)
        rows = rows or target is None or any(map(dims.depends_on_query, target))
        holds = target is not None and _holds_rows(target, inputs)
        room = room or holds
        outputs.append(blended(made, site, holds))  # that there is room for the rows does not say that they are filled
    takes_rows = any(t.shape is not None and any(dims.depends_on_query(d) for d in t.shape) for t in inputs)
    squeezed = any(ONE_ROW in t.tags or t.cuts for t in inputs)
    if it.events is not None and not rows and (squeezed or (takes_rows and not room)):
        name = text_of(_kernel_name(args.pos[0])) or "a kernel"
        it.events.row_kernels.append((site, f"`{name}` gives the same rows whatever S is"))
    if len(outputs) == 1:
        return outputs[0]
    return Seq("tuple", outputs)


def _holds_rows(target: Sequence[dims.Dim], inputs: Sequence[Tensor]) -> bool:
    """Whether a result of fixed size has room for several rows in the place where an input has those of the query.

    A kernel's results cannot have a flexible size: one that fills a buffer, of which the rows are cut out, is no kernel
    for one row. Some axis before the rows has to agree, so that the place is not found by chance.
    """
    for t in inputs:
        if t.shape is None or len(t.shape) != len(target):
            continue
        axes = [n for n, d in enumerate(t.shape) if dims.depends_on_query(d)]
        if len(axes) == 1 and 0 < axes[0] < len(target) - 1 and t.shape[: axes[0]] == tuple(target[: axes[0]]):
            size = target[axes[0]]
            return isinstance(size, int) and size > 1
    return False


def _kernel_name(kernel: Value) -> Value:
    return kernel.attrs.get("name", NONE) if isinstance(kernel, Instance) else NONE


def _kernel_init(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = args.pos[0]
    assert isinstance(obj, Instance)
    name = args.get(1, "name")
    if name is not None:
        obj.attrs["name"] = name
    return NONE


KERNEL = NativeClass(
    "coreai_torch.TorchMetalKernel", {"__init__": _kernel_init, "__call__": _kernel, "__getattr__": quiet}, (OBJECT,)
)


NATIVES: dict[str, Value] = {"coreai_torch.TorchMetalKernel": KERNEL}
