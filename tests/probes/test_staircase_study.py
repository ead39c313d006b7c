"""The study behind the staircase, in short: run benchmarks/staircase_study.py for the whole of it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

STUDY = Path(__file__).resolve().parents[2] / "benchmarks" / "staircase_study.py"


@pytest.fixture(scope="module")
def study() -> Any:
    spec = importlib.util.spec_from_file_location("staircase_study", STUDY)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_tops_are_right_in_99_of_100_runs(study: Any) -> None:
    found = study.staircases(200, study.Trouble(0.03), 10, 7, False)
    assert found["right"]["this tool"] >= 0.99
    assert found["refused"] < 0.05


@pytest.mark.parametrize("sudden", [False, True])
def test_no_k_comes_from_a_refused_run(study: Any, sudden: bool) -> None:
    found = study.staircases(60, study.Trouble(0.03, 0.02, 0.15, sudden), 10, 7, False)
    assert found["refused"] > 0.5
    assert found["leaked"] == 0


@pytest.mark.parametrize("shape", ["ramp", "hinge"])
def test_no_k_on_a_ramp_or_a_hinge(study: Any, shape: str) -> None:
    assert study.false_tops(60, getattr(study, shape), study.WIDTHS, 7)["called"] == 0


def test_no_k_at_powers_of_two(study: Any) -> None:
    assert study.false_tops(60, study.staircase, study.POWERS, 7) == {"called": 0, "without_advice": 0}


def test_at_least_as_good_as_the_oracle(study: Any) -> None:
    pytest.importorskip("ruptures")
    right = study.staircases(100, study.Trouble(0.03), 10, 11, True)["right"]
    assert right["this tool"] >= max(right.values()) - 0.01
