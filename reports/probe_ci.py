"""The probe's report for CI, from its plain data (`spec-audit.probe/1`): Markdown and JUnit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reports import page_words
from reports.cost_text import SCOPES, stairs_lines
from reports.junit import Case, case, suite
from reports.markdown import code, text
from rules.speedups import Measured, measured

_MARKS = {"confirmed": "✅", "refuted": "❌", "partial": "❔"}


def junit(report: Mapping[str, Any], fail_on: str) -> str:
    """A case for the verdict, each gate, each sweep and the loop. Only what the exit status counts fails."""
    return suite("probe", list(_cases(report, fail_on)))


def _cases(report: Mapping[str, Any], fail_on: str) -> Iterator[Case]:
    counted = {"never": (), "refuted": ("refuted",), "partial": ("refuted", "partial")}[fail_on]
    bundle = report["bundle"]
    if report["status"] == "refused":
        reasons = "; ".join(report["reasons"]) or "not probed"
        failed = fail_on != "never"
        yield case(bundle, "verdict", failure=reasons if failed else "", skipped=reasons, kind="refused")
    else:
        decides = [graph for graph in report["graphs"] if graph["name"] == report["decode_graph"]]
        why = "; ".join(reason for graph in decides for reason in graph["why"])
        yield _case(bundle, "verdict", report["verdict"], why, counted)
    for graph in report["graphs"]:
        group = f"{bundle}:{graph['name']}"
        heard = counted if graph["name"] == report["decode_graph"] else ()
        for gate in graph["gates"]:
            yield _case(group, f"gate {gate['gate']}", gate["verdict"], gate["reason"], heard)
        for cost in graph["verify_cost"]:
            refused = "; ".join(cost["reasons"]) or cost["status"]
            yield case(group, f"verify-cost at context {cost['context']}", skipped="" if _fine(cost) else refused)
        if graph.get("ab"):
            yield _loop_case(group, graph["ab"], fail_on)


def _loop_case(group: str, ab: Mapping[str, Any], fail_on: str) -> Case:
    if ab["status"] == "ok":
        return case(group, "ab")
    why = f"{ab['status']}: {'; '.join(ab['reasons'])}" if ab["reasons"] else str(ab["status"])
    failed = ab["status"] == "interrupted" or fail_on != "never"
    return case(group, "ab", failure=why if failed else "", skipped=why, kind=ab["status"])


def _case(group: str, name: str, verdict: str, reason: str, counted: tuple[str, ...]) -> Case:
    if verdict == "confirmed":
        return case(group, name)
    message = f"{verdict}: {reason}" if reason else verdict
    return case(group, name, failure=message if verdict in counted else "", skipped=message, kind=verdict)


def _fine(cost: Mapping[str, Any]) -> bool:
    return bool(cost["status"] == "ok")


def markdown(report: Mapping[str, Any]) -> str:
    """The verdict, then for each graph its gates and the draft lengths that pay."""
    return "\n\n".join(_blocks(report)) + "\n"


def _blocks(report: Mapping[str, Any]) -> Iterator[str]:
    scope = SCOPES.get(report["scope"], report["scope"])
    where = f" ({text(scope)})" if scope else ""
    refused = report["status"] == "refused"
    says = "refused" if refused else report["verdict"]
    yield f"## {'❌' if refused else _MARKS[says]} {code(report['bundle'])}: {says}{where}"
    if report["reasons"]:
        yield "\n".join(f"- {text(reason)}" for reason in report["reasons"])
    for graph in report["graphs"]:
        yield from _graph(graph, report["scope"], graph["name"] == report["decode_graph"])


def _graph(graph: Mapping[str, Any], scope: str, decides: bool) -> Iterator[str]:
    yield f"### {code(graph['name'])}: {graph['verdict']}{' (this graph decides)' if decides else ''}"
    # A gate's reason stands in the table.
    why = [f"- {text(reason)}" for reason in graph["why"] if not reason.startswith("gate ")]
    why += [f"- not run: {text(graph['not_run'])}"] if graph["not_run"] else []
    if why:
        yield "\n".join(why)
    if graph["gates"]:
        rows = [
            f"| {_MARKS[g['verdict']]} {g['verdict']} | {g['gate']} | {text(g['reason'])} |" for g in graph["gates"]
        ]
        yield "\n".join(["| verdict | gate | |", "| --- | --- | --- |", *rows])
    for cost in graph["verify_cost"]:
        yield from _cost(cost)
    if graph.get("ab"):
        yield from _loop(graph, scope)


def _loop(graph: Mapping[str, Any], scope: str) -> Iterator[str]:
    """The loop: its workloads, then the rows, with the reason where one has no figures."""
    ab = graph["ab"]
    yield f"**ab**, drafts on against off ({text(SCOPES.get(scope, scope))}): {ab['status']}"
    lines = [*ab["reasons"], *ab["notes"], *map(page_words.bed, ab["workloads"])]
    if lines:
        yield "\n".join(f"- {text(line)}" for line in lines)
    rows = [f"| {' | '.join(_cells(row))} |" for row in measured(graph, scope)]
    if rows:
        head = "| workload | budget | drafter | K | tokens a forward | tokens/s | speed-up | lossless | host |"
        yield "\n".join([head, "| --- | ---: | --- | --- | ---: | ---: | --- | --- | ---: |", *rows])


def _cells(row: Measured) -> Iterator[str]:
    yield from (text(row.workload), str(row.budget), text(row.drafter), text(row.policy))
    yield from (page_words.number(row.tokens_per_forward), page_words.number(row.tokens_per_second, 1))
    if row.not_run or row.left_out:
        yield text(f"not run: {row.not_run}" if row.not_run else f"left out: {row.left_out}")
    else:
        interval = f" ({row.low:.2f}-{row.high:.2f})" if row.low is not None and row.high is not None else ""
        yield f"{page_words.number(row.speedup)}x{interval} {text(page_words.effect(row.effect))}"
    yield "-" if row.not_run else page_words.lossless(row.lossless, row.alone)
    yield page_words.percent(row.host)


def _cost(cost: Mapping[str, Any]) -> Iterator[str]:
    scope = text(SCOPES.get(cost["scope"], cost["scope"]))
    yield f"**verify-cost** at context {cost['context']} ({scope}): {cost['status']}"
    if cost["reasons"]:
        yield "\n".join(f"- {text(reason)}" for reason in cost["reasons"])
    if _fine(cost) and cost.get("staircase"):
        yield "\n".join(f"- {text(line)}" for line in stairs_lines(cost["staircase"], cost["scope"]))
