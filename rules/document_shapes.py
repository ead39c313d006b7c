"""What joins and pages rely on in a report that comes back as a file, as data, and the check of a value against it."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

SCAN, PROBE, PLAN = "spec-audit.scan/1", "spec-audit.probe/1", "spec-audit.plan/1"

# A class is a type; a pattern, a text that it fits; a list of one shape, a list of it. A mapping lists the keys that
# must be there.
_PLACE = {"path": str, "line": int, "note": str}
_FACT = {"value": (str, None), "evidence": [_PLACE], "reason": str}
_STATE = {"name": str, "role": str, "shape": [str], "evidence": [_PLACE], "reason": str}
_FACTS = {
    "kind": _FACT,
    "states": ([_STATE], None),
    "states_evidence": [_PLACE],
    "states_reason": str,
    "query": _FACT,
    "logits": _FACT,
    "kv": _FACT,
    "marks": [{"trait": str, "detail": str, "evidence": [_PLACE]}],
}
_RULE = re.compile(r"[A-Za-z0-9_-]+")
_SEEN = {"rule": _RULE, "message": str, "severity": str, "confidence": str, "evidence": [_PLACE]}
_FINDING = {**_SEEN, "fix": str}
_PLATEAU = {"first": int, "last": int, "c_v": (float, None), "bar": (float, None), "k": (int, None)}
_POINT = {"s": int, "median_ms": float, "mad_ms": float, "c_v": float, "c_v_low": float, "c_v_high": float}
STAIRS = {"status": str, "reasons": [str], "plateaus": [_PLATEAU], "avoid": [int], "measure_next": [int]}
_COST = {"status": str, "reasons": [str], "scope": str, "context": int, "points": [_POINT]}
NUMBER = (float, None)
_ROW = {
    "drafter": str,
    "policy": str,
    "status": str,
    "spoiled": [str],
    "tokens_per_forward": NUMBER,
    "tokens_per_second": NUMBER,
    "speedup": NUMBER,
    "interval": ([float], None),
    "predicted": NUMBER,
    "lossless": bool,
    "host": {"share": float},
    "effect": str,
}
AB = {
    "status": str,
    "reasons": [str],
    "notes": [str],
    "forced": bool,
    "workloads": [
        {
            "name": str,
            "prompt_tokens": int,
            "budget": int,
            "band": {"low": NUMBER, "high": NUMBER, "given": bool, "reason": str},
            "baseline_tok_s": NUMBER,
            "verify_cost": (_COST, None),
            "rows": [_ROW],
            "not_run": [{"drafter": str, "policy": str, "reason": str}],
        }
    ],
}
RERUN = ({"lossless": (bool, None)}, None)
SHIPPED = ({"tok_s": NUMBER, "speed_agrees": (bool, None)}, None)
WIDTH = {"rows": int, "argmax_equal": int, "max_delta_relative": NUMBER, "top2_gap_relative": NUMBER}
CHOICE = {
    "bundle": str,
    "workload": str,
    "budget": int,
    "drafter": str,
    "policies": [{"policy": str, "mean_c_v": float, "tokens_per_forward": float, "speedup": float}],
    "best": (str, None),
}
WAIVER = {"state": str, "message": str}
PROVENANCE = ({"command": [str], "configuration": (str, None), "commit": (str, None), "source_url": (str, None)}, None)
BASELINE = ({"recorded": int, "known": int, "gone": int}, None)
SHAPES: dict[str, Any] = {
    SCAN: {
        "tool": {"name": str, "version": str},
        "root": str,
        "files": [{"path": str, "status": str, "reason": str}],
        "graphs": [
            {
                "id": str,
                "script": str,
                "line": int,
                "graph": str,
                "bundle": str,
                "invocation": {"kind": str, "recipe": (str, None), "argv": [str]},
                "verdict": str,
                "facts": _FACTS,
                "reasons": [_FINDING],
                "advice": [_FINDING],
            }
        ],
        "models": [
            {
                "id": str,
                "family": str,
                "recipe": (str, None),
                "bundle": str,
                "graphs": [str],
                "verdict": str,
                "primary": str,
                "fixable_by": str,
                "fix": str,
            }
        ],
    },
    PROBE: {
        "tool": {"name": str, "version": str},
        "bundle": str,
        "status": str,
        "reasons": [str],
        "verdict": str,
        "scope": str,
        "decode_graph": (str, None),
        "graphs": [
            {
                "name": str,
                "verdict": str,
                "why": [str],
                "facts": _FACTS,
                "judgement": {"verdict": str, "reasons": [_SEEN], "advice": [_SEEN]},
                "gates": [
                    {
                        "gate": str,
                        "question": str,
                        "verdict": str,
                        "ran": bool,
                        "reason": str,
                        "numbers": ({}, None),
                        "thresholds": ({"precision": str, "accept": float, "refuse": float}, None),
                    }
                ],
                "verify_cost": [_COST],
                "not_run": str,
                "notes": [str],
            }
        ],
        "notes": [str],
        "environment": {},
        "settings": {},
    },
    PLAN: {
        "tables": [
            {
                "source": str,
                "label": str,
                "scope": str,
                "status": str,
                "reasons": [str],
                "plateaus": [_PLATEAU],
                "avoid": [int],
                "measure_next": [int],
                "points": [{"s": int, "ms": float}],
                "predictions": [
                    {"k": int, "c_v": float, "tokens_per_round": float, "tokens_per_second": float, "speedup": float}
                ],
            }
        ]
    },
}


class DocumentError(ValueError):
    """What is wrong with a report, and where in it."""


def hold(value: Any, shape: Any, where: str) -> None:
    """`DocumentError` with the place `where` unless `value` has the shape."""
    if isinstance(shape, tuple):
        if value is None:
            return
        shape = shape[0]
    if isinstance(shape, Mapping):
        if not isinstance(value, Mapping):
            raise DocumentError(f"{where or 'the report'} is no object")
        for key, inner in shape.items():
            if key not in value:
                raise DocumentError(f"{where or 'the report'} has no {key!r}")
            hold(value[key], inner, f"{where}.{key}" if where else key)
    elif isinstance(shape, list):
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise DocumentError(f"{where} is no list")
        for at, item in enumerate(value):
            hold(item, shape[0], f"{where}[{at}]")
    elif not _is(value, shape):
        raise DocumentError(f"{where} is {value!r}"[:120])


def _is(value: Any, kind: type | re.Pattern[str]) -> bool:
    if isinstance(kind, re.Pattern):
        return isinstance(value, str) and kind.fullmatch(value) is not None
    if kind in (int, float) and isinstance(value, bool):
        return False
    if kind is int:
        return isinstance(value, int) and abs(value) < 2**63
    if kind is float:
        return isinstance(value, int | float) and abs(value) <= sys.float_info.max
    return isinstance(value, kind)
