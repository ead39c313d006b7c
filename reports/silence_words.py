"""Waivers and the baseline in the words of the page, from a scan's report as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reports.wording import plural
from rules.waivers import State

Data = Mapping[str, Any]

_ATTENTION = (State.UNUSABLE, State.EXPIRED, State.STALE)
_TITLES = {
    State.UNUSABLE: "Unusable: these silence nothing",
    State.EXPIRED: "Expired: these silence nothing any more",
    State.STALE: "Stale: these silence nothing",
    State.IN_FORCE: "In force",
}


def silenced(finding: Data) -> str:
    """What silences a finding, in words; empty for one that counts, or in a report from before there were waivers."""
    if finding.get("waived"):
        return f"Waived: {finding['waived']}" + (" (also in the baseline)" if finding.get("known") else "")
    return "In the baseline: not new." if finding.get("known") else ""


def mark(finding: Data) -> str:
    """The same in a word, behind a rule's name."""
    return " (waived)" if finding.get("waived") else " (in the baseline)" if finding.get("known") else ""


def waivers(scan: Data) -> Iterator[tuple[str, list[str]]]:
    """The waivers by state, what needs a person first; a state that nobody is in is left out."""
    for state in (*_ATTENTION, State.IN_FORCE):
        lines = _in_state(scan, state)
        if lines:
            yield _TITLES[state], lines


def baseline(scan: Data) -> str:
    """The baseline's numbers in a sentence."""
    held = scan.get("baseline")
    if not held:
        return "No baseline."
    said = f"Baseline: {plural(held['recorded'], 'recorded finding')}; {held['known']} known in this scan"
    return f"{said}, {held['gone']} no longer there (--update-baseline forgets them)." if held["gone"] else f"{said}."


def counted(scan: Data) -> str:
    """Counts for the top of the page; empty where nothing is silenced and no waiver needs a person."""
    counts = ((plural(len(_in_state(scan, state)), "waiver"), state) for state in (State.IN_FORCE, *_ATTENTION))
    parts = [f"{count} {state}" for count, state in counts if not count.startswith("0 ")]
    held = scan.get("baseline")
    if held:
        parts.append(f"{plural(held['known'], 'known finding')} in the baseline")
    return ", ".join(parts)


def _in_state(scan: Data, state: State) -> list[str]:
    return [str(item["message"]) for item in scan.get("waivers") or () if item["state"] == state]
