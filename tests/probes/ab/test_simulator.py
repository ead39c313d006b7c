"""The simulator against the loop itself, and against the published table."""

from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path
from typing import Any

import pytest

from probes.ab.policies import Adaptive, Fixed, Policy
from probes.ab.simulator import Acceptance, simulate

STUDY = Path(__file__).resolve().parents[3] / "benchmarks" / "ab_published.py"
FLAT = dict.fromkeys(range(1, 17), 1.0)


@pytest.fixture(scope="module")
def study() -> Any:
    spec = importlib.util.spec_from_file_location("ab_published", STUDY)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def fits(study: Any) -> dict[str, Acceptance]:
    found: dict[str, Acceptance] = study.fits()
    return found


@pytest.fixture(scope="module")
def predicted(study: Any, fits: dict[str, Acceptance]) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = study.predictions(fits)
    return found


def drawn(policy: Policy, acceptance: Acceptance, rounds: int, seed: int) -> tuple[float, float]:
    """Tokens and drafts per forward by drawing the same process round for round, written the plain way."""
    dice = random.Random(seed)
    length, run = policy.first, ""
    tokens = drafts = 0
    for _ in range(rounds):
        if not run and dice.random() < acceptance.available:
            run = "long" if dice.random() < acceptance.copies else "short"
        if not run:
            tokens += 1
            continue
        right = 0
        while right <= length and dice.random() < getattr(acceptance, run):
            right += 1
        accepted = min(right, length)
        tokens, drafts = tokens + accepted + 1, drafts + length
        run = run if right > length else ""
        length = policy.after(length, length, accepted)
    return tokens / rounds, drafts / rounds


@pytest.mark.parametrize("policy", [Fixed(1), Fixed(2), Fixed(8), Adaptive(5), Adaptive(8)], ids=lambda one: one.name)
def test_the_chain_agrees_with_draws(policy: Policy) -> None:
    acceptance = Acceptance(0.6, 0.3, 0.9, 0.2)
    found = simulate(policy, acceptance, FLAT)
    tokens, drafts = drawn(policy, acceptance, 200_000, 5)
    assert found.tokens == pytest.approx(tokens, rel=0.02)
    assert found.draft == pytest.approx(drafts, rel=0.02)


def test_limits() -> None:
    assert simulate(Fixed(0), Acceptance(1, 1, 1, 1), FLAT).speedup == 1
    assert simulate(Fixed(4), Acceptance(1, 1, 1, 1), FLAT).tokens == pytest.approx(5, rel=1e-4)
    assert simulate(Adaptive(7), Acceptance(1, 1, 1, 1), FLAT).tokens == pytest.approx(8, rel=1e-4)
    never = simulate(Fixed(8), Acceptance(1, 1, 0, 0), {**FLAT, 9: 2.0})
    assert (never.tokens, never.speedup) == (1, 0.5)
    with pytest.raises(ValueError, match="costs end at S=16"):
        simulate(Fixed(16), Acceptance(1, 1, 1, 1), FLAT)


def test_the_published_orderings_come_out(predicted: dict[str, dict[str, float]]) -> None:
    for speedups in predicted.values():
        assert speedups["K=2"] > speedups["K=3"]
        assert speedups["K=4"] > speedups["K=8"]
    assert predicted["free chat"]["K=8"] < 1
    assert predicted["code rewrite"]["adaptive:7"] > predicted["code rewrite"]["adaptive:8"]


def test_tokens_per_forward_rise_with_k_while_tokens_per_second_fall(study: Any, fits: dict[str, Acceptance]) -> None:
    for acceptance in fits.values():
        tokens = [simulate(Fixed(k), acceptance, study.COSTS) for k in (2, 3, 8)]
        assert tokens[0].tokens < tokens[1].tokens < tokens[2].tokens
        assert tokens[0].speedup > tokens[2].speedup


def test_every_prediction_is_near_the_published_figure(study: Any, predicted: dict[str, dict[str, float]]) -> None:
    errors = [
        abs(predicted[workload][name] / figures[index] - 1)
        for name, figures in study.SPEEDUPS.items()
        if name not in study.FITTED
        for index, workload in enumerate(study.WORKLOADS)
    ]
    assert len(errors) == 18
    assert max(errors) < 0.08
    assert sum(errors) / len(errors) < 0.04


def test_the_fit_does_not_see_what_it_predicts(study: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    guess = Acceptance(0.6, 0.3, 0.9, 0.2)
    before = [study.errors(workload, guess) for workload in study.WORKLOADS]
    hidden = {name: figures if name in ("K=1", "K=2") else (9.0, 9.0, 9.0) for name, figures in study.SPEEDUPS.items()}
    monkeypatch.setattr(study, "SPEEDUPS", hidden)
    assert [study.errors(workload, guess) for workload in study.WORKLOADS] == before
