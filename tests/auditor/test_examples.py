"""The example repository: what is said of each graph, and which lines are cited. Lines are found by their markers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import pytest

from auditor.request import ScanRequest
from auditor.scan import scan
from rules.audit import audit
from rules.facts import FileStatus, Graph, Role, Scan
from rules.verdict import judge
from tests.auditor.support import ROOT, line_of

EXAMPLES = ROOT / "examples" / "exports"


@cache
def examples() -> Scan:
    return scan(ScanRequest(root=EXAMPLES, paths=(EXAMPLES,), cache=False))


@dataclass(frozen=True, slots=True)
class Expected:
    """`broken` are all broken rules in order; `flags` are options that decide the query; `cited` are markers
    (`file: marker`) of lines in the primary reason's evidence; `fix` is a part of its text.
    """

    says: str
    broken: tuple[str, ...] = ()
    flags: frozenset[str] = frozenset()
    cited: tuple[str, ...] = ()
    fix: str = ""


STATIC_IDS = frozenset({"--static-ids"})
QUERY = frozenset({"--query"})

GRAPHS = {
    "conversion/export_dense.py::main@pine-1b_float16.aimodel": Expected("eligible", (), STATIC_IDS),
    "conversion/export_dense.py --static-ids::main@pine-1b_float16_static.aimodel": Expected(
        "out by static-query",
        ("static-query",),
        STATIC_IDS,
        ("export_dense.py: ids-example", "export_dense.py: ids-dim"),
        "drop `--static-ids`",
    ),
    "models/pine-1b/recipe.toml#pine-1b::main@pine-1b_float16_static.aimodel": Expected(
        "out by static-query", ("static-query",), STATIC_IDS, ("export_dense.py: ids-dim",), "drop `--static-ids`"
    ),
    "models/pine-1b/recipe.toml#pine-1b-dynamic::main@pine-1b_float16.aimodel": Expected("eligible", (), STATIC_IDS),
    "models/pine-suite/recipe.toml#pine-suite/step1::main@pine-suite_float32.aimodel": Expected(
        "eligible", (), STATIC_IDS
    ),
    "models/pine-suite/recipe.toml#pine-suite/step0::main@moss-encoder.aimodel": Expected(
        "out by not-a-decoder", ("not-a-decoder",)
    ),
    "models/pine-step/recipe.toml#pine-step::main@pine-step.aimodel": Expected(
        "out by static-query",
        ("static-query",),
        cited=("export_step.py: pinned-by-literal", "export_step.py: # export"),
        fix="export the query dimension as dynamic",
    ),
    "models/pine-chat/recipe.toml#pine-chat::main@pine-chat-4l.aimodel": Expected(
        "out by last-token-only",
        ("last-token-only",),
        cited=("export_last_token.py: # one row left",),
        fix="keep every position",
    ),
    "models/pine-kernels/recipe.toml#pine-kernels::main@pine-kernels.aimodel": Expected(
        "out by static-query",
        ("static-query", "row-kernel"),
        STATIC_IDS,
        ("export_row_kernel.py: # ids-example",),
        "is no fix: with it the graph is out by `row-kernel`",
    ),
    "models/pine-kernels/recipe.toml#pine-kernels-dynamic::main@pine-kernels.aimodel": Expected(
        "out by row-kernel", ("row-kernel",), STATIC_IDS, ("kernels.py: one-row-kernel",)
    ),
    "models/pine-windowed/recipe.toml#pine-windowed::prefill@pine-windowed.aimodel": Expected(
        "unresolved by fixed-window", ("fixed-window",), cited=("export_window.py: # ids-example",)
    ),
    "models/pine-windowed/recipe.toml#pine-windowed::decode@pine-windowed.aimodel": Expected(
        "out by static-query", ("static-query",), cited=("export_window.py: # ids-example",)
    ),
    "models/fern-hybrid/recipe.toml#fern-hybrid::main@fern-hybrid.aimodel": Expected(
        "out by hybrid-state", ("hybrid-state",), cited=("names.py: HYBRID_STATE_NAMES", "export_hybrid.py: # export")
    ),
    "models/birch-io/recipe.toml#birch-io::main@birch-io.aimodel": Expected(
        "out by kv-as-io", ("kv-as-io",), cited=("export_kv_io.py: # cache-names",)
    ),
    "models/moss-encoder/recipe.toml#moss-encoder::main@moss-encoder.aimodel": Expected(
        "out by not-a-decoder", ("not-a-decoder",)
    ),
    "models/pine-coreml/recipe.toml#pine-coreml::main@pine-range.mlpackage": Expected("eligible", (), QUERY),
    "models/pine-coreml/recipe.toml#pine-coreml-one::main@pine-one.mlpackage": Expected(
        "out by static-query", ("static-query",), QUERY, ("export_coreml.py: # ids-one",), "use `--query range`"
    ),
    "conversion/export_coreml.py --query enumerated::main@pine-enumerated.mlpackage": Expected(
        "unresolved by fixed-window", ("fixed-window",), QUERY, ("export_coreml.py: # ids-enumerated",)
    ),
}


def found(identifier: str) -> Graph:
    graphs = {g.id: g for g in examples().graphs}
    assert identifier in graphs, sorted(graphs)
    return graphs[identifier]


@pytest.mark.parametrize("identifier", sorted(GRAPHS))
def test_a_graph_has_the_verdict_that_its_file_names(identifier: str) -> None:
    expected, graph = GRAPHS[identifier], found(identifier)
    judgement = judge(graph.facts)
    assert judgement.says() == expected.says
    assert judgement.broken == expected.broken
    assert expected.flags <= graph.facts.query.flags


@pytest.mark.parametrize("identifier", sorted(i for i, e in GRAPHS.items() if e.cited))
def test_the_evidence_is_the_line_in_question(identifier: str) -> None:
    primary = judge(found(identifier).facts).primary
    assert primary is not None
    cited = {(place.path, place.line) for place in primary.evidence}
    for entry in GRAPHS[identifier].cited:
        file, marker = entry.split(": ", 1)
        line = line_of((EXAMPLES / "conversion" / file).read_text("utf-8"), marker)
        assert (f"conversion/{file}", line) in cited, entry


@pytest.mark.parametrize("identifier", sorted(i for i, e in GRAPHS.items() if e.fix))
def test_the_fix_is_said(identifier: str) -> None:
    assert GRAPHS[identifier].fix in audit(examples()).by_id[identifier].fix


def test_the_states_of_the_hybrid() -> None:
    states = found("models/fern-hybrid/recipe.toml#fern-hybrid::main@fern-hybrid.aimodel").facts.states.value
    assert states is not None
    assert [(s.name, s.role) for s in states] == [
        ("keyCache", Role.KV_KEY),
        ("valueCache", Role.KV_VALUE),
        ("convState", Role.CONV),
        ("recState", Role.RECURRENT),
    ]


def test_every_recipe_gives_a_graph_under_the_bundle_it_names() -> None:
    recipes = [g for g in examples().graphs if g.invocation.recipe]
    for graph in recipes:
        if "step0" not in graph.invocation.recipe:
            assert graph.bundle.rsplit("/", 1)[-1] == graph.shipped, graph.id
    tables = {g.invocation.recipe.rsplit("#", 1)[-1].split("/")[0] for g in recipes}
    assert len(tables) == 13


def test_every_file_has_its_status() -> None:
    status = {f.path: f.status for f in examples().files}
    assert not [p for p, s in status.items() if s is FileStatus.ERROR]
    assert status["conversion/export_dense.py"] is FileStatus.EXPORTS
    assert status["conversion/names.py"] is FileStatus.NO_EXPORT
    assert not examples().warnings


def test_all_scripts_of_the_examples_are_named_in_their_readme() -> None:
    text = (EXAMPLES / "README.md").read_text("utf-8")
    for script in (EXAMPLES / "conversion").glob("export_*.py"):
        assert f"`{script.name}`" in text
