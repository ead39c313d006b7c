"""One generation inside the child process, with what the machine did meanwhile."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from probes.ab import meters
from probes.ab.drafters import Match, make
from probes.ab.drafters.drafter import Drafter
from probes.ab.loop import OFF, Task, as_json, generate
from probes.ab.policies import Policy, parse

if TYPE_CHECKING:
    from probes.backend import Session


def run(
    session: Session, step: Mapping[str, Any], tick: Callable[[int], None] = lambda emitted: None
) -> dict[str, Any]:
    """Run one step: `policy` empty is the loop without drafts. The drafter is new, and knows `remember` alone."""
    task = Task(step["prompt"], int(step["budget"]), frozenset(step["stop"]))
    drafter: Drafter | None = None
    policy: Policy = OFF
    if step["policy"]:
        drafter, policy = make(str(step["drafter"]), Match(*step["match"])), parse(str(step["policy"]))
        for earlier in step["remember"]:
            drafter.remember(earlier)
    before = meters.others_before()
    gc.collect()
    gc.disable()
    first = meters.reading()
    try:
        made = generate(session, task, policy, drafter, tick)
    finally:
        gc.enable()
    seen = meters.between(first, meters.reading())
    forwards = len(made.rounds) + -(-len(task.prompt) // 32)
    faults = None if seen["faults"] is None else seen["faults"] / forwards
    return {
        **as_json(made),
        "others_before": before,
        "others": seen["others"],
        "own": seen["own"],
        "faults_per_forward": faults,
        "allocator": meters.allocator(),
    }
