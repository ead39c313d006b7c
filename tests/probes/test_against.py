"""A scan's claim beside the shipped bundle: found by name and entry point, and never guessed."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from auditor.cli import cli
from probes.against import JoinError, compare, load
from reports.json_report import document
from rules.audit import audit
from rules.facts import Scan
from tests.rules.graphs import graph as graph_of

RECIPE = "models/x/recipe.toml#name"


def fact(value: str | None, line: int = 7) -> dict[str, Any]:
    return {
        "value": value,
        "evidence": [{"path": "export.py", "line": line, "note": "here"}],
        "reason": "",
        "flags": [],
    }


def state(name: str, role: str) -> dict[str, Any]:
    return {"name": name, "role": role, "shape": [], "evidence": [], "reason": ""}


def facts(**changes: Any) -> dict[str, Any]:
    base = {
        "kind": fact("decoder"),
        "states": [state("keyCache", "kv-key"), state("valueCache", "kv-value")],
        "states_evidence": [{"path": "export.py", "line": 3, "note": ""}],
        "query": fact("dynamic"),
        "logits": fact("all"),
        "kv": fact("state"),
    }
    return {**base, **changes}


def graph(identifier: str, bundle: str = "out/dense.aimodel", kind: str = "default", **changes: Any) -> dict[str, Any]:
    return {
        "id": identifier,
        "script": "export.py",
        "graph": "main",
        "bundle": bundle,
        "verdict": "eligible",
        "invocation": {"kind": kind, "argv": [], "recipe": None},
        "facts": facts(**changes),
    }


def scan(*graphs: dict[str, Any], models: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    return {"schema": "spec-audit.scan/1", "root": ".", "graphs": list(graphs), "models": list(models)}


def report(**changes: Any) -> dict[str, Any]:
    return {
        "bundle": "dense.aimodel",
        "files": {"name": "dense"},
        "graphs": [{"name": "main", "facts": facts(**changes)}],
    }


def messages(found: dict[str, Any]) -> list[str]:
    return [item["message"] for pair in found["graphs"] for item in pair["disagreements"]]


def test_agreement() -> None:
    assert messages(compare(report(), scan(graph("a")))) == []


def test_the_script_says_dynamic_and_the_bundle_is_static() -> None:
    found = compare(report(query=fact("static:1")), scan(graph("a")))
    assert messages(found) == ["the script says query dynamic, the bundle has static:1"]
    assert found["graphs"][0]["disagreements"][0]["evidence"] == [{"path": "export.py", "line": 7, "note": "here"}]


def test_and_the_reverse() -> None:
    found = compare(report(), scan(graph("a", query=fact("static:1"))))
    assert messages(found) == ["the script says query static:1, the bundle has dynamic"]


def test_states() -> None:
    extra = [*facts()["states"], state("convState", "conv")]
    assert messages(compare(report(states=extra), scan(graph("a")))) == [
        "the bundle has state convState (conv), the script declares none"
    ]
    assert messages(compare(report(), scan(graph("a", states=extra)))) == [
        "the script declares state convState (conv), the bundle has none"
    ]
    renamed = [state("keyCache", "recurrent"), state("valueCache", "kv-value")]
    assert messages(compare(report(), scan(graph("a", states=renamed)))) == [
        "state keyCache: the script says recurrent, the bundle looks like kv-key"
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"logits": fact(None)},
        {"states": None},
        {"states": [state("keyCache", "unknown"), state("valueCache", "mla-latent")]},
    ],
)
def test_what_one_side_does_not_know_is_no_disagreement(changes: dict[str, Any]) -> None:
    assert messages(compare(report(**changes), scan(graph("a")))) == []
    assert messages(compare(report(), scan(graph("a", **changes)))) == []


@pytest.mark.parametrize("bundle", ["out/*.aimodel", "*", ""])
def test_a_name_that_says_nothing_joins_nothing(bundle: str) -> None:
    with pytest.raises(JoinError, match="no graph for bundle dense"):
        compare(report(), scan(graph("a", bundle)))


@pytest.mark.parametrize("bundle", ["out/dense", "dense.aimodel", "out/de*.aimodel"])
def test_base_names(bundle: str) -> None:
    assert compare(report(), scan(graph("a", bundle)))["graphs"][0]["scan_graph"] == "a"


def test_an_exact_name_comes_before_a_pattern_and_a_recipe_before_a_variant() -> None:
    different = {"query": fact("static:1")}
    found = compare(report(), scan(graph("pattern", "de*.aimodel", **different), graph("exact")))
    assert found["graphs"][0]["scan_graph"] == "exact"
    found = compare(
        report(), scan(graph("v", kind="variant", **different), graph("d", **different), graph("r", kind="recipe"))
    )
    assert found["graphs"][0]["scan_graph"] == "r"


def test_an_ambiguous_join_is_an_error_unless_the_facts_are_the_same() -> None:
    with pytest.raises(JoinError, match=r"several graphs of the scan fit \(a, b\)"):
        compare(report(), scan(graph("a"), graph("b", query=fact("static:1"))))
    assert compare(report(), scan(graph("a"), graph("b", query=fact("dynamic", 99))))["graphs"][0]["scan_graph"] == "a"


def test_an_identifier_chooses() -> None:
    both = scan(graph("a"), graph("b", query=fact("static:1")), models=({"id": "m", "bundle": "x", "graphs": ["b"]},))
    assert compare(report(), both, "a")["graphs"][0]["scan_graph"] == "a"
    assert compare(report(), both, "m")["graphs"][0]["scan_graph"] == "b"
    with pytest.raises(JoinError, match="identifier 'c'"):
        compare(report(), both, "c")


def test_a_models_shipped_bundle_joins() -> None:
    model = {"id": "m", "bundle": "hf/dense.aimodel", "graphs": ["a"]}
    assert compare(report(), scan(graph("a", "*"), models=(model,)))["graphs"][0]["scan_graph"] == "a"


def test_entry_points_that_the_scan_does_not_know() -> None:
    two = report()
    two["graphs"].append({**copy.deepcopy(two["graphs"][0]), "name": "prefill"})
    assert compare(two, scan(graph("a")))["unmatched"] == ["prefill"]


@pytest.mark.parametrize(
    ("text", "says"), [("{", "not valid JSON"), ("[]", "not a report"), ('{"schema": "x"}', "not a report")]
)
def test_what_is_no_scan(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "scan.json"
    path.write_text(text)
    with pytest.raises(JoinError, match=says):
        load(str(path))


def written(folder: Path, **changes: Any) -> Path:
    """A scan of one graph as `scan --format json` writes it."""
    path = folder / "scan.json"
    made = document(audit(Scan("zoo", (), (graph_of(recipe=RECIPE, bundle="out/static.aimodel"),))))
    path.write_text(json.dumps(made | changes))
    return path


def test_an_identifier_after_the_file(tmp_path: Path) -> None:
    path = written(tmp_path)
    assert load(str(path))[1] == ""
    assert load(f"{path}#{RECIPE}")[1] == RECIPE
    with pytest.raises(JoinError, match="the scan has no graph or model 'models/y'"):
        load(f"{path}#models/y")


def test_a_scan_that_was_cut(tmp_path: Path) -> None:
    with pytest.raises(JoinError, match=r"graphs\[0\] is no object"):
        load(str(written(tmp_path, graphs=[1])))


def test_on_the_command_line(bundle: Callable[[str], Path], tmp_path: Path) -> None:
    path = written(tmp_path)
    result = CliRunner().invoke(cli, ["probe", str(bundle("static")), "--mode", "inspect", "--against", str(path)])
    assert f"against {RECIPE}|out/static.aimodel|main (eligible): 1 disagreement" in result.stdout
    assert (
        "  the script says query dynamic, the bundle has static:1\n    export_model.py:40  export call\n"
        in result.stdout
    )
    other = CliRunner().invoke(cli, ["probe", str(bundle("dense")), "--mode", "inspect", "--against", str(path)])
    assert other.exit_code == 2
    assert "the scan has no graph for bundle dense" in other.stderr
