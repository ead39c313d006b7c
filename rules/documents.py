"""Reports that come back as files: what has to be in them before anything is made of them.

The contracts are `reports/schemas/`; this checks the part that joins and pages rely on, so that a file that was cut or
edited is an error with its path and not a crash.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rules.costs import sweeps
from rules.fixes import FixedBy
from rules.verdict import Verdict
from rules.waivers import State

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
_STAIRS = {"status": str, "reasons": [str], "plateaus": [_PLATEAU], "avoid": [int], "measure_next": [int]}
_COST = {"status": str, "reasons": [str], "scope": str, "context": int, "points": [_POINT]}
_NUMBER = (float, None)
_ROW = {
    "drafter": str,
    "policy": str,
    "status": str,
    "spoiled": [str],
    "tokens_per_forward": _NUMBER,
    "tokens_per_second": _NUMBER,
    "speedup": _NUMBER,
    "interval": ([float], None),
    "predicted": _NUMBER,
    "lossless": bool,
    "host": {"share": float},
    "effect": str,
}
_AB = {
    "status": str,
    "reasons": [str],
    "notes": [str],
    "forced": bool,
    "workloads": [
        {
            "name": str,
            "prompt_tokens": int,
            "budget": int,
            "band": {"low": _NUMBER, "high": _NUMBER, "given": bool, "reason": str},
            "baseline_tok_s": _NUMBER,
            "verify_cost": (_COST, None),
            "rows": [_ROW],
            "not_run": [{"drafter": str, "policy": str, "reason": str}],
        }
    ],
}
_RERUN = ({"lossless": (bool, None)}, None)
_SHIPPED = ({"tok_s": _NUMBER, "speed_agrees": (bool, None)}, None)
_WIDTH = {"rows": int, "argmax_equal": int, "max_delta_relative": _NUMBER, "top2_gap_relative": _NUMBER}
_CHOICE = {
    "bundle": str,
    "workload": str,
    "budget": int,
    "drafter": str,
    "policies": [{"policy": str, "mean_c_v": float, "tokens_per_forward": float, "speedup": float}],
    "best": (str, None),
}
_WAIVER = {"state": str, "message": str}
_PROVENANCE = ({"command": [str], "configuration": (str, None), "commit": (str, None), "source_url": (str, None)}, None)
_BASELINE = ({"recorded": int, "known": int, "gone": int}, None)
_SHAPES: dict[str, Any] = {
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


_VERDICTS = tuple(map(str, Verdict))
_FIXES = tuple(map(str, FixedBy))
_STATES = tuple(map(str, State))
_PROBED = ("confirmed", "partial", "refuted")


class DocumentError(ValueError):
    """What is wrong with a report, and where in it."""


_LARGEST = 500_000_000


def read(path: Path, only: str = "") -> dict[str, Any]:
    """What `parse` makes of a file. Raises `DocumentError` as that does, and `OSError` for one that cannot be read."""
    if path.is_file() and path.stat().st_size > _LARGEST:
        raise DocumentError(f"larger than {_LARGEST} bytes, which no report is")
    return parse(path.read_bytes(), only)


def parse(raw: bytes, only: str = "") -> dict[str, Any]:
    """The report that a file holds, checked; `DocumentError` for anything else, and for another schema than `only`."""
    try:
        data = json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"not valid JSON ({error})") from None
    if only and isinstance(data, dict) and data.get("schema") in [s for s in _SHAPES if s != only]:
        command = only.removeprefix("spec-audit.").partition("/")[0]
        raise DocumentError(f"not a report of `spec-audit {command} --format json` (schema {only})")
    check(data)
    return dict(data)


def check(data: Any) -> str:
    """The schema of a report that has everything that is relied on; `DocumentError` otherwise."""
    name = data.get("schema") if isinstance(data, Mapping) else None
    if not isinstance(name, str) or name not in _SHAPES:
        known = f"{', '.join(_SHAPES)}; --format json writes them"
        if isinstance(name, str) and name.startswith("spec-audit."):
            raise DocumentError(f"its schema is {name[:60]}, which this version does not read; it reads {known}")
        raise DocumentError(f"not a report of spec-audit: its schema is none of {known}")
    _hold(data, _SHAPES[name], "")
    if name == SCAN:
        _references(data)
        _hold(data.get("provenance"), _PROVENANCE, "provenance")
        _hold(data.get("waivers", []), [_WAIVER], "waivers")
        _hold(data.get("baseline"), _BASELINE, "baseline")
        for waiver in data.get("waivers", []):
            if waiver["state"] not in _STATES:
                raise DocumentError(f"a waiver is in the state {waiver['state']!r}"[:120])
    elif name == PLAN:
        _hold(data.get("workloads", []), [_CHOICE], "workloads")
        _hold([point.get("c_v") for table in data["tables"] for point in table["points"]], [_NUMBER], "points.c_v")
    elif name == PROBE:
        _backed(data)
        _hold(data.get("files", {}), {}, "files")
        for graph in data["graphs"]:
            if graph.get("ab"):
                _hold(graph["ab"], _AB, "ab")
                _loop(graph["ab"])
            for gate in graph["gates"]:
                widths = (gate["numbers"] or {}).get("widths", {})
                _hold(widths, {}, "widths")
                _hold(list(widths.values()), [_WIDTH], "widths")
            for cost, _ in sweeps(graph):
                if "staircase" in cost:
                    _hold(cost["staircase"], _STAIRS, "staircase")
    return str(name)


def _hold(value: Any, shape: Any, where: str) -> None:
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
            _hold(value[key], inner, f"{where}.{key}" if where else key)
    elif isinstance(shape, list):
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise DocumentError(f"{where} is no list")
        for at, item in enumerate(value):
            _hold(item, shape[0], f"{where}[{at}]")
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


def _backed(probe: Mapping[str, Any]) -> None:
    """A probe's verdict is a known one, and nothing is confirmed without a graph that is."""
    for graph in (probe, *probe["graphs"]):
        if graph["verdict"] not in _PROBED:
            raise DocumentError(f"a probe has the verdict {graph['verdict']!r}"[:120])
    if probe["verdict"] == "confirmed" and not any(graph["verdict"] == "confirmed" for graph in probe["graphs"]):
        raise DocumentError("it is confirmed, but none of its graphs is")


