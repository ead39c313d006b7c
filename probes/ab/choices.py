"""Which K for which workload, budget and drafter: recorded acceptance on any table of costs."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from probes.ab.policies import Fixed, parse
from probes.ab.record import Row
from probes.tables import Table

MARGIN = 0.02
"""Speed-ups closer than this are not told apart."""


def choices(rows: Sequence[Row], tables: Sequence[Table]) -> list[dict[str, Any]]:
    """For every workload, budget and drafter, and every table that was not refused: the policies, the best first.

    Measured rounds count as they were; a shorter fixed draft is cut from the longest fixed one that was recorded. What
    a longer draft would have got, nobody knows. The first of those within 2% of the best is chosen, the shortest draft
    first. Nothing is averaged over workloads.
    """
    usable = [table for table in tables if not table.reasons and 1 in table.times]
    found = []
    for group in dict.fromkeys(row.group for row in rows):
        own = [row for row in rows if row.group == group]
        refused = [{"policy": row.policy, "reasons": list(row.reasons)} for row in own if row.reasons]
        rounds = _by_policy(row for row in own if not row.reasons)
        for table in usable:
            found.append(_choice(group, rounds, table) | {"refused": refused})
        if not usable:
            found.append(
                _named(group) | {"table": None, "policies": [], "best": None, "missing": [], "refused": refused}
            )
    return found


def _named(group: tuple[str, str, str, int, str]) -> dict[str, Any]:
    source, bundle, workload, budget, drafter = group
    return {"source": source, "bundle": bundle, "workload": workload, "budget": budget, "drafter": drafter}


def _by_policy(rows: Iterable[Row]) -> dict[str, tuple[str, Sequence[tuple[int, int]]]]:
    """Rounds by policy with their basis: recorded, and cut for the K in between."""
    found: dict[str, tuple[str, Sequence[tuple[int, int]]]] = {}
    fixed: dict[int, Sequence[tuple[int, int]]] = {}
    for row in rows:
        policy = parse(_spelled(row.policy))
        found[policy.name] = ("recorded", row.rounds)
        if isinstance(policy, Fixed):
            fixed[policy.k] = row.rounds
    longest = max(fixed, default=0)
    for k in range(1, longest):
        if k not in fixed:
            cut = [(min(k, drafted), min(k, accepted)) for drafted, accepted in fixed[longest]]
            found[Fixed(k).name] = (f"cut from K={longest}", cut)
    return found


def _choice(
    group: tuple[str, str, str, int, str], rounds: Mapping[str, tuple[str, Sequence[tuple[int, int]]]], table: Table
) -> dict[str, Any]:
    medians = {s: statistics.median(values) for s, values in table.times.items()}
    policies: list[dict[str, Any]] = []
    missing: list[dict[str, Any]] = []
    for name, (basis, own) in rounds.items():
        widths = {drafted + 1 for drafted, _ in own}
        lacking = sorted(widths - set(medians))
        if lacking or not own:
            missing.append({"policy": name, "s": lacking})
            continue
        tokens = statistics.fmean(accepted + 1 for _, accepted in own)
        cost = statistics.fmean(medians[drafted + 1] for drafted, _ in own) / medians[1]
        policies.append(
            {
                "policy": name,
                "basis": basis,
                "tokens_per_forward": tokens,
                "mean_c_v": cost,
                "speedup": tokens / cost,
                "loses": tokens < cost,
            }
        )
    policies.sort(key=lambda one: -one["speedup"])
    return _named(group) | {
        "table": table.label,
        "scope": table.scope,
        "policies": policies,
        "best": _best(policies),
        "missing": missing,
    }


def _best(policies: Sequence[Mapping[str, Any]]) -> str | None:
    """The shortest draft within the margin of the best; None where speculation does not pay."""
    if not policies or policies[0]["speedup"] <= 1:
        return None
    close = [one for one in policies if one["speedup"] >= policies[0]["speedup"] * (1 - MARGIN) and not one["loses"]]
    return str(min(close, key=lambda one: parse(_spelled(one["policy"])).most)["policy"])


def _spelled(name: str) -> str:
    return name.removeprefix("K=")
