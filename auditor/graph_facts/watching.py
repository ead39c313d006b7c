"""States whose buffers have names that say nothing are followed like those whose names say what they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from auditor.graph_facts.declaration import Declaration
from auditor.roles import is_state_name
from auditor.torch.modules import tensors
from auditor.values import Instance, Storage


@contextmanager
def watched(d: Declaration, silent: Sequence[Storage]) -> Iterator[None]:
    """Meanwhile what is computed from the buffers of the declared states, or of `silent` ones, carries their tags."""
    found = [*_buffers(d), *(s for s in silent if not s.watched)]
    for storage in found:
        storage.watched = True
    try:
        yield
    finally:
        for storage in found:
            storage.watched = False


def _buffers(d: Declaration) -> list[Storage]:
    names = d.state_names if isinstance(d.state_names, tuple) else ()
    silent = {n.rpartition(".")[2] for n in names if not is_state_name(n)}
    if not silent or not isinstance(d.module, Instance):
        return []
    held = [t for n, t in tensors(d.module) if n in silent]
    return [v.base for v in held if v.base is not None and v.base.role == "buffer" and not v.base.watched]
