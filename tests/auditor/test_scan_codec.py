"""A scan as plain data and back: nothing is lost, and nothing else is taken for one."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import pytest

from auditor.scan_codec import decode, encode
from rules.facts import Change, Fact, Mark, Place, Query, Scan, Trait
from tests.reports.sample import sample


def whole() -> Scan:
    """A scan in which no field has its default."""
    scan = sample()
    first = scan.graphs[0]
    facts = replace(
        first.facts,
        query=Fact(Query(False, (1, 8)), (Place("a.py", 3, "here"),), "", frozenset({"--b", "--a"})),
        marks=(Mark(Trait.MOE, "8 experts", (Place("a\udcff.py", 4),)),),
    )
    changes = (Change("drop --x", "--x", ("--y",), facts), Change("pass --z", "--z", (), None))
    graphs = (replace(first, facts=facts, changes=changes, shipped="m", family="f"), *scan.graphs[1:])
    return replace(scan, graphs=graphs, warnings=("w",))


def test_nothing_is_lost() -> None:
    scan = whole()
    assert decode(json.loads(json.dumps(encode(scan)))) == scan


def test_the_same_scan_is_the_same_text() -> None:
    scan = whole()
    assert json.dumps(encode(scan)) == json.dumps(encode(decode(encode(scan))))


def _spots(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [path, *(spot for key, value in inner for spot in _spots(value, (*path, key)))]


def test_anything_else_is_refused() -> None:
    """Every value in turn is replaced by one of a type that stands nowhere in an encoded scan."""
    good = encode(whole())
    for spot in _spots(good):
        for wrong in ({"x": 1}, 1.5):
            bad: Any = copy.deepcopy(good)
            if not spot:
                bad = wrong
            else:
                at = bad
                for key in spot[:-1]:
                    at = at[key]
                at[spot[-1]] = wrong
            with pytest.raises(ValueError, match=r"not |is dynamic"):
                decode(bad)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"eligible"', None),
        ('"kv-key"', '"kv-kay"'),
        ('"decoder"', '"decodr"'),
        ('"default"', '"defaults"'),
        ('"exports"', '"export"'),
        ('"all"', '"most"'),
        ('"state"', '"stats"'),
        ('"moe"', '"mow"'),
    ],
)
def test_unknown_words_are_refused(old: str, new: str | None) -> None:
    text = json.dumps(encode(whole()))
    if new is None:
        assert old not in text, "a scan holds facts, and no verdicts"
        return
    assert old in text
    with pytest.raises(ValueError, match="is not a valid"):
        decode(json.loads(text.replace(old, new)))


@pytest.mark.parametrize("number", [-1, 10_000])
def test_references_stay_inside(number: int) -> None:
    data = encode(whole())
    data["graphs"][0][6] = number
    with pytest.raises(ValueError, match="stands for nothing"):
        decode(data)


@pytest.mark.parametrize("key", ["root", "files", "graphs", "warnings", "places", "facts"])
def test_missing_and_further_keys_are_refused(key: str) -> None:
    data = encode(whole())
    with pytest.raises(ValueError, match="not an object"):
        decode({**data, "more": 1})
    del data[key]
    with pytest.raises(ValueError, match="not an object"):
        decode(data)
