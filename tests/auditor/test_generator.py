"""Generated export scripts: the scan says what running them says, or that it does not know; no false `eligible`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from rules.verdict import Verdict, judge
from tests.auditor.generator.scripts import Script, generate
from tests.auditor.generator.standins import run
from tests.auditor.generator.truth import Truth, truth
from tests.auditor.support import default_graphs, scan_text

DEFAULT, NIGHTLY = 300, 5_000
CHUNK = 50
MOST_UNRESOLVED = 0.02
"""The share of scripts that may stay unresolved where running them gives a verdict."""


def check(root: Path, seed: int) -> str:
    """Scan and run one script; what the scan says. Fails where it says what is not so."""
    script = generate(seed)
    known, other = ran(script), ran(script, OPEN="1") if script.open else None
    result = scan_text(root, {"export.py": script.text})
    graphs = default_graphs(result)
    assert len(graphs) == 1, (seed, result.files, script.text)
    judgement = judge(graphs[0].facts)
    told = (seed, script.defect, known.broken, [(f.rule, f.message) for f in judgement.reasons])
    if other is not None:
        assert judgement.verdict is Verdict.UNRESOLVED, f"the environment decides: {told}\n{script.text}"
        return "open"
    if judgement.verdict is Verdict.ELIGIBLE:
        assert known.eligible, f"a false eligible: {told}\n{script.text}"
    elif judgement.verdict is Verdict.OUT:
        assert judgement.primary is not None
        assert judgement.primary.rule in known.broken, f"another rule: {told}\n{script.text}"
    elif judgement.says() == "unresolved by fixed-window":
        assert known.broken == {"fixed-window"}, told
        return "fixed-window"
    return str(judgement.verdict.value)


def ran(script: Script, **environment: str) -> Truth:
    """The truth by running the script, which is the truth by construction."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        exports = run(script.text)
        assert len(exports) == 1, script.text
        known = truth(exports[0])
    broken = {script.defect} if script.defect and (environment or not script.open) else set()
    assert known.broken == broken, (script.defect, known.broken, script.text)
    return known


def check_chunk(root: Path, first: int, count: int) -> None:
    said = Counter(check(root, seed) for seed in range(first, first + count))
    assert said["unresolved"] <= max(1, MOST_UNRESOLVED * count), said


@pytest.mark.parametrize("first", range(0, DEFAULT, CHUNK))
def test_the_scan_agrees_with_running_the_script(tmp_path: Path, first: int) -> None:
    check_chunk(tmp_path, first, CHUNK)


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(DEFAULT, NIGHTLY, CHUNK))
def test_the_scan_agrees_with_running_thousands(tmp_path: Path, first: int) -> None:
    check_chunk(tmp_path, first, CHUNK)