def _loop(ab: Mapping[str, Any]) -> None:
    """What an A/B record may leave out, and the two bounds of an interval."""
    for bed in ab["workloads"]:
        _hold(bed.get("shipped"), _SHIPPED, "ab.shipped")
        for row in bed["rows"]:
            _hold(row.get("rerun"), _RERUN, "ab.rerun")
            if row["interval"] is not None and len(row["interval"]) != 2:
                raise DocumentError(f"an interval is {row['interval']!r}"[:120])


def _references(scan: Mapping[str, Any]) -> None:
    """Models refer to graphs that are there, and say what those say: a verdict stands on its graph's reasons alone."""
    known = {graph["id"]: graph for graph in scan["graphs"]}
    names = [model["id"] for model in scan["models"]]
    for twice in (name for at, name in enumerate(names) if name in names[:at]):
        raise DocumentError(f"model {twice!r} is there twice")
    for model in scan["models"]:
        for identifier in (model["primary"], *model["graphs"]):
            if identifier not in known:
                raise DocumentError(f"model {model['id']!r} has a graph {identifier!r} that is not in the report")
        if model["fixable_by"] not in _FIXES:
            raise DocumentError(f"model {model['id']!r} is fixable by {model['fixable_by']!r}")
    for kind in ("graphs", "models"):
        for item in scan[kind]:
            if item["verdict"] not in _VERDICTS:
                raise DocumentError(f"{kind[:-1]} {item['id']!r} has the verdict {item['verdict']!r}")
    for graph in scan["graphs"]:
        if graph["verdict"] == Verdict.ELIGIBLE and graph["reasons"]:
            raise DocumentError(f"graph {graph['id']!r} is eligible, with reasons against it")
    for model in scan["models"]:
        if model["verdict"] != known[model["primary"]]["verdict"]:
            raise DocumentError(f"model {model['id']!r} is {model['verdict']}, and its graph is not")
