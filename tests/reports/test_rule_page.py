from __future__ import annotations

from pathlib import Path

import pytest

from reports.rule_page import listing, page, titles
from tests.conftest import Snapshot

DOCS = Path(__file__).parents[2] / "docs" / "rules"


@pytest.mark.parametrize("identifier", titles())
def test_the_documentation_is_the_page(identifier: str, snapshot: Snapshot) -> None:
    snapshot(DOCS / f"{identifier}.md", page(identifier))


def test_no_page_is_left_over() -> None:
    assert {path.stem for path in DOCS.glob("*.md")} == set(titles())


def test_listing_has_a_line_for_each() -> None:
    assert [line.split()[0] for line in listing().splitlines()] == list(titles())


def test_unknown_page() -> None:
    with pytest.raises(KeyError):
        page("no-such-rule")
