"""Reports that come back as files: what has to be in them before anything is made of them.

The contracts are `reports/schemas/`; this checks the part that joins and pages rely on, so that a file that was cut or
edited is an error with its path and not a crash.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rules import document_shapes as shapes
from rules.costs import sweeps
from rules.document_shapes import PLAN, PROBE, SCAN, SHAPES, DocumentError, hold
from rules.fixes import FixedBy
from rules.verdict import Verdict
from rules.waivers import State

_VERDICTS = tuple(map(str, Verdict))
_FIXES = tuple(map(str, FixedBy))
_STATES = tuple(map(str, State))
_PROBED = ("confirmed", "partial", "refuted")
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
    if only and isinstance(data, dict) and data.get("schema") in [s for s in SHAPES if s != only]:
        command = only.removeprefix("spec-audit.").partition("/")[0]
        raise DocumentError(f"not a report of `spec-audit {command} --format json` (schema {only})")
    check(data)
    return dict(data)


def check(data: Any) -> str:
    """The schema of a report that has everything that is relied on; `DocumentError` otherwise."""
    name = data.get("schema") if isinstance(data, Mapping) else None
    if not isinstance(name, str) or name not in SHAPES:
        known = f"{', '.join(SHAPES)}; --format json writes them"
        if isinstance(name, str) and name.startswith("spec-audit."):
            raise DocumentError(f"its schema is {name[:60]}, which this version does not read; it reads {known}")
        raise DocumentError(f"not a report of spec-audit: its schema is none of {known}")
    hold(data, SHAPES[name], "")
    if name == SCAN:
        _references(data)
        hold(data.get("provenance"), shapes.PROVENANCE, "provenance")
        hold(data.get("waivers", []), [shapes.WAIVER], "waivers")
        hold(data.get("baseline"), shapes.BASELINE, "baseline")
        for waiver in data.get("waivers", []):
            if waiver["state"] not in _STATES:
                raise DocumentError(f"a waiver is in the state {waiver['state']!r}"[:120])
    elif name == PLAN:
        hold(data.get("workloads", []), [shapes.CHOICE], "workloads")
        hold([point.get("c_v") for table in data["tables"] for point in table["points"]], [shapes.NUMBER], "points.c_v")
    elif name == PROBE:
        _backed(data)
        hold(data.get("files", {}), {}, "files")
        for graph in data["graphs"]:
            if graph.get("ab"):
                hold(graph["ab"], shapes.AB, "ab")
                _loop(graph["ab"])
            for gate in graph["gates"]:
                widths = (gate["numbers"] or {}).get("widths", {})
                hold(widths, {}, "widths")
                hold(list(widths.values()), [shapes.WIDTH], "widths")
            for cost, _ in sweeps(graph):
                if "staircase" in cost:
                    hold(cost["staircase"], shapes.STAIRS, "staircase")
    return str(name)


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
        hold(bed.get("shipped"), shapes.SHIPPED, "ab.shipped")
        for row in bed["rows"]:
            hold(row.get("rerun"), shapes.RERUN, "ab.rerun")
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
