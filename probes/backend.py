"""What a backend has to offer: open a bundle, list its entry points, and run one of them step by step.

Everything here happens inside the child process, because a runtime may end the process it lives in.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from probes.ports import Positions
from probes.signature import Signature

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.generic]
    Rows = npt.NDArray[np.float32]


class BackendError(Exception):
    """The backend cannot do this here; the message says what to do."""


class NotExecutable(BackendError):
    """The graph can be inspected and not run, with the reason."""


class CapacityError(Exception):
    """A forward would write past the cache. Runtimes accept that and return finite logits, so it is refused before."""


@dataclass(frozen=True, slots=True)
class OpenOptions:
    """How a graph is opened: rows of a growing cache, and the convention of its position input (None: guessed).

    `weight_limit` is in bytes; 0 means the backend's own. `keep` is a folder for what the next child can use as well.
    """

    capacity: int
    positions: Positions | None = None
    vocab: int | None = None
    compute_unit: str = ""
    weight_limit: int = 0
    keep: str = ""


@dataclass(frozen=True, slots=True)
class Inspection:
    """What a bundle says without being run.

    `programs` has, for each entry point, what its program shows beyond descriptors: `windows`, sliding-window sizes;
    `experts`, whether experts are gathered; `marks`, traits with their details; `notes`; `vocab`, the size of the
    vocabulary; `rows_by`, the operation by whose computed bounds rows are picked, so that their number is unknown.
    `unseen` says what was not looked at, `about` what the file says of itself, `not_executable` why nothing of it
    can be run here, if so.
    """

    signatures: tuple[Signature, ...]
    programs: Mapping[str, Mapping[str, Any]]
    unseen: tuple[str, ...] = ()
    about: Mapping[str, Any] = field(default_factory=dict)
    not_executable: str = ""


class Session(Protocol):
    """One entry point with its states. Rows are float32 whatever the graph computes in."""

    signature: Signature
    capacity: int | None
    """Rows of the position-indexed states; None without any."""
    widths: tuple[int, ...] | None
    """The query widths that the graph takes; None for any."""
    vocab: int
    positions: Positions
    precision: str
    """The coarsest type among logits and states: what tolerances go by."""
    seconds: float
    """Time of the last forward inside the runtime."""

    def forward(self, tokens: Sequence[int], position: int) -> Rows:
        """Run `tokens` at `position`; logits [rows, vocabulary]. Raises `CapacityError` instead of overflowing."""
        ...

    def states(self) -> dict[str, Array]:
        """A copy of every state."""
        ...

    def reset(self, states: Mapping[str, Array] | None = None) -> None:
        """Back to zero states, or to `states` as `states()` gave them."""
        ...

    def overflow(self, allowed: bool) -> None:
        """Whether forwards past the capacity go to the runtime: only to see whether a cache of fixed shape wraps."""
        ...


class Backend(Protocol):
    """A runtime. `scope` says what its results stand for: `device`, `interpreter` or `program`."""

    scope: str

    def inspect(self, path: str) -> Inspection: ...

    def open(self, path: str, graph: str, options: OpenOptions) -> Session: ...

    def environment(self) -> dict[str, Any]: ...

    def close(self) -> None: ...


BACKENDS = {
    "coreai": "probes.coreai_backend:CoreAI",
    "coreml": "probes.coreml.backend:CoreML",
    "reference": "probes.coreml.reference:Reference",
}
"""Where each backend lives; a new one is a file and a line here."""


TAKES = {"coreai": "coreai", "coreml": "coreml", "reference": "coreml"}
"""The format that each backend reads."""


def load(name: str) -> Backend:
    """The backend of that name; raises `BackendError` with an install line when its package is missing."""
    if name not in BACKENDS:
        raise BackendError(f"no backend is called {name!r}; there are: {', '.join(BACKENDS)}")
    module, _, attribute = BACKENDS[name].partition(":")
    backend: Backend = getattr(importlib.import_module(module), attribute)()
    return backend
