"""Everything that this project knows of libraries, by dotted name."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from auditor import stdlib
from auditor.builtins import builtin_names
from auditor.checkpoints import Checkpoints
from auditor.frameworks import (
    composite_layers,
    coreai_models,
    coreai_torch,
    coremltools,
    earlier_converters,
    executorch,
    exportable_models,
    exporting,
    gathering,
    lowering,
    metal_kernels,
    mil,
    multifunction,
    onnx_programs,
    torch_export,
    torch_jit,
    unread_exporters,
)
from auditor.frameworks.tables import tables
from auditor.interpreter import Interpreter
from auditor.loader import Loader
from auditor.places import Site, here
from auditor.seen import Seen
from auditor.sources import Sources
from auditor.torch import functions, layers, library, methods, modules, transformers
from auditor.values import Args, ExternalObject, Native, Value


def _holder(dotted: str) -> Native:
    def make(it: Interpreter, args: Args, site: Site | None) -> Value:
        return ExternalObject(dotted, args, places=here(site))

    return Native(dotted, make)


@cache
def natives() -> dict[str, Value]:
    return {
        **stdlib.NATIVES,
        **methods.NATIVES,
        **functions.NATIVES,  # after the methods: `torch.long` is a type, and `Tensor.long` converts to it
        **modules.NATIVES,
        **layers.NATIVES,
        **library.NATIVES,
        **transformers.NATIVES,
        **torch_export.NATIVES,
        **torch_jit.NATIVES,
        **coreai_torch.NATIVES,
        **metal_kernels.NATIVES,
        **composite_layers.NATIVES,
        **gathering.NATIVES,
        **coremltools.NATIVES,
        **earlier_converters.NATIVES,
        **mil.NATIVES,
        **lowering.NATIVES,
        **multifunction.NATIVES,
        **onnx_programs.NATIVES,
        **coreai_models.NATIVES,
        **executorch.NATIVES,
        **exportable_models.NATIVES,
        **exporting.NATIVES,
        **unread_exporters.NATIVES,
        **{name: _holder(name) for name in tables().holds_module},
    }


def make_loader(sources: Sources, checkpoints: Path | None = None, seen: Seen | None = None) -> Loader:
    t = tables()
    configurations = Checkpoints(checkpoints, Seen() if seen is None else seen)
    return Loader(sources, natives(), builtin_names(), t.packages, t.keeps_module, t.harmless, t.data, configurations)
