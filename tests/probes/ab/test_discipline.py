"""Bands, spoiled rows, re-runs, interruption, refusals: on runs that a model in memory or the published table gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from memory_model import MemoryModel, chaotic, counting

from probes.ab import worker
from probes.ab.attempt import not_lossless
from probes.ab.bands import CAP, FLOOR, Band, band_of, why_spoiled
from probes.ab.options import AbOptions, Workload
from probes.ab.record import contradictions
from probes.ab.rows import Pair, effect, judged, predicted_speedup, row, speedup_interval
from probes.ab.run import Ab

PUBLISHED = Band(26.0, 28.0, given=True)


def made(rate: float, tokens: int = 256, widths: Sequence[int] = (), **fields: Any) -> dict[str, Any]:
    """A run of `tokens` at `rate` tokens per second; `widths` are the S of its forwards, else all 1."""
    shapes = list(widths) or [1] * tokens
    seconds = tokens / rate
    emitted = [tokens // len(shapes)] * len(shapes)
    return {
        "tokens": list(range(tokens)),
        "decoded": tokens,
        "ended": "budget",
        "seconds": seconds,
        "forward_seconds": seconds,
        "draft_seconds": 0.0,
        "argmax_seconds": 0.0,
        "forwards": [[s, seconds / len(shapes)] for s in shapes],
        "rounds": [[s - 1, e - 1] for s, e in zip(shapes, emitted, strict=True)],
        "emitted": emitted,
        "drafts": [[0] * (s - 1) for s in shapes],
        "at": list(range(len(shapes))),
        "others": 0.01,
        "others_before": 0.0,
        "faults_per_forward": 35.0,
        **fields,
    }


def test_the_published_collapsed_baseline_is_left_out_and_named() -> None:
    pair = Pair(made(15.55), made(32.66, widths=[3] * 128), made(15.55))
    judged([pair], PUBLISHED, {})
    found = row("ngram", "2", [pair], {})
    assert found["speedup"] == pytest.approx(2.10, abs=0.005)
    assert (found["status"], found["effect"]) == ("spoiled", "spoiled")
    assert "15.55 tok/s, left the band 26.00..28.00" in found["spoiled"][0]
    valid = Pair(made(26.9), made(46.3, widths=[3] * 128), made(27.1))
    judged([valid], PUBLISHED, {})
    both = row("ngram", "2", [pair, valid], {})
    assert both["status"] == "valid"
    assert both["speedup"] == pytest.approx(46.3 / 27.0)
    assert [bool(one["spoiled"]) for one in both["pairs"]] == [True, False]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"before": made(25.9)}, "the baseline before it, 25.90"),
        ({"after": made(28.2)}, "the baseline after it, 28.20"),
        ({"before": made(26.1), "after": made(27.9)}, "the off runs around it differ: 26.10 and 27.90"),
        ({"on": made(46, others=0.6)}, "contention during it: others kept up to 0.60 cores"),
        ({"after": made(27, others_before=0.6)}, "contention before it"),
        ({"before": made(27, faults_per_forward=10_000.0)}, "10000 page faults a forward: the allocator is not pinned"),
    ],
)
def test_what_spoils_a_pair(change: dict[str, Any], says: str) -> None:
    runs = {"before": made(27), "on": made(46), "after": made(27)}
    assert why_spoiled(**runs, band=PUBLISHED) == []
    (reason,) = why_spoiled(**{**runs, **change}, band=PUBLISHED)
    assert says in reason


def test_forwards_off_the_staircase_spoil_a_pair() -> None:
    on = made(40, widths=[3] * 128)
    ms = 1e3 * on["forwards"][0][1]
    assert why_spoiled(made(27), on, made(27), PUBLISHED, {1: 37.0, 3: ms * 1.1}) == []
    (reason,) = why_spoiled(made(27), on, made(27), PUBLISHED, {1: 37.0, 3: ms / 1.3})
    assert reason == "forwards of S=3 took +30% against the staircase"


def test_a_band_comes_from_three_anchors_and_never_widens_with_noise() -> None:
    steady = band_of([27.0, 27.1, 26.9])
    assert (steady.low, steady.high) == pytest.approx((27 * (1 - FLOOR), 27 * (1 + FLOOR)))
    noisy = band_of([27.0, 20.0, 33.0])
    assert noisy.high <= 27 * (1 + CAP) + 1e-9
    assert "no baseline is valid" in noisy.reason
    assert why_spoiled(made(27), made(46), made(27), noisy) == [noisy.reason]
    assert "2 anchors" in band_of([27.0, 27.0]).reason
    assert band_of([], (26.0, 28.0)).holds(27)


def test_effects_and_intervals() -> None:
    pairs = [Pair(made(27), made(46, widths=[3] * 128), made(27))]
    low, high = speedup_interval(pairs, 0) or (0, 0)
    assert low - 0.001 <= 46 / 27 <= high + 0.001
    assert high - low < 0.05
    assert (effect((1.1, 1.3)), effect((0.8, 0.9)), effect((0.9, 1.1)), effect(None)) == (
        "gains",
        "loses",
        "even",
        "even",
    )
    found = row("ngram", "8", [Pair(made(27), made(25, widths=[9] * 128), made(27))], {})
    assert found["effect"] == "loses"


def test_prediction_from_the_shapes_used() -> None:
    on = made(40, widths=[1] * 64 + [3] * 64)
    assert predicted_speedup(on, {1: 10, 3: 12}) == pytest.approx(2 / 1.1)
    assert predicted_speedup(on, {1: 10}) is None


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("probes.ab.meters._BEFORE_SECONDS", 0.0)


class Server:
    """Runs steps on a model in memory at the speed that `rate_of` tells for a step."""

    def __init__(self, model: MemoryModel, rate_of: Callable[[str], float] = lambda step: 27.0) -> None:
        self.model, self.rate_of = model, rate_of
        self.served: list[str] = []
        self.calls: list[list[str]] = []
        self.spoil: Callable[[str, dict[str, Any]], None] = lambda step, value: None
        self.interrupt_at = ""

    def __call__(self, steps: Sequence[dict[str, Any]], results: dict[str, Any]) -> None:
        self.calls.append([step["id"] for step in steps])
        for step in steps:
            if self.interrupt_at and self.interrupt_at in step["id"]:
                raise KeyboardInterrupt
            self.served.append(step["id"])
            if step["kind"] == "sweep":
                results[step["id"]] = {"context": step["schedule"]["context"]}
                continue
            value = worker.run(self.model, step)
            per = 1 / self.rate_of(step["id"])
            value["forwards"] = [[s, per] for s, _ in value["forwards"]]
            value["seconds"] = value["forward_seconds"] = per * len(value["forwards"])
            value |= {"others": 0.0, "others_before": 0.0, "faults_per_forward": 30.0}
            value |= {"draft_seconds": 0.0, "argmax_seconds": 0.0}
            self.spoil(step["id"], value)
            results[step["id"]] = value


def judge(raw: Mapping[str, Any]) -> dict[str, Any]:
    points = [{"s": s, "median_ms": 1e3 / 27, "c_v": 1.0} for s in range(1, 17)]
    plateaus = [{"k": 2, "last": 3}, {"k": 7, "last": 8}]
    return {
        "status": "ok",
        "scope": "interpreter",
        "reasons": [],
        "points": points,
        "staircase": {"plateaus": plateaus},
    }


PROMPT = (1, 2, 3, 1, 2, 3, 1, 2)


def ab(server: Server, **changes: Any) -> Ab:
    options = AbOptions(
        (Workload("a", PROMPT, "a.txt"), Workload("b", (*PROMPT, 5, 6, 7), "b.txt")),
        **{"policies": ("2", "adaptive"), "drafters": ("suffix",), "budgets": (40,), "retries": 1, **changes},
    )
    made = Ab("main", 128, options, server, judge)
    made.run()
    return made


def test_off_and_on_are_interleaved_and_bracketed() -> None:
    server = Server(MemoryModel(counting(3)))
    record = ab(server, pairs=2).record()
    kinds = [step.split("/")[3].split("#")[0] for step in server.served]
    once = ["off", "on suffix 2", "off", "on suffix adaptive:7", "off"]
    assert kinds[: len(kinds) // 2] == ["verify-cost", "warm-up", "anchor", "anchor", "anchor", *once, *once]
    assert [bed["name"] for bed in record["workloads"]] == ["a", "b"]
    assert all(row["lossless"] and row["status"] == "valid" for bed in record["workloads"] for row in bed["rows"])
    assert {len(row["pairs"]) for bed in record["workloads"] for row in bed["rows"]} == {2}
    assert record["allocator"] is not None


def test_anchors_that_spread_are_taken_again_and_the_disturbed_left_out() -> None:
    server = Server(MemoryModel(counting(3)))
    seen: list[str] = []

    def spoil(step: str, value: dict[str, Any]) -> None:
        if "anchor" in step and "/a/" in step:
            seen.append(step)
            if len(seen) <= 2:
                value["seconds"] *= 1 + len(seen)
                value["others"] = 0.8

    server.spoil = spoil
    band = ab(server).record()["workloads"][0]["band"]
    assert len(seen) == 6
    assert band["reason"] == ""
    assert len(band["anchors"]) == 4
    seen.clear()
    assert "no baseline is valid" in ab(server, retries=0).record()["workloads"][0]["band"]["reason"]


def test_rows_without_a_baseline_are_run_once() -> None:
    """No row can become valid, but acceptance and losslessness are worth having."""
    server = Server(MemoryModel(counting(3)))
    anchors: list[str] = []

    def spoil(step: str, value: dict[str, Any]) -> None:
        if "anchor" in step:
            anchors.append(step)
            value["seconds"] *= len(anchors)

    server.spoil = spoil
    for bed in ab(server, retries=3).record()["workloads"]:
        assert "no baseline is valid" in bed["band"]["reason"]
        assert [(row["status"], len(row["pairs"]), row["lossless"]) for row in bed["rows"]] == [
            ("spoiled", 1, True)
        ] * 2


def test_adaptive_without_a_plateau_is_not_run() -> None:
    options = AbOptions((Workload("a", PROMPT, "a"),), policies=("2", "adaptive"), budgets=(20,))
    made = Ab(
        "main",
        128,
        options,
        Server(MemoryModel(counting(3))),
        lambda raw: {**judge(raw), "staircase": {"plateaus": []}},
    )
    made.run()
    (bed,) = made.record()["workloads"]
    assert [row["policy"] for row in bed["rows"]] == ["2"]
    assert "no plateau to take Kmax from" in bed["not_run"][0]["reason"]


def test_spoiled_rows_are_run_again_and_kept() -> None:
    server = Server(MemoryModel(counting(3)))
    seen: list[str] = []

    def spoil(step: str, value: dict[str, Any]) -> None:
        if "/a/" in step and "on suffix 2" in step:
            seen.append(step)
            value["others"] = 0.9 if len(seen) == 1 else 0.0

    server.spoil = spoil
    rows = ab(server).record()["workloads"][0]["rows"]
    assert [(row["policy"], row["status"], len(row["pairs"])) for row in rows] == [
        ("2", "valid", 2),
        ("adaptive", "valid", 1),
    ]
    assert rows[0]["pairs"][0]["spoiled"]


def test_a_contended_lossless_failure_is_run_again_alone_and_both_are_stated() -> None:
    """As published: a baseline of 21.4 instead of 26.9, texts that differ; alone it was lossless."""
    server = Server(MemoryModel(counting(3)), lambda step: 21.4 if "/off" in step else 26.9)

    def spoil(step: str, value: dict[str, Any]) -> None:
        if "/a/" in step and "/on suffix 2" in step:
            value["tokens"][17] += 1

    server.spoil = spoil
    record = ab(server, policies=("2",), band=(26.0, 28.0), retries=0).record()
    first = record["workloads"][0]["rows"][0]
    assert (first["status"], first["lossless"], first["first_difference"]) == ("spoiled", False, 17)
    assert first["rerun"] == {"lossless": True, "first_difference": None, "reason": ""}
    assert "21.40 tok/s, left the band" in first["spoiled"][0]
    alone = next(call for call in server.calls if "alone off" in call[0])
    assert len(alone) == 2
    assert not_lossless(record) == []
    assert record["workloads"][1]["rows"][0]["rerun"] is None


def test_a_failure_that_holds_alone_is_reported() -> None:
    server = Server(MemoryModel(chaotic(2), recurrent=True, vocab=12))
    record = ab(server, policies=("4",), drafters=("ngram",)).record()
    found = not_lossless(record)
    assert found
    assert "not lossless, texts part at token" in found[0]
    assert "alone at token" in found[0]


def test_an_interruption_keeps_what_was_measured() -> None:
    server = Server(MemoryModel(counting(3)))
    server.interrupt_at = "/b/40/on"
    record = ab(server).record()
    assert record["status"] == "interrupted"
    assert [len(bed["rows"]) for bed in record["workloads"]] == [2, 0]
    assert record["workloads"][1]["band"]["anchors"]
    early = Server(MemoryModel(counting(3)))
    early.interrupt_at = "on suffix adaptive"
    assert [row["policy"] for row in ab(early).record()["workloads"][0]["rows"]] == ["2"]


def test_the_tree_never_remembers_its_own_workload() -> None:
    server = Server(MemoryModel(counting(3)))
    made = ab(server, drafters=("tree",))
    assert [bed.remembered for bed in made.beds] == [[], ["a"]]
    budgets = ab(Server(MemoryModel(counting(3))), drafters=("tree",), budgets=(20, 40))
    assert [bed.remembered for bed in budgets.beds] == [[], [], ["a"], ["a"]]


def test_a_child_that_dies_at_a_run_costs_that_row() -> None:
    server = Server(MemoryModel(counting(3)))

    class Dying(Server):
        def __call__(self, steps: Sequence[dict[str, Any]], results: dict[str, Any]) -> None:
            super().__call__(steps, results)
            for step in steps:
                if "/a/40/on suffix 2" in step["id"]:
                    results[step["id"]] = "the child process was ended by SIGILL"

    made = ab(Dying(server.model))
    record = made.record()
    assert [row["policy"] for row in record["workloads"][0]["rows"]] == ["adaptive"]
    assert any("SIGILL" in reason for reason in record["reasons"])


def test_shipped_runner() -> None:
    model = MemoryModel(counting(3))
    text = tuple(worker.run(model, _step())["tokens"])
    base = {"policies": ("2",), "budgets": (40,)}
    for speed, agrees in ((27.2, True), (27.6, False), (26.4, False)):
        options = AbOptions((Workload("a", PROMPT, "a"),), **base, shipped_tok_s=speed, shipped_tokens=text[:20])
        made = Ab("main", 128, options, Server(model), judge)
        made.run()
        shipped = made.record()["workloads"][0]["shipped"]
        assert shipped["speed_agrees"] is agrees
        assert (shipped["text_agrees"], shipped["compared"]) == (True, 20)
    options = AbOptions((Workload("a", PROMPT, "a"),), **base, shipped_tokens=(*text[:5], 11 - text[5], 0))
    made = Ab("main", 128, options, Server(model), judge)
    made.run()
    assert made.record()["workloads"][0]["shipped"]["first_difference"] == 5


def _step() -> dict[str, Any]:
    return {"prompt": PROMPT, "budget": 40, "stop": [], "policy": "", "drafter": "", "match": [2, 5], "remember": []}


def test_host_time_of_the_automaton_is_within_twice_that_of_ngrams() -> None:
    model = MemoryModel(counting(9, 12, 3), capacity=None)
    step = {**_step(), "budget": 3000, "policy": "4"}
    best = {
        name: min(worker.run(model, {**step, "drafter": name})["draft_seconds"] for _ in range(3))
        for name in ("ngram", "suffix")
    }
    assert best["suffix"] <= 2 * best["ngram"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"lossless": False, "first_difference": None}, "FAIL without the position"),
        ({"lossless": True, "first_difference": 4}, "says lossless, and that the texts part at token 4"),
        ({"rounds": [[2, 3]]}, "accepted more than it drafted"),
        ({"tokens": 99}, "its rounds give 4 tokens, and it counts 99"),
        (
            {"lossless": False, "first_difference": 3, "rerun": {"lossless": False, "first_difference": 3}},
            "not lossless",
        ),
        ({"rerun": {"lossless": False, "first_difference": None}}, "its re-run says FAIL without"),
    ],
)
def test_records_that_contradict_themselves(change: dict[str, Any], says: str) -> None:
    good = {"lossless": True, "first_difference": None, "rounds": [[2, 1], [2, 1]], "tokens": 4, "rerun": None}
    assert contradictions(good) == []
    assert says in contradictions({**good, **change})[0]
