"""The probe's report for a terminal, from its plain data (`spec-audit.probe/1`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reports.ab_text import ab_lines
from reports.cost_text import SCOPES, cost_table, stairs_lines
from reports.wording import plain, plural

_MARKS = {"confirmed": "ok", "refuted": "NO", "partial": "--"}


def render(report: Mapping[str, Any]) -> str:
    """The whole report; every line is safe to print."""
    return "\n".join(plain(line) for line in _lines(report)) + "\n"


def _lines(report: Mapping[str, Any]) -> Iterator[str]:
    where = f"  [{SCOPES.get(report['scope'], report['scope'])}]" if report["scope"] else ""
    if report["status"] == "refused":
        yield f"REFUSED    {report['bundle']}{where}"
    else:
        yield f"{report['verdict'].upper():10} {report['bundle']}{where}"
    for reason in report["reasons"]:
        yield f"  {reason}"
    files = report["files"]
    if files:
        assets = ", ".join(f"{item['file']} {_size(item['bytes'])}" for item in files["assets"])
        yield f"  {files['kind']}: {assets}"
        yield from _model(files.get("model"))
    for note in report["notes"]:
        yield f"  note: {note}"
    for chain in report.get("set", ()):
        yield f"  {chain['statement']}"
    for graph in report["graphs"]:
        yield ""
        yield from _graph(graph, graph["name"] == report["decode_graph"] and len(report["graphs"]) > 1)
    yield from _against(report["against"])
    yield ""
    yield from _environment(report["environment"])


def _model(about: Mapping[str, Any] | None) -> Iterator[str]:
    """What a Core ML file says of itself."""
    if not about:
        return
    parts = [f"{about['kind']}, specification version {about['specification_version']}"]
    parts += [", ".join(about[key]) for key in ("opset", "precision") if about.get(key)]
    parts += [f"{name} x{count}" for name, count in about.get("compression", {}).items()]
    told = about.get("provenance", {})
    parts += [f"coremltools {told['version']}"] if "version" in told else []
    parts += [f"from {told['source']}"] if "source" in told else []
    yield f"  model: {'; '.join(parts)}"
    if about.get("default_function"):
        yield f"  default function: {about['default_function']}"


def _size(count: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"


def _graph(graph: Mapping[str, Any], decides: bool) -> Iterator[str]:
    yield f"{graph['name']}: {graph['verdict']}" + (" (this graph decides)" if decides else "")
    facts = graph["facts"]
    words = [f"{key} {facts[key]['value'] or 'unknown'}" for key in ("kind", "query", "logits", "kv")]
    yield f"  {', '.join(words)}"
    for state in facts["states"] or ():
        shape = ",".join("?" if dim == "-1" else str(dim) for dim in state["shape"])
        yield f"  state {state['name']} [{shape}]: {state['role']}"
    for reason in graph["why"]:
        # A gate's reason stands beside the gate below.
        yield f"  because {reason.partition(':')[0] if reason.startswith('gate ') else reason}"
    for item in graph["judgement"]["advice"]:
        yield f"  advice {item['rule']}: {item['message']}"
    for note in graph["notes"]:
        yield f"  note: {note}"
    if graph["not_run"]:
        yield f"  not run: {graph['not_run']}"
    width = max((len(gate["gate"]) for gate in graph["gates"]), default=0)
    for gate in graph["gates"]:
        yield f"  {_MARKS[gate['verdict']]} {gate['gate']:{width}}  {gate['reason']}"
    yield from _costs(graph["verify_cost"])
    yield from _same_steps(graph["steps"])
    yield from ab_lines(graph["ab"], graph["name"])


def _costs(costs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for cost in costs:
        yield ""
        scope = SCOPES.get(cost["scope"], cost["scope"])
        yield f"  verify-cost at context {cost['context']}, cache {cost['capacity']} rows: {cost['status']}  [{scope}]"
        for reason in cost["reasons"]:
            yield f"    {reason}"
        if cost["points"]:
            yield from (f"    {line}" for line in cost_table(cost["points"]))
            host, anchors = cost["host"], cost["anchors"]
            drift = f", anchors moved {anchors['drift']:.1%} (band {anchors['band']:.1%})" if "drift" in anchors else ""
            yield f"    host time outside forwards {host['share']:.2%}{drift}"
        if cost.get("floor_ms"):
            floors = ", ".join(f"S={width} {ms:.3f}" for width, ms in cost["floor_ms"].items())
            yield f"    a call that computes nothing, in ms: {floors}"
        if cost.get("staircase") and cost["status"] == "ok":
            yield from (f"    {line}" for line in stairs_lines(cost["staircase"], cost["scope"]))


def _same_steps(steps: Mapping[str, Any]) -> Iterator[str]:
    if steps["same"] is None:
        return
    yield ""
    if steps["same"]:
        yield f"  the steps stand at the same S in {plural(len(steps['tops']), 'context')}"
        return
    listed = [f"context {context}: {', '.join(map(str, tops)) or 'none'}" for context, tops in steps["tops"].items()]
    yield f"  the steps stand at different S: {'; '.join(listed)}"


def _against(against: Mapping[str, Any] | None) -> Iterator[str]:
    if against is None:
        return
    yield ""
    for pair in against["graphs"]:
        found = pair["disagreements"]
        yield f"against {pair['scan_graph']} ({pair['scan_verdict']}): {plural(len(found), 'disagreement')}"
        for item in found:
            yield f"  {item['message']}"
            for place in item["evidence"]:
                note = f"  {place['note']}" if place["note"] else ""
                yield f"    {place['path']}:{place['line']}{note}"
    for name in against["unmatched"]:
        yield f"against: the scan has no graph for entry point {name}"


def _environment(environment: Mapping[str, Any]) -> Iterator[str]:
    packages = ", ".join(f"{name} {version}" for name, version in environment.get("packages", {}).items())
    parts = [environment["machine"], environment["os"], f"Python {environment['python']}", packages]
    if environment.get("runtime"):
        parts.append(f"runtime: {environment['runtime']}")
    if environment["load"] is not None:
        parts.append(f"load {environment['load']}")
    if environment["thermal"]:
        parts.append(environment["thermal"])
    yield "; ".join(part for part in parts if part)
