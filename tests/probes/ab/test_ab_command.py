"""`probe --mode ab` as a person runs it, on bundles authored for the tests, and `plan` on its records."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result

from auditor.cli import cli
from probes import supervisor
from reports.probe_text import render

pytest.importorskip("coreai.runtime")

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = json.loads(files("reports").joinpath("schemas/probe-1.schema.json").read_text())
PLAN_SCHEMA = json.loads(files("reports").joinpath("schemas/plan-1.schema.json").read_text())
ALL_K = ("--k", 4, "--k", "adaptive:6", "--k", "match:5:3")
DRAFTERS = ("--drafter", "ngram", "--drafter", "suffix", "--drafter", "tree")
QUICK = ("--sweep-s", "1..8", "--prefix", 24, "--retries", 0, "--fail-on", "refuted")


@pytest.fixture
def ids(tmp_path: Path) -> Path:
    file = tmp_path / "ids.txt"
    file.write_text(" ".join(str(index % 5) for index in range(36)))
    return file


def run(bundle: Path, ids: Path, *more: object) -> Result:
    arguments = [bundle, "--mode", "ab", "--workload", f"rep={ids}", *QUICK, *more]
    if "--budget" not in more:
        arguments += ["--budget", 40]
    return CliRunner().invoke(cli, ["probe", *map(str, arguments)])


def report_of(result: Result) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(result.stdout)
    jsonschema.validate(data, SCHEMA)
    return data


def record_of(report: dict[str, Any]) -> dict[str, Any]:
    (ab,) = (graph["ab"] for graph in report["graphs"] if graph["ab"])
    return dict(ab)


@pytest.mark.skipif(sys.platform == "darwin", reason="there it runs")
def test_a_bundle_that_cannot_be_run_here_refuses_the_loop_that_was_asked_for(ids: Path) -> None:
    package = ROOT / "examples" / "bundles" / "dense.mlpackage"
    result = run(package, ids, "--format", "json")
    record = record_of(report_of(result))
    assert result.exit_code == 1
    assert record["status"] == "refused"
    assert record["reasons"] == [
        "the graph was not run: Core ML runs on macOS only; `--backend reference` evaluates the program on any system"
    ]
    assert "ab on main: refused" in run(package, ids).stdout


@pytest.mark.parametrize("name", ["dense", "dense_f16", "fixed", "masked_reads", "start", "one_a_row"])
def test_lossless_on_every_valid_bundle(bundle: Callable[[str], Path], ids: Path, name: str) -> None:
    small = ("--budget", 20)
    result = run(bundle(name), ids, *ALL_K, *DRAFTERS, *small, "--format", "json")
    record = record_of(report_of(result))
    assert record["status"] == "ok"
    rows = [row for bed in record["workloads"] for row in bed["rows"]]
    assert len(rows) == 9 * len(record["workloads"])
    assert all(row["lossless"] for row in rows)
    assert sum(drafted for row in rows for drafted, _ in row["rounds"]) > 0
    assert result.exit_code == 0


@pytest.mark.parametrize(
    ("name", "gate"), [("wrong_mask", "rows"), ("late_mask", "rows"), ("hybrid", "rewind"), ("ring", "rewind")]
)
def test_a_broken_bundle_is_refused_before_the_loop(
    bundle: Callable[[str], Path], ids: Path, name: str, gate: str
) -> None:
    result = run(bundle(name), ids, "--k", 2, "--format", "json")
    record = record_of(report_of(result))
    assert (record["status"], record["workloads"]) == ("refused", [])
    assert any(reason.startswith(f"gate {gate}") for reason in record["reasons"])
    assert result.exit_code == 1


@pytest.mark.parametrize("name", ["wrong_mask", "late_mask", "hybrid", "ring"])
def test_forced_it_is_caught_or_named_as_not_caught(bundle: Callable[[str], Path], ids: Path, name: str) -> None:
    short = ("--budget", 9) if name == "ring" else ()
    if short:
        ids.write_text("1 2 3 1 2 3")
    report = report_of(
        run(bundle(name), ids, *short, "--k", 4, "--drafter", "ngram", "--ngram-min", 1, "--force", "--format", "json")
    )
    record = record_of(report)
    assert record["forced"]
    assert record["notes"][0].startswith("forced although gate")
    caught = any(note == "losslessness caught it" for note in record["notes"])
    missed = any(note.startswith("losslessness did NOT catch it") for note in record["notes"])
    rows = [row for bed in record["workloads"] for row in bed["rows"]]
    assert rows
    assert caught is bool(record["not_lossless"])
    assert caught is not missed
    assert caught is any(not row["lossless"] for row in rows)
    assert "FORCED" in render(report)
    assert report["verdict"] == "refuted"


@pytest.mark.parametrize("name", ["static", "last_token"])
def test_a_graph_that_cannot_verify(bundle: Callable[[str], Path], ids: Path, name: str) -> None:
    refused = record_of(report_of(run(bundle(name), ids, "--k", 2, "--format", "json")))
    assert refused["status"] == "refused"
    assert refused["reasons"]


def test_a_cache_that_is_too_short_says_so(bundle: Callable[[str], Path], ids: Path) -> None:
    ids.write_text(" ".join(["1"] * 70))
    result = run(bundle("fixed"), ids, "--k", 2, "--format", "json")
    record = record_of(report_of(result))
    assert record["status"] == "refused"
    assert "the prompt has 70 tokens, and the cache 64 rows" in " ".join(record["reasons"])
    assert result.exit_code == 1


def test_the_record_and_what_plan_makes_of_it(bundle: Callable[[str], Path], ids: Path, tmp_path: Path) -> None:
    result = run(bundle("dense"), ids, "--k", 1, "--k", 4, "--budget", 40, "--budget", 20, "--format", "json")
    report = report_of(result)
    record = record_of(report)
    assert [bed["budget"] for bed in record["workloads"]] == [40, 20]
    assert report["scope"] != "device" or sys.platform == "darwin"
    assert record["allocator"]["pinned"] is (True if sys.platform == "linux" else None)
    row = record["workloads"][0]["rows"][1]
    assert sum(row["forwards_by_s"].values()) == len(row["rounds"]) == row["forwards"]
    assert row["tokens_per_forward"] == pytest.approx(39 / row["forwards"])
    assert row["host"]["share"] == pytest.approx(sum(row["host"][key] for key in ("draft", "argmax", "bookkeeping")))
    text = render(report)
    assert "average" not in text
    assert text.count("prompt of 36 tokens") == 2

    path, table = tmp_path / "ab.json", tmp_path / "device.csv"
    path.write_text(json.dumps(report))
    table.write_text("s,ms\n" + "".join(f"{s},{37 if s < 4 else 54}\n" for s in range(1, 10)))
    made = json.loads(CliRunner().invoke(cli, ["plan", str(path), str(table), "--format", "json"]).stdout)
    jsonschema.validate(made, PLAN_SCHEMA)
    (on,) = (one for one in made["workloads"] if one["table"] == "device" and one["budget"] == 40)
    named = {one["policy"]: one["basis"] for one in on["policies"]}
    assert named == {"K=1": "recorded", "K=4": "recorded", "K=2": "cut from K=4", "K=3": "cut from K=4"}
    k4 = next(one for one in on["policies"] if one["policy"] == "K=4")
    drafted = [d for d, _ in row["rounds"]]
    cost = sum(54 if d + 1 >= 4 else 37 for d in drafted) / len(drafted) / 37
    assert k4["speedup"] == pytest.approx(row["tokens_per_forward"] / cost)
    shown = CliRunner().invoke(cli, ["plan", str(path), str(table)])
    assert "rep, budget 40, ngram" in shown.stdout
    assert "choose " in shown.stdout or "does not pay" in shown.stdout


def test_plan_refuses_an_inconsistent_record(bundle: Callable[[str], Path], ids: Path, tmp_path: Path) -> None:
    report = report_of(run(bundle("dense"), ids, "--k", 2, "--format", "json"))
    row = record_of(report)["workloads"][0]["rows"][0]
    row["lossless"] = False
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(report, SCHEMA)
    path = tmp_path / "ab.json"
    path.write_text(json.dumps(report))
    result = CliRunner().invoke(cli, ["plan", str(path)])
    assert result.exit_code == 1
    assert "says FAIL without the position where the texts part" in result.stdout + result.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--mode", "ab"), "needs a workload"),
        (("--mode", "ab", "--workload", "x"), "NAME=FILE was expected"),
        (("--mode", "ab", "--workload", "x=none.txt"), "none.txt: No such file"),
        (("--mode", "ab", "--workload", "x={empty}"), "empty"),
        (("--mode", "ab", "--workload", "x={text}"), "give --tokenizer, or token ids"),
        (("--mode", "ab", "--workload", "x={text}", "--tokenizer", "{ids}"), "no tokenizer"),
        (("--mode", "ab", "--workload", "x={ids}", "--workload", "x={ids}"), "the same name"),
        (("--mode", "ab", "--workload", "x={ids}", "--k", "0"), "'0': 2, adaptive"),
        (("--mode", "ab", "--workload", "x={ids}", "--drafter", "eagle"), "no drafter is called 'eagle'"),
        (("--mode", "ab", "--workload", "x={ids}", "--drafter", "recorded:none.json"), "none.json: No such file"),
        (("--mode", "ab", "--workload", "x={ids}", "--drafter", "recorded:"), "no drafter is called 'recorded:'"),
        (("--mode", "ab", "--workload", "x={ids}", "--band", "28,26"), "LOW must be"),
        (("--mode", "ab", "--workload", "x={ids}", "--ngram-min", "6"), "least <= most"),
        (("--mode", "rows", "--k", "2"), "--k belongs to --mode ab"),
        (("--mode", "all", "--force"), "--force belongs to --mode ab"),
    ],
)
def test_usage(tmp_path: Path, ids: Path, arguments: tuple[str, ...], says: str) -> None:
    if "tokenizer" in says and "no tok" in says:
        pytest.importorskip("tokenizers")
    names = {"ids": ids, "text": tmp_path / "text.txt", "empty": tmp_path / "empty.txt"}
    names["text"].write_text("Hello there")
    names["empty"].write_text("\n")
    example = ROOT / "examples" / "bundles" / "dense.aimodel"
    result = CliRunner().invoke(cli, ["probe", str(example), *(one.format(**names) for one in arguments)])
    assert result.exit_code == 2, result.output
    assert says in result.stderr


def test_tokens_outside_the_vocabulary_are_a_result(bundle: Callable[[str], Path], ids: Path) -> None:
    ids.write_text("1 2 99999")
    result = run(bundle("dense"), ids, "--k", 2)
    assert result.exit_code == 1
    assert "ab on main: refused" in result.stdout
    assert "token 99999 lies outside 0..255" in result.stdout
    assert "warm-up" not in result.stdout


def test_a_language_bundle_brings_its_tokenizer_and_stop_tokens(language_bundle: Path, tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    words = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({"<unk>": 0, **{f"w{i}": i for i in range(1, 9)}}, unk_token="<unk>")
    )
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    (language_bundle / "tokenizer").mkdir(exist_ok=True)
    words.save(str(language_bundle / "tokenizer" / "tokenizer.json"))
    text = tmp_path / "text.txt"
    text.write_text("w1 w2 w3 w1 w2 w3 other w1")
    metadata = json.loads((language_bundle / "metadata.json").read_text())
    metadata["language"]["eos_token_id"] = [2, 3]
    (language_bundle / "metadata.json").write_text(json.dumps(metadata))
    record = record_of(report_of(run(language_bundle, text, "--k", 2, "--format", "json")))
    assert record["workloads"][0]["prompt_tokens"] == 8
    assert record["settings"]["stop"] == [2, 3]


def test_ctrl_c_keeps_what_was_measured(
    bundle: Callable[[str], Path], ids: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = supervisor.supervise

    def interrupted(request: Any, steps: Any, seconds: float, listener: Any) -> Any:
        def listen(event: Any, pid: int) -> None:
            listener(event, pid)
            if event["event"] == "progress" and "/on ngram 4#" in event["id"]:
                raise KeyboardInterrupt

        return real(request, steps, seconds, listen)

    monkeypatch.setattr("probes.probe.supervise", interrupted)
    result = run(bundle("dense"), ids, "--k", 2, "--k", 4, "--pairs", 3, "--format", "json")
    assert result.exit_code == 130
    record = record_of(report_of(result))
    assert record["status"] == "interrupted"
    (bed,) = record["workloads"]
    assert len(bed["band"]["anchors"]) == 3
    assert [(row["policy"], len(row["pairs"])) for row in bed["rows"]] == [("2", 1)]
