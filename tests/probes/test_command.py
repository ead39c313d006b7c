"""`probe` and `plan` as a person runs them: output, contract, exit statuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result

from auditor.cli import cli
from probes.report import decode_graph, steps
from reports.probe_text import render

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "bundles" / "dense.aimodel"
Whole = tuple[dict[str, Any], float, int]
SCHEMA = json.loads(files("reports").joinpath("schemas/probe-1.schema.json").read_text())


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["probe", *map(str, arguments)])


def as_json(result: Result) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(result.stdout)
    jsonschema.validate(data, SCHEMA)
    return data


@pytest.fixture(scope="module")
def whole() -> Whole:
    """A whole probe of the bundle that the README probes: the report, the seconds it took, the exit status."""
    pytest.importorskip("coreai.runtime")
    started = time.monotonic()
    result = run(EXAMPLE, "--format", "json")
    return as_json(result), time.monotonic() - started, result.exit_code


def test_it_is_confirmed_on_the_interpreter(whole: Whole) -> None:
    report, _, status = whole
    assert (report["status"], report["verdict"], status) == ("ok", "confirmed", 0)
    if sys.platform == "linux":
        assert report["scope"] == "interpreter"


def test_all_gates_with_no_delta(whole: Whole) -> None:
    gates = {gate["gate"]: gate for gate in whole[0]["graphs"][0]["gates"]}
    assert list(gates) == ["shape", "rows", "state", "history", "rewind", "repeat"]
    assert {gate["verdict"] for gate in gates.values()} == {"confirmed"}
    assert gates["rows"]["numbers"]["max_delta_relative"] == 0.0
    assert [item["max_delta"] for item in gates["rewind"]["numbers"]["rejected"]] == [0.0, 0.0]
    assert gates["repeat"]["numbers"]["fresh_process"] == {"rows": 40, "argmax_equal": 40}


def test_every_s_was_timed_or_the_run_refused(whole: Whole) -> None:
    (cost,) = whole[0]["graphs"][0]["verify_cost"]
    assert [point["s"] for point in cost["points"]] == list(range(1, 17))
    assert cost["scope"] == whole[0]["scope"]
    assert (cost["status"] == "refused") is bool(cost["reasons"])
    assert len(cost["samples"]) == 16 * 3 + 10 * (16 + 5)


def test_it_takes_15_seconds_at_most(whole: Whole) -> None:
    assert whole[1] < 15


def test_no_line_shows_an_interpreters_cost_as_a_devices(whole: Whole) -> None:
    if whole[0]["scope"] != "interpreter":
        pytest.skip("a device")
    text = render(whole[0])
    assert "interpreter" in text.splitlines()[0]
    assert all("interpreter" in line for line in text.splitlines() if "verify-cost at" in line or "K=" in line)


def test_the_plan_reads_it(whole: Whole, tmp_path: Path) -> None:
    path = tmp_path / "probe.json"
    path.write_text(json.dumps(whole[0]))
    result = CliRunner().invoke(cli, ["plan", str(path), "--format", "json"])
    (table,) = json.loads(result.stdout)["tables"]
    assert table["scope"] == whole[0]["scope"]
    assert table["label"] == "dense.aimodel:main, context 128"
    assert (result.exit_code == 1) is (table["status"] == "refused")


REFUTED = {
    "static": ["rule static-query"],
    "last_token": ["rule last-token-only", "gate shape"],
    "hybrid": ["rule hybrid-state", "gate rewind"],
    "wrong_mask": ["gate rows", "gate state"],
    "late_mask": ["gate rows", "gate state"],
    "edge_mask_f16": ["gate rewind"],
    "block_mask": ["gate rows"],
    "suppressed_wrong_mask": ["gate rows", "gate state"],
    "suppressed_hybrid": ["rule hybrid-state", "gate rewind"],
    "weak_hybrid_f16": ["rule hybrid-state"],
    "offset_wrong_mask": ["gate rows", "gate state"],
    "ring": ["rule ring-cache", "gate rewind"],
    "unwritten": ["gate history"],
    "token_out": ["rule no-logits"],
    "hidden_out": ["rule no-logits"],
}


@pytest.fixture(scope="module")
def graphs(bundle: Callable[[str], Path]) -> dict[str, dict[str, Any]]:
    """All fixtures as entry points of one bundle, through all gates."""
    result = run(bundle("all"), "--mode", "rows", "--sweep-s", "1..8", "--format", "json")
    return {graph["name"]: graph for graph in as_json(result)["graphs"]}


@pytest.mark.parametrize("name", REFUTED)
def test_each_defective_graph_is_refuted_for_its_reason(graphs: dict[str, dict[str, Any]], name: str) -> None:
    assert graphs[name]["verdict"] == "refuted"
    assert [reason.partition(":")[0] for reason in graphs[name]["why"]] == REFUTED[name]


def test_the_others_are_confirmed(graphs: dict[str, dict[str, Any]]) -> None:
    others = {name: graph["verdict"] for name, graph in graphs.items() if name not in REFUTED}
    right = ("dense", "dense_f16", "fixed", "masked_reads", "start", "counter", "one_a_row", "suppressed")
    assert others == {**dict.fromkeys(right, "confirmed"), "window4": "partial"}


def test_positions_one_a_row_are_seen_by_the_row_that_a_step_writes(
    graphs: dict[str, dict[str, Any]], bundle: Callable[[str], Path]
) -> None:
    told = {
        name: graphs[name]["gates"][0]["numbers"]["positions"] for name in ("dense", "one_a_row", "start", "counter")
    }
    assert told == {"dense": "range", "one_a_row": "rows", "start": "start", "counter": "none"}
    wrong = run(bundle("one_a_row"), "--mode", "rows", "--sweep-s", "1..4", "--positions", "range")
    assert wrong.exit_code == 1


def test_an_unwritten_state_is_advice_as_well(graphs: dict[str, dict[str, Any]]) -> None:
    assert [item["rule"] for item in graphs["unwritten"]["judgement"]["advice"]] == ["unwritten-state"]


def test_one_window_is_partial(bundle: Callable[[str], Path], graphs: dict[str, dict[str, Any]]) -> None:
    assert graphs["window4"]["why"][0].startswith("fixed-window")
    assert run(bundle("window4"), "--mode", "inspect").exit_code == 0
    assert run(bundle("window4"), "--mode", "inspect", "--fail-on", "partial").exit_code == 1


def test_inspection_alone_is_partial(bundle: Callable[[str], Path]) -> None:
    report = as_json(run(bundle("dense"), "--mode", "inspect", "--format", "json"))
    assert report["verdict"] == "partial"
    assert report["graphs"][0]["why"] == ["no gate was run: inspection only"]
    assert report["graphs"][0]["gates"] == []


def test_the_best_of_several_entry_points_decides(bundle: Callable[[str], Path]) -> None:
    report = as_json(run(bundle("several"), "--mode", "rows", "--sweep-s", "1..4", "--format", "json"))
    verdicts = {graph["name"]: graph["verdict"] for graph in report["graphs"]}
    assert verdicts == {"main": "confirmed", "main_s1": "refuted", "prefill": "refuted"}
    assert (report["decode_graph"], report["verdict"]) == ("main", "confirmed")
    assert "main: confirmed (this graph decides)" in render(report)


def test_one_entry_point_may_be_asked_for(bundle: Callable[[str], Path]) -> None:
    report = as_json(
        run(bundle("several"), "--graph", "prefill", "--mode", "rows", "--sweep-s", "1,2", "--format", "json")
    )
    assert (report["decode_graph"], report["verdict"]) == ("prefill", "refuted")
    assert [graph["not_run"] for graph in report["graphs"]] != ["", "", ""]
    absent = run(bundle("several"), "--graph", "decode", "--mode", "inspect")
    assert absent.exit_code == 1
    assert "no entry point is called 'decode'; there are: main, main_s1, prefill" in absent.stdout


def test_decoders_come_before_everything_else() -> None:
    def graph(name: str, verdict: str, kind: str = "decoder") -> dict[str, Any]:
        return {"name": name, "verdict": verdict, "facts": {"kind": {"value": kind}}}

    tower = graph("a", "refuted", "other")
    assert decode_graph([tower, graph("z", "refuted")], ()) == "z"
    assert decode_graph([tower], ()) == "a"
    assert decode_graph([graph("b", "partial"), graph("decode", "partial")], ()) == "decode"
    assert decode_graph([graph("a", "confirmed"), graph("b", "refuted")], ("b",)) == "b"
    assert decode_graph([], ()) == ""


def test_contexts_are_compared(bundle: Callable[[str], Path]) -> None:
    result = run(
        bundle("dense"), "--mode", "verify-cost", "--sweep-s", "1..4", "--context", 16, "--context", 64, "--repeats", 4,
        "--format", "json",
    )  # fmt: skip
    report = as_json(result)
    costs = report["graphs"][0]["verify_cost"]
    assert [cost["context"] for cost in costs] == [16, 64]
    assert len({cost["capacity"] for cost in costs}) == 1
    measured = report["graphs"][0]["steps"]["tops"]
    assert set(measured) == {str(cost["context"]) for cost in costs if cost["status"] == "ok"}


def test_steps_of_several_contexts_are_laid_side_by_side() -> None:
    def cost(context: int, *tops: int, status: str = "ok") -> dict[str, Any]:
        plateaus = [{"last": top, "end_seen": True} for top in tops] + [{"last": 16, "end_seen": False}]
        return {"context": context, "status": status, "staircase": {"plateaus": plateaus}}

    assert steps([cost(128, 3, 8)])["same"] is None
    assert steps([cost(128, 3, 8), cost(848, 3, 8)]) == {"same": True, "tops": {"128": [3, 8], "848": [3, 8]}}
    assert steps([cost(128, 3, 8), cost(848, 3)])["same"] is False
    assert steps([cost(128, 3), cost(848, 8, status="refused")])["same"] is None


def test_a_refuted_graph_is_timed_only_when_that_is_asked(bundle: Callable[[str], Path]) -> None:
    everything = as_json(run(bundle("hybrid"), "--sweep-s", "1,2", "--repeats", 2, "--format", "json"))
    assert everything["graphs"][0]["verify_cost"] == []
    assert "verify-cost not run: the graph is refuted" in everything["graphs"][0]["notes"]
    asked = as_json(
        run(bundle("hybrid"), "--mode", "verify-cost", "--sweep-s", "1,2", "--repeats", 2, "--format", "json")
    )
    assert len(asked["graphs"][0]["verify_cost"]) == 1


def test_a_forward_faster_than_memory_is_refused(
    bundle: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("probes.verify_cost.CACHE_BYTES", 0)
    result = run(
        bundle("dense"), "--mode", "verify-cost", "--sweep-s", "1,2", "--repeats", 4, "--bandwidth", 0.001, "--format",
        "json",
    )  # fmt: skip
    (cost,) = as_json(result)["graphs"][0]["verify_cost"]
    assert cost["status"] == "refused"
    assert any("implausible" in reason for reason in cost["reasons"])
    assert cost["staircase"]["plateaus"] == []


def test_host_time_outside_forwards(tmp_path: Path) -> None:
    pytest.importorskip("coreai.authoring")
    import numpy as np
    from authored_decoders import author

    path = author(tmp_path / "slow.aimodel", dtype=np.float16, hidden=160, vocab=1024, layers=2)
    result = run(path, "--mode", "verify-cost", "--sweep-s", "1,2", "--repeats", 8, "--context", 16, "--format", "json")
    (cost,) = as_json(result)["graphs"][0]["verify_cost"]
    assert cost["points"][0]["median_ms"] > 15
    assert cost["host"]["share"] <= 0.013


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--sweep-s", "2..4"], "must include 1"),
        (["--sweep-s", "4..2"], "S must ascend"),
        (["--sweep-s", "x"], "'x' is no S"),
        (["--capacity", "8"], "too small"),
        (["--mode", "rws"], "'rws' is not one of"),
        (["--against", "none.json"], "none.json: No such file"),
        (["--weight-limit", "nan"], "nan is no finite number"),
        (["--weight-limit", "inf"], "inf is no finite number"),
        (["--bandwidth", "nan"], "nan is no finite number"),
        (["--time-limit", "inf"], "inf is no finite number"),
    ],
)
def test_usage(arguments: list[str], says: str) -> None:
    result = run(EXAMPLE, *arguments)
    assert result.exit_code == 2
    assert says in result.stderr


def test_a_scan_without_the_bundle_does_not_take_away_what_was_found(tmp_path: Path) -> None:
    from reports.json_report import document
    from rules.audit import audit
    from tests.reports.sample import sample

    scan = tmp_path / "scan.json"
    scan.write_text(json.dumps(document(audit(sample()))))
    result = run(EXAMPLE, "--mode", "inspect", "--against", str(scan))
    assert result.exit_code == 2
    assert "main: partial" in result.stdout
    assert "the scan has no graph for bundle" in " ".join(result.stderr.split())


def test_a_missing_path_is_usage_and_another_folder_a_refusal(tmp_path: Path) -> None:
    assert run(tmp_path / "none.aimodel").exit_code == 2
    result = run(tmp_path)
    assert result.exit_code == 1
    assert result.stdout.startswith("REFUSED")
    assert run(tmp_path, "--fail-on", "never").exit_code == 0


def test_a_backend_of_another_format() -> None:
    result = run(EXAMPLE, "--backend", "reference")
    assert result.exit_code == 1
    assert "dense.aimodel: the backend 'reference' does not read this; use coreai" in result.stdout


def test_output_goes_to_a_file(bundle: Callable[[str], Path], tmp_path: Path) -> None:
    target = tmp_path / "probe.json"
    result = run(bundle("dense"), "--mode", "inspect", "--format", "json", "--output", target)
    assert result.stdout == ""
    assert json.loads(target.read_text())["schema"] == "spec-audit.probe/1"
    assert [item.name for item in tmp_path.iterdir()] == ["probe.json"]


def test_where_the_output_cannot_go_is_told_before_anything_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("probes.probe.probe", lambda *_: pytest.fail("it was run"))
    result = run(EXAMPLE, "--output", tmp_path / "no" / "x")
    assert result.exit_code == 2
    assert f"no such folder: '{tmp_path / 'no'}'" in result.stderr


def test_a_device_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    table, pipe = tmp_path / "t.csv", tmp_path / "pipe"
    table.write_text("s,ms\n1,10\n2,10\n3,10\n4,15\n")
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert CliRunner().invoke(cli, ["plan", str(table), "--output", str(pipe)]).exit_code == 0
        assert os.read(reader, 1 << 16).startswith(b"OK")
    finally:
        os.close(reader)
    assert pipe.is_fifo()


def test_names_that_steer_a_terminal_are_escaped(tmp_path: Path) -> None:
    folder = tmp_path / "x\x1b[31m.aimodel"
    folder.mkdir()
    assert "\x1b" not in run(folder).stdout


def test_the_same_inspection_gives_the_same_bytes(bundle: Callable[[str], Path]) -> None:
    once, again = (run(bundle("several"), "--mode", "inspect", "--format", "json") for _ in range(2))
    left, right = (json.loads(result.stdout) for result in (once, again))
    left.pop("environment"), right.pop("environment")
    assert left == right


def test_plan_on_the_command_line(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("s,ms\n" + "".join(f"{s},{37 if s < 4 else 54}\n" for s in range(1, 9)))
    result = CliRunner().invoke(cli, ["plan", str(table), "--acceptance", "0.6"])
    assert result.exit_code == 0
    assert "plateau S=1..3 c_v 1.00: K=2 (unstated), pays above 1.00 tokens a round" in result.stdout
    assert "avoid K=3: just over a step" in result.stdout
    assert "tok/s" in result.stdout
    noisy = CliRunner().invoke(cli, ["plan", str(table), "--noise", "0.2"])
    assert noisy.exit_code == 1
    assert "K=" not in noisy.stdout
    assert CliRunner().invoke(cli, ["plan", str(tmp_path / "none.csv")]).exit_code == 2
    assert CliRunner().invoke(cli, ["plan", str(table), "--acceptance", "2"]).exit_code == 2
    assert CliRunner().invoke(cli, ["plan", str(table), "--noise", "nan"]).exit_code == 2


def test_help_and_plan_import_neither_numpy_nor_a_runtime(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("s,ms\n1,10\n2,10\n3,10\n4,15\n")
    script = (
        "import sys\nfrom probes.cli import plan, probe\n"
        "probe(['--help'], standalone_mode=False)\n"
        f"plan([{str(table)!r}], standalone_mode=False)\n"
        "loaded = {'numpy', 'coreai', 'coremltools', 'torch', 'libcst'} & set(sys.modules)\n"
        "sys.exit(f'imported {loaded}' if loaded else 0)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
