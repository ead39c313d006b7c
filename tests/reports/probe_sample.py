"""Probe reports and plans as plain data, made by the code that makes real ones, with numbers of a staircase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from probes.acceptance import parse
from probes.plan import plan
from probes.report import document, graph
from probes.tables import Table
from rules.examples import DENSE
from rules.facts import GraphFacts

LEVELS = {1: 1.0, 2: 1.01, 3: 1.02, 4: 1.45, 5: 1.46, 6: 1.48, 7: 1.48, 8: 1.49, 9: 2.30, 10: 2.29, 11: 2.31, 12: 2.30}
"""c_v by S: plateaus 1-3, 4-8, and one whose end is not seen."""
MS = 36.9
_QUESTIONS = ("shape", "rows", "state", "history", "rewind", "repeat")


def gate(name: str, verdict: str = "confirmed", reason: str = "as it should be", ran: bool = True) -> dict[str, Any]:
    """One gate's outcome."""
    widths = {
        str(s): {"rows": s, "argmax_equal": s, "max_delta_relative": 2e-4, "top2_gap_relative": 0.03} for s in LEVELS
    }
    return {
        "gate": name,
        "question": f"what the gate {name} asks of S",
        "verdict": verdict,
        "ran": ran,
        "reason": reason,
        "thresholds": {"precision": "float16", "accept": 1e-2, "refuse": 5e-2},
        "numbers": {"prefix": 40, "max_delta_relative": 2e-4, "widths": widths if name == "rows" else {}},
        "observed": {},
    }


def gates(**said: str) -> list[dict[str, Any]]:
    """All six gates, confirmed unless said otherwise: `gates(rewind="refuted")`."""
    return [gate(name, said.get(name, "confirmed"), f"{name} says so") for name in _QUESTIONS]


def cost(scope: str = "device", context: int = 848, status: str = "ok") -> dict[str, Any]:
    """A sweep over `LEVELS`."""
    plateaus = [
        {"first": 1, "last": 3, "measured": 3, "c_v": 1.01, "bar": 1.02, "k": 2, "end_seen": True, "why": ""},
        {"first": 4, "last": 8, "measured": 5, "c_v": 1.47, "bar": 1.49, "k": 7, "end_seen": True, "why": ""},
        {"first": 9, "last": 12, "measured": 4, "c_v": 2.3, "bar": 2.31, "k": None, "end_seen": False, "why": "no end"},
    ]
    return {
        "status": status,
        "reasons": [] if status == "ok" else ["the anchors drifted by 12%"],
        "scope": scope,
        "context": context,
        "capacity": 1024,
        "repeats": 10,
        "seed": 0,
        "points": [
            {
                "s": s,
                "n": 10,
                "median_ms": MS * c_v,
                "mad_ms": 0.2,
                "first_ms": None if s == 1 else MS * c_v * 1.2,
                "c_v": c_v,
                "c_v_low": c_v if s == 1 else c_v * 0.98,
                "c_v_high": c_v if s == 1 else c_v * 1.03,
            }
            for s, c_v in LEVELS.items()
        ],
        "samples": [],
        "staircase": {
            "status": "ok",
            "reasons": [],
            "shape": "staircase",
            "plateaus": plateaus,
            "avoid": [3, 8],
            "measure_next": [13],
        },
    }


def probe(
    bundle: str = "model.aimodel",
    *,
    scope: str = "device",
    name: str = "main",
    facts: GraphFacts = DENSE,
    said: Mapping[str, str] | None = None,
    costs: Sequence[Mapping[str, Any]] | None = None,
    refused: bool = False,
    not_run: str = "",
    environment: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A probe of one entry point, as `spec-audit probe` writes it."""
    held = [] if not_run else gates(**(said or {}))
    one = graph(name, facts, held, [cost(scope)] if costs is None else costs, bundle=bundle, not_run=not_run)
    return document(
        bundle=bundle,
        backend="coreai",
        scope=scope,
        graphs=[one],
        decode=name,
        environment=environment or {"machine": "Apple M4 Max", "os": "macOS 27.0", "load": 0.1},
        settings={"widths": list(LEVELS), "prefix": 40},
        reasons=["the child died with signal 6"] if refused else [],
        refused=refused,
        files={"name": ""},
    )


def plan_of(label: str, scope: str = "device") -> dict[str, Any]:
    """A plan of one table that was measured elsewhere, with predictions."""
    times = {s: [MS * c_v] for s, c_v in LEVELS.items()}
    return plan([Table("phone.csv", label, scope, times, context=512)], parse("0.7"))


def ab_row(policy: str = "K=7", **said: Any) -> dict[str, Any]:
    """A row of an A/B record."""
    return {
        "drafter": "ngram",
        "policy": policy,
        "status": "valid",
        "spoiled": [],
        "tokens_per_forward": 2.61,
        "tokens_per_second": 53.7,
        "speedup": 1.96,
        "interval": [1.9, 2.01],
        "predicted": 1.88,
        "lossless": True,
        "rerun": None,
        "host": {"share": 0.012, "draft": 0.002, "argmax": 0.006, "bookkeeping": 0.004},
        "effect": "gains",
        **said,
    }


def ab(*rows: dict[str, Any], reasons: Sequence[str] = (), **said: Any) -> dict[str, Any]:
    """An A/B record of one workload; `said` is of the workload."""
    bed = {
        "name": "code",
        "prompt_tokens": 251,
        "budget": 256,
        "band": {"low": 26.5, "high": 28.1, "given": False, "anchors": [27.2], "reason": ""},
        "baseline_tok_s": 27.2,
        "verify_cost": None,
        "shipped": None,
        "rows": list(rows),
        "not_run": [],
        **said,
    }
    return {"status": "ok", "reasons": list(reasons), "notes": [], "forced": False, "workloads": [bed]}
