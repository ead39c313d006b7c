"""Scan reports that are read back, for `diff` and `explain --model`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

SCHEMA = "spec-audit.scan/1"
_LARGEST = 500_000_000
_GRAPH = {"id": str, "verdict": str, "script": str, "line": int, "graph": str, "bundle": str, "facts": dict}
_MODEL = {"id": str, "verdict": str, "primary": str, "graphs": list, "bundle": str, "fixable_by": str}
_FINDING = {"rule": str, "message": str, "evidence": list}
_PLACE = {"path": str, "line": int}


def read(path: Path) -> dict[str, Any]:
    """The report in a file, with every key that is read later; a usage error says what is wrong with any other."""
    try:
        if path.stat().st_size > _LARGEST:
            raise click.UsageError(f"{str(path)!r}: larger than {_LARGEST} bytes")
        data = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise click.UsageError(f"cannot read {str(path)!r}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"{str(path)!r}: not JSON ({error})") from None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise click.UsageError(f"{str(path)!r}: not a report of `spec-audit scan --format json` ({SCHEMA})")
    try:
        _check(data)
    except ValueError as error:
        raise click.UsageError(f"{str(path)!r}: damaged: {error}") from None
    return data


def _check(data: Mapping[str, Any]) -> None:
    graphs = _items(data, "graphs", _GRAPH, "graphs")
    for number, graph in enumerate(graphs):
        where = f"graphs[{number}]"
        for key in ("reasons", "advice"):
            for at, finding in enumerate(_items(graph, key, _FINDING, f"{where}.{key}")):
                _items(finding, "evidence", _PLACE, f"{where}.{key}[{at}].evidence")
        _fields(graph.get("invocation"), {"argv": list}, f"{where}.invocation")
        for key in ("query", "logits", "kv", "kind"):
            fact = graph["facts"].get(key)
            _fields(fact, {"evidence": list}, f"{where}.facts.{key}")
            _items(fact, "evidence", _PLACE, f"{where}.facts.{key}.evidence")
        facts = graph["facts"]
        _items(facts, "states_evidence", _PLACE, f"{where}.facts.states_evidence")
        if facts.get("states") is not None:
            _items(facts, "states", {"name": str, "role": str}, f"{where}.facts.states")
    known = {graph["id"] for graph in graphs}
    for number, model in enumerate(_items(data, "models", _MODEL, "models")):
        missing = next((name for name in (model["primary"], *model["graphs"]) if name not in known), None)
        if missing is not None:
            raise ValueError(f"models[{number}] names a graph that is not there")


def _items(holder: Any, key: str, fields: Mapping[str, type], where: str) -> list[Any]:
    items = holder.get(key)
    if not isinstance(items, list):
        raise ValueError(f"{where} is no list")
    for number, item in enumerate(items):
        _fields(item, fields, f"{where}[{number}]")
    return items


def _fields(item: Any, fields: Mapping[str, type], where: str) -> None:
    if not isinstance(item, dict):
        raise ValueError(f"{where} is no object")
    for key, kind in fields.items():
        if not isinstance(item.get(key), kind):
            raise ValueError(f"{where}.{key} is missing or of another type")
