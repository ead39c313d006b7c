from __future__ import annotations

from dataclasses import replace

import pytest

from reports.formats import FORMATS, report
from rules.audit import audit
from tests.reports.sample import sample


@pytest.mark.parametrize("name", FORMATS)
def test_the_same_scan_gives_the_same_bytes(name: str) -> None:
    scan = sample()
    shuffled = replace(scan, files=scan.files[::-1], graphs=scan.graphs[::-1])
    text = report(name).render(audit(scan))
    assert text == report(name).render(audit(shuffled))
    assert text.endswith("\n")


def test_unknown_format() -> None:
    with pytest.raises(KeyError):
        report("pdf")
