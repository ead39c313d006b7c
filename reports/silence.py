"""What is silenced, and which waivers need a person: the same lines in every format that has room for them."""

from __future__ import annotations

from collections.abc import Iterator

from reports.wording import plural
from rules.audit import Audit
from rules.waivers import State


def silence(audit: Audit) -> Iterator[str]:
    """One line for the waivers in force, one for each that needs attention, one for the baseline."""
    active = audit.waivers(State.IN_FORCE)
    if active:
        findings = sum(use.findings for use in active)
        yield f"{plural(len(active), 'waiver')} in force, {plural(findings, 'finding')} silenced"
    for state in (State.UNUSABLE, State.EXPIRED, State.STALE):
        yield from (f"waiver {state}: {use.message}" for use in audit.waivers(state))
    if audit.policy.baseline is not None:
        yield f"baseline: {plural(audit.recorded, 'known finding')}"
        if audit.gone:
            yield f"baseline: {plural(audit.gone, 'recorded finding')} no longer there; --update-baseline forgets them"
