"""The plan for a terminal, from its plain data (`spec-audit.plan/1`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reports.cost_text import SCOPES, stairs_lines
from reports.wording import plain


def render(plan: Mapping[str, Any]) -> str:
    """Every table in turn; every line is safe to print."""
    blocks = ["\n".join(plain(line) for line in _table(table)) for table in plan["tables"]]
    blocks += ["\n".join(plain(line) for line in _choice(one)) for one in plan.get("workloads", ())]
    return "\n\n".join(blocks) + "\n"


def _table(table: Mapping[str, Any]) -> Iterator[str]:
    yield f"{table['status'].upper():10} {table['label']}  [{SCOPES.get(table['scope'], table['scope'])}]"
    yield f"  {table['source']}"
    if table["points"] and "c_v" in table["points"][0]:
        costs = "  ".join(f"{point['s']}:{point['c_v']:.2f}" for point in table["points"])
        yield f"  c_v by S  {costs}"
    yield from (f"  {line}" for line in stairs_lines(table, table["scope"]))
    if table["predictions"]:
        yield f"  {'K':>3} {'c_v':>6} {'tok/round':>10} {'tok/s':>8} {'speed-up':>9}"
        for row in table["predictions"]:
            word = "loses" if row["loses"] else "plateau top" if row["plateau_top"] else ""
            yield (
                f"  {row['k']:>3} {row['c_v']:>6.2f} {row['tokens_per_round']:>10.2f} {row['tokens_per_second']:>8.1f} "
                f"{row['speedup']:>9.2f} {word}".rstrip()
            )
    yield from _ab(table["ab"])


def _ab(ab: Mapping[str, Any] | None) -> Iterator[str]:
    if ab is None:
        return
    speedup = "unknown" if ab["speedup"] is None else f"{ab['speedup']:.2f}x"
    differs = "" if ab["agrees"] in (None, True) else f" (the file says {ab['stated_speedup']})"
    lossless = {True: "lossless", False: "NOT lossless", None: "losslessness not stated"}[ab["lossless"]]
    yield f"  A/B as recorded: off {ab['off_tps']} tok/s, on {ab['on_tps']} tok/s, {speedup}{differs}, {lossless}"


def _choice(one: Mapping[str, Any]) -> Iterator[str]:
    """Recorded acceptance on one table; the best policy, or that none pays."""
    yield f"{one['workload']}, budget {one['budget']}, {one['drafter']}: {one['bundle']}"
    if one["table"] is None:
        yield "  no usable table of costs: give one that was not refused"
    else:
        yield f"  on {one['table']}  [{SCOPES.get(one['scope'], one['scope'])}]"
        yield f"  choose {one['best']}" if one["best"] else "  speculation does not pay here"
    for row in one["policies"]:
        word = "loses" if row["loses"] else ""
        yield (
            f"  {row['policy']:>12} {row['tokens_per_forward']:>6.2f} tok/forward {row['mean_c_v']:>6.2f} c_v "
            f"{row['speedup']:>6.2f}x  {row['basis']} {word}".rstrip()
        )
    for item in one["missing"]:
        yield f"  {item['policy']:>12} needs S={', '.join(map(str, item['s']))}, which the table lacks"
    for item in one["refused"]:
        yield f"  {item['policy']:>12} refused: {'; '.join(item['reasons'])}"
