"""The loop on against off for a terminal: one table by workload and budget, and no average over workloads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reports.wording import plural

EFFECTS = {"gains": "gains", "loses": "LOSES", "even": "not told apart from 1"}


def ab_lines(ab: Mapping[str, Any] | None, graph: str) -> Iterator[str]:
    """The lines below a graph; nothing where the loop was not asked for."""
    if ab is None:
        return
    yield ""
    yield f"  ab on {graph}: {ab['status']}" + (", FORCED" if ab["forced"] else "")
    for line in (*ab["reasons"], *ab["notes"]):
        yield f"    {line}"
    allocator = ab["allocator"]
    if allocator and allocator["pinned"] is not None:
        yield f"    allocator {'pinned' if allocator['pinned'] else 'NOT pinned'}"
    for bed in ab["workloads"]:
        yield from _bed(bed)


def _bed(bed: Mapping[str, Any]) -> Iterator[str]:
    yield ""
    yield f"    {bed['name']}: prompt of {bed['prompt_tokens']} tokens, budget {bed['budget']}"
    band = bed["band"]
    how = "given" if band["given"] else f"from {plural(len(band['anchors']), 'anchor')}"
    yield f"      baselines from {band['low']:.2f} to {band['high']:.2f} tok/s are valid ({how})"
    if band["reason"]:
        yield f"      {band['reason']}"
    cost = bed["verify_cost"]
    if cost and cost["points"]:
        shown = "  ".join(f"{point['s']}:{point['c_v']:.2f}" for point in cost["points"])
        yield f"      c_v by S at context {cost['context']} [{cost['scope']}]  {shown}"
        for reason in cost["reasons"]:
            yield f"      verify-cost refused: {reason}"
    yield from (f"      {line}" for line in shipped_lines(bed["shipped"]))
    valid = [row for row in bed["rows"] if row["status"] == "valid"]
    if valid:
        yield (
            f"      {'drafter':8} {'policy':11} {'tok/fwd':>7} {'draft':>6} {'accept':>6} {'tok/s':>7} {'speed-up':>9} "
            f"{'95%':>11} {'predicted':>9} {'host':>6}"
        )
    for row in valid:
        yield _row(row)
    yield from _spoiled(bed)


def _row(row: Mapping[str, Any]) -> str:
    interval = "-".join(f"{value:.2f}" for value in row["interval"] or ())
    predicted = "-" if row["predicted"] is None else f"{row['predicted']:.2f}"
    lossless = "" if row["lossless"] else f", NOT lossless: texts part at token {row['first_difference']}"
    return (
        f"      {row['drafter'][:8]:8} {row['policy']:11} {_number(row['tokens_per_forward']):>7} "
        f"{_number(row['mean_draft']):>6} {_number(row['accepted_per_round']):>6} {row['tokens_per_second']:>7.2f} "
        f"{_number(row['speedup']):>8}x {interval:>11} {predicted:>9} {row['host']['share']:>6.2%}  "
        f"{EFFECTS[row['effect']]}{lossless}{_rerun(row['rerun'])}"
    )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _rerun(rerun: Mapping[str, Any] | None) -> str:
    if rerun is None:
        return ""
    if rerun["lossless"] is None:
        return f"; alone: {rerun['reason']}"
    return "; alone: lossless" if rerun["lossless"] else f"; alone: parts at token {rerun['first_difference']}"


def _spoiled(bed: Mapping[str, Any]) -> Iterator[str]:
    """Rows that are kept in the record and left out of the table, by name."""
    for row in bed["rows"]:
        if row["status"] == "spoiled":
            apparent = f" (apparent {row['speedup']:.2f}x)" if row["speedup"] else ""
            yield f"      left out: {row['drafter']} {row['policy']}{apparent}: {'; '.join(row['spoiled'])}"
            if not row["lossless"]:
                yield f"        not lossless: texts part at token {row['first_difference']}{_rerun(row['rerun'])}"
    for item in bed["not_run"]:
        yield f"      not run: {item['drafter']} {item['policy']}: {item['reason']}"


def shipped_lines(shipped: Mapping[str, Any] | None) -> Iterator[str]:
    """How the loop without drafts stands to the runner that ships; nothing where it was not given."""
    if shipped is None:
        return
    if shipped["speed_agrees"] is not None:
        word = "agrees" if shipped["speed_agrees"] else "DISAGREES"
        yield (
            f"{word} with the shipped runner: {shipped['own_tok_s']:.2f} tok/s here, {shipped['tok_s']:.2f} "
            f"there ({shipped['difference']:+.1%}, 1.5% allowed)"
        )
    if "text_agrees" in shipped:
        where = "" if shipped["text_agrees"] else f": they part at token {shipped['first_difference']}"
        word = "the same as" if shipped["text_agrees"] else "NOT"
        yield f"its text is {word} the shipped runner's over {shipped['compared']} tokens{where}"
