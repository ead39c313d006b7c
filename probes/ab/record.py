"""A/B records read back from probe reports, and checked: a record that contradicts itself is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from probes.ab.policies import parse
from probes.tables import whole

_SIZE_LIMIT = 256 * 2**20


@dataclass(frozen=True, slots=True)
class Row:
    """The rounds of one row as (drafted, accepted); `reasons` say why it is not used."""

    source: str
    bundle: str
    workload: str
    budget: int
    drafter: str
    policy: str
    rounds: tuple[tuple[int, int], ...]
    tokens: int
    reasons: tuple[str, ...] = ()

    @property
    def group(self) -> tuple[str, str, str, int, str]:
        return self.source, self.bundle, self.workload, self.budget, self.drafter


def read(path: Path) -> list[Row]:
    """The rows of a probe report; none for any other file, whose form is somebody else's to judge.

    Raises `TableError` where the report was cut or edited.
    """
    try:
        if path.stat().st_size > _SIZE_LIMIT:
            return []
        data = json.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return []
    if not isinstance(data, dict) or not str(data.get("schema", "")).startswith("spec-audit.probe/"):
        return []
    with whole(path.as_posix()):
        return list(_rows(data, path.as_posix()))


def _rows(data: Mapping[str, Any], source: str) -> Iterator[Row]:
    for graph in data.get("graphs", []):
        for bed in (graph.get("ab") or {}).get("workloads", []):
            for row in bed["rows"]:
                parse(str(row["policy"]).removeprefix("K="))
                rounds = tuple((int(drafted), int(accepted)) for drafted, accepted in row["rounds"])
                yield Row(
                    source,
                    f"{data.get('bundle', '')}:{graph['name']}",
                    str(bed["name"]),
                    int(bed["budget"]),
                    str(row["drafter"]),
                    str(row["policy"]),
                    rounds,
                    int(row.get("tokens") or 0),
                    tuple(contradictions(row)),
                )


def contradictions(row: Mapping[str, Any]) -> list[str]:
    """What is wrong with a row; a failure that holds alone is no contradiction, and is no use either."""
    reasons = []
    for what, claim in (("the record", row), ("its re-run", row.get("rerun") or {"lossless": None})):
        lossless, apart = claim.get("lossless"), claim.get("first_difference")
        if lossless is False and not isinstance(apart, int):
            reasons.append(f"{what} says FAIL without the position where the texts part")
        elif lossless is True and apart is not None:
            reasons.append(f"{what} says lossless, and that the texts part at token {apart}")
    rounds = row["rounds"]
    if any(not 0 <= accepted <= drafted for drafted, accepted in rounds):
        reasons.append("a round accepted more than it drafted")
    tokens = row.get("tokens")
    most = sum(accepted + 1 for _, accepted in rounds)
    if isinstance(tokens, int) and not most - max((d for d, _ in rounds), default=0) <= tokens <= most:
        reasons.append(f"its rounds give {most} tokens, and it counts {tokens}")
    rerun = row.get("rerun")
    if row.get("lossless") is False and not reasons and not (rerun and rerun.get("lossless") is True):
        reasons.append("not lossless, so its acceptance is not the model's")
    return reasons
