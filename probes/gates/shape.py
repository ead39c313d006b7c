"""Does a query of S positions give S rows? Asked before anything is compared."""

from __future__ import annotations

from probes.gates.bench import Bench
from probes.gates.gate import GateResult, Outcome

NAME = "shape"
QUESTION = "a query of S gives S finite rows of logits, and a cache that is full refuses"


def run(bench: Bench) -> GateResult:
    """Rows for every width in use, after a prefix."""
    import numpy as np

    prompt = bench.tokens(bench.prefix)
    start = bench.prefill(prompt)
    rows: dict[str, int] = {}
    unfinite = []
    for width in bench.widths:
        bench.back(start)
        out = bench.forward(bench.tokens(width, 1), bench.prefix)
        rows[str(width)] = len(out)
        if not np.isfinite(out).all():
            unfinite.append(width)
    numbers = {
        "prefix": bench.prefix,
        "rows": rows,
        "capacity": bench.session.capacity,
        "vocabulary": out.shape[1],
        "positions": str(bench.session.positions),
    }
    wrong = {int(width): count for width, count in rows.items() if int(width) != count}
    if wrong:
        width, count = next(iter(wrong.items()))
        fixed = len(set(rows.values())) == 1
        observed = {"baked-length": f"{count} rows whatever S is"} if fixed and count > 1 else {}
        what = f"{count} row{'s' if count != 1 else ''} for S={width}"
        why = "; the logits of the other positions do not come out" if count < width else ""
        return GateResult(NAME, Outcome.REFUTED, what + why, numbers, observed=observed)
    if unfinite:
        return GateResult(NAME, Outcome.REFUTED, f"values that are no numbers at S={unfinite[0]}", numbers)
    if bench.single:
        return GateResult(NAME, Outcome.PARTIAL, f"{bench.only_one}: one row says nothing about more", numbers)
    widths = f"S={bench.widths[0]}..{bench.widest}" if len(bench.widths) > 1 else f"S={bench.widest}"
    return GateResult(NAME, Outcome.CONFIRMED, f"{widths}: as many rows as positions", numbers)
