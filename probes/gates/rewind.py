"""Is *do not advance* enough to take drafts back?

Junk drafts are run and not advanced past; the right tokens follow at the same positions. With a cache that is indexed
by position nothing may move. A recurrent state keeps the junk. A ring has lost rows to it, and that shows only once the
ring is full; so a cache of fixed shape is also tried past its capacity, after looking at which row a write there lands
on: a ring's write comes round to an old row, a linear cache's does not. And the stale rows are poisoned: whoever reads
them shows it.

The same forwards are compared with themselves, so the only difference that is nothing is what they differ by when they
are run twice. A tolerance for orders of summation would pass a hybrid whose state says little.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from probes.gates.bench import Bench, Snapshot, changed_rows
from probes.gates.gate import GateResult, Outcome, graded, shown, still, worst
from probes.roles import role_of
from probes.signature import fixed_axis, position_axis
from probes.tolerance import Difference, compare

if TYPE_CHECKING:
    from probes.backend import Rows

NAME = "rewind"
QUESTION = "after rejected drafts nothing moves, past any window, with the stale rows poisoned"
_POISONS = ("nan", "1e3", "16x")
_RIGHT = 6
_BEYOND = 8


def run(bench: Bench) -> GateResult:
    """Junk once and twice over, at two offsets; poison; and past the capacity of a fixed shape."""
    if not bench.session.signature.states:
        return GateResult.not_run(NAME, "the graph has no states, so there is nothing to rewind")
    trials = [_Trial(bench, bench.prefix), _Trial(bench, max(1, bench.prefix // 2), rounds=2)]
    plain = [trial.after(trial.stale) for trial in trials]
    pairs = list(zip(trials, plain, strict=True))
    numbers: dict[str, Any] = {"rejected": [{"prefix": trial.prefix, **found.as_json()} for trial, found in pairs]}
    verdicts = [trial.graded(found) for trial, found in pairs]
    largest = max(plain, key=lambda difference: difference.relative)
    reasons = [f"after {bench.prefix} tokens: {shown(largest)}"]
    observed: dict[str, str] = {}
    if worst(verdicts) is Outcome.CONFIRMED:
        verdict, words, found = _poisoned(bench, trials[0])
        numbers["poison"] = found
        verdicts.append(verdict)
        reasons.append(words)
        verdict, words, found, observed = _past_capacity(bench)
        if found:
            numbers["past_capacity"] = found
            verdicts.append(verdict)
            reasons.append(words)
    else:
        if worst(verdicts) is Outcome.PARTIAL:
            reasons.append("small, but the drafts moved what came after them")
        others = [port.name for port in bench.session.signature.states if not role_of(port)[0].is_kv]
        if others:
            reasons.append(f"states that keep what they saw: {', '.join(others)}")
    return GateResult(NAME, worst(verdicts), "; ".join(reasons), numbers, bench.tolerance, observed=observed)


class _Trial:
    """One rewind: the clean continuation of a prefix, and the states after rejected drafts at the same positions.

    It continues by steps and by one forward, each compared with its like: a mask may hide the stale rows from a step
    and leave one of them open to the last row of a wider query.
    """

    def __init__(self, bench: Bench, prefix: int, rounds: int = 1) -> None:
        self.bench = bench
        self.prefix = prefix
        self.right = bench.tokens(_RIGHT, 1)
        self.start: Snapshot = bench.prefill(bench.tokens(prefix))
        self.clean = self._continued(self.start)
        bench.back(self.start)
        for salt in range(rounds):
            bench.feed(bench.tokens(max(bench.widest, 2), 3 + salt), prefix)
        self.stale: Snapshot = bench.session.states()

    def after(self, states: Snapshot) -> Difference:
        """The right tokens from `states`, against the clean continuation."""
        return compare(self.clean, self._continued(states))

    def graded(self, difference: Difference) -> Outcome:
        """The verdict of `after`: what moves within the tolerance is not nothing."""
        found = graded(difference, self.bench.tolerance)
        if found is not Outcome.CONFIRMED or difference.relative == 0:
            return found
        return Outcome.PARTIAL if difference.relative > still(self.after(self.start)) else found

    def _continued(self, states: Snapshot) -> Rows:
        """The rows of the right tokens, one by one and then in the widest pieces; of one position, the steps alone."""
        import numpy as np

        self.bench.back(states)
        steps = self.bench.steps(self.right, self.prefix)
        if self.bench.single:
            return steps
        self.bench.back(states)
        return np.concatenate([steps, self.bench.feed(self.right, self.prefix)])


def _poisoned(bench: Bench, trial: _Trial) -> tuple[Outcome, str, dict[str, Any]]:
    """NaN shows a read at once, but a graph that reads stale rows behind a mask is right as well; it needs a number."""
    axes = bench.axes(trial.start, trial.prefix)
    if not axes:
        return Outcome.CONFIRMED, "no state is indexed by position, so none was poisoned", {"ran": False}
    tried: dict[str, Any] = {}
    for poison in _POISONS:
        states = {name: _poison(array, axes.get(name), trial.prefix, poison) for name, array in trial.stale.items()}
        difference = trial.after(states)
        tried[poison] = difference.as_json()
        if graded(difference, bench.tolerance) is Outcome.CONFIRMED:
            how = "never read" if poison == "nan" else f"read behind a mask (poisoned with {poison})"
            return Outcome.CONFIRMED, f"stale rows are {how}", {"ran": True, "tried": tried}
    return Outcome.REFUTED, f"stale rows are read: {shown(difference)}", {"ran": True, "tried": tried}


def _poison(array: Any, axis: int | None, start: int, poison: str) -> Any:
    import numpy as np

    if axis is None:
        return array
    value = {"nan": float("nan"), "1e3": 1e3}.get(poison)
    if value is None:
        value = 16 * float(np.abs(array.astype(np.float32)).max())
    out = array.copy()
    out[(slice(None),) * axis + (slice(start, None),)] = value
    return out


def _past_capacity(bench: Bench) -> tuple[Outcome, str, dict[str, Any], dict[str, str]]:
    """What a cache of fixed shape does past its end: refuse, drop the write, or wrap."""
    session = bench.session
    fixed = [p for p in session.signature.states if position_axis(p) is None and role_of(p)[0].is_kv]
    if not fixed or session.capacity is None:
        return Outcome.CONFIRMED, "", {}, {}
    beyond = session.capacity + min(session.capacity // 2, _BEYOND)
    session.overflow(True)
    try:
        written = _where_written(bench, fixed[0].name, fixed_axis(fixed[0]) or 0, session.capacity, beyond)
    except (RuntimeError, ValueError) as error:
        words = f"past its {session.capacity} rows the runtime refuses: not a ring"
        return Outcome.CONFIRMED, words, {"capacity": session.capacity, "refused": str(error)[:200]}, {}
    finally:
        session.overflow(False)
    found: dict[str, Any] = {"capacity": session.capacity, "written_at": written}
    if not _wraps(written, session.capacity):
        words = f"past its {session.capacity} rows no old row is rewritten: linear; keep offset + S below that"
        return Outcome.CONFIRMED, words, found, {}
    session.overflow(True)
    try:
        trial = _Trial(bench, beyond)
        difference = trial.after(trial.stale)
    finally:
        session.overflow(False)
    found["rejected"] = difference.as_json()
    verdict = trial.graded(difference)
    position, rows = next((int(at), rows) for at, rows in written.items() if rows)
    where = f"row {rows[0]}" if len(rows) == 1 else f"{len(rows)} rows"
    wraps = f"the cache wraps: position {position} rewrote {where} of {session.capacity}"
    words = f"{wraps}, and after {beyond} tokens {shown(difference)}"
    return verdict, words, found, {"ring-cache": wraps}


def _where_written(bench: Bench, name: str, axis: int, capacity: int, beyond: int) -> dict[str, list[int]]:
    """The rows that steps past the capacity change, by position."""
    prompt = bench.tokens(beyond)
    before = bench.prefill(prompt[:capacity])[name]
    written = {}
    for position in range(capacity, beyond):
        bench.steps(prompt[position : position + 1], position)
        after = bench.session.states()[name]
        written[str(position)] = changed_rows(before, after, axis)
        before = after
    return written


def _wraps(written: dict[str, list[int]], capacity: int) -> bool:
    """Whether old rows were overwritten: each write one row further round, or every write moving many rows along.

    A write that is clamped to the last row, or dropped, is a linear cache without a check.
    """
    rows = [set(changed) for changed in written.values()]
    if all(not changed or changed <= {capacity - 1} for changed in rows):
        return False
    return len(set.union(*rows)) > 1
