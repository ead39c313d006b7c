"""What a script exported, and what happened while its `forward` ran."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.auditor.generator.lengths import Lengths

if TYPE_CHECKING:
    from tests.auditor.generator.tensors import Tensor


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
