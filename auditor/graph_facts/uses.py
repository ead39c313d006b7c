"""States whose names say nothing: what they are by what `forward` does with them.

    self.mem_a[:, :, start:end] = k                       # a row of it for each row of the query, where that stands
    attention(q, self.mem_a[:, :, :end], ...)             # and attention takes its keys or its values from there

is a cache. What is asked of one by its name is then asked of these, too: `forward` is followed once more.

    seen = torch.cat([self.last[:, None], x[:, :-1]], 1)  # the call before has left its last row
    self.last[:] = x[:, -1]                               # and nothing of that is left

is none, and neither is a window of a few rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from auditor.forward import Outcome
from auditor.graph_facts.declaration import Declaration, Declared
from auditor.roles import role_by_name
from auditor.torch.state_writes import Write
from auditor.values import Storage, Tensor
from rules.facts import Role

_FEW = 8
"""At most so many rows are what a convolution keeps."""


def replaced(name: str, writes: Sequence[Write], outcome: Outcome) -> tuple[Role, str] | None:
    """The role of a state that each call replaces as a whole, and why; None where it does not, or nobody reads it."""
    if not writes or not all(w.whole and w.read for w in writes):
        return None
    last = writes[-1]
    if not any(isinstance(v, Tensor) and last.storage.tag in v.tags for _, v in outcome.outputs):
        return None
    if last.fresh:
        return Role.RECURRENT, f"all of `{name}` is replaced by what one call computes ({last.site.place()})"
    if last.wraps and _is_short(last.storage) and last.storage.tag not in outcome.events.looked_at:
        return Role.CONV, f"`{name}` holds a few rows, of which the last ones are kept ({last.site.place()})"
    return None


def _is_short(storage: Storage) -> bool:
    """Whether a state has room for a few rows of channels, and no heads."""
    long = [d for d in storage.shape or () if d != 1]
    return len(long) == 2 and any(isinstance(d, int) and d <= _FEW for d in long)


_STATES = ("input", "buffer")


def caches_by_use(d: Declaration, bound: Mapping[str, str], outcome: Outcome) -> frozenset[str]:
    """The names of such states among those that are declared, with those of their inputs (see `bound_inputs`).

    Where none are, a state is what `forward` writes.
    """
    if isinstance(d.state_names, tuple):
        names: Collection[str] = d.state_names
    else:
        names = {w.storage.name for w in outcome.events.writes if w.storage.role in _STATES}
    inputs = {state: i for i in d.inputs if (state := bound.get(i.name)) is not None}
    found: set[str] = set()
    for name in names:
        source = inputs.get(name)
        mine = {name, source.name, source.parameter or source.name} if source else {name, name.rpartition(".")[2]}
        if all(role_by_name(n) is Role.UNKNOWN for n in mine) and _is_cache(mine, source, outcome):
            found |= mine
    return frozenset(found)


def keeps_rows(outcome: Outcome) -> bool:
    """Whether `forward` is seen to write rows of the query to something that may be a state."""
    return any(w.storage.role in _STATES and w.capacity is not None for w in outcome.events.writes)


def _is_cache(mine: set[str], source: Declared | None, outcome: Outcome) -> bool:
    """Whether a state grows, or takes rows where those of the query stand and attention reads it."""
    events = outcome.events
    if mine & events.renewed.keys():
        return False
    if source is not None and source.varying:
        return True
    writes = [w for w in events.writes if w.storage.name in mine]
    looked_at = any(Storage(n).tag in events.looked_at for n in mine)
    return looked_at and any(w.capacity is not None for w in writes) and not any(w.whole for w in writes)
