"""The loop without a model: what a policy gives on a staircase, for a drafter whose acceptance is known.

Drafts come in runs of two kinds. After a rejection, or a round without a draft, a draft is there with probability
`available`; with probability `copies` it copies on (each token is accepted with `long`, given those before it), else it
is a chance match (`short`). After a wholly accepted draft the run goes on if the token after it is the one that would
have been drafted: then a draft is there, of the same kind.

The states of the loop (the draft length that the policy has come to, and the run) form a Markov chain, whose stationary
distribution gives the exact means; the policies are those of the loop itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from probes.ab.policies import Policy

_SWEEPS = 400
_CLOSE = 1e-5


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Four probabilities; see above."""

    available: float
    copies: float
    long: float
    short: float


State = tuple[int, str]
FRESH, COPY, CHANCE = "fresh", "copy", "chance"


@dataclass(frozen=True, slots=True)
class Outcome:
    """Means per forward. `cost` is c_v: `speedup` is `tokens` / `cost`. Accepted tokens per round are `tokens` - 1."""

    tokens: float
    cost: float
    draft: float

    @property
    def speedup(self) -> float:
        return self.tokens / self.cost


def simulate(policy: Policy, acceptance: Acceptance, costs: Mapping[int, float]) -> Outcome:
    """The long-run means of `policy`. `costs` are c_v by S; an S that was not measured costs what the next one does.

    ValueError when a draft is longer than the costs reach.
    """
    if policy.most + 1 > max(costs):
        raise ValueError(f"the costs end at S={max(costs)}, and {policy.name} needs S={policy.most + 1}")
    states: dict[State, float] = {(policy.first, FRESH): 1.0}
    for _ in range(_SWEEPS):
        after: dict[State, float] = {}
        for state, weight in states.items():
            for chance, drafted, accepted, run in _rounds(state, acceptance):
                key = (policy.after(state[0], drafted, accepted), run)
                after[key] = after.get(key, 0.0) + weight * chance
        # Half of the old distribution, so that a chain that alternates settles as well.
        mixed = {key: (after.get(key, 0.0) + states.get(key, 0.0)) / 2 for key in after.keys() | states.keys()}
        moved = sum(abs(mixed[key] - states.get(key, 0.0)) for key in mixed)
        states = mixed
        if moved < _CLOSE:
            break
    tokens = cost = draft = 0.0
    for state, weight in states.items():
        for chance, drafted, accepted, _ in _rounds(state, acceptance):
            tokens += weight * chance * (1 + accepted)
            cost += weight * chance * cost_of(drafted + 1, costs)
            draft += weight * chance * drafted
    return Outcome(tokens, cost, draft)


def _rounds(state: State, acceptance: Acceptance) -> list[tuple[float, int, int, str]]:
    """(probability, drafted, accepted, run afterwards) of every way in which a round from `state` may go."""
    length, run = state
    if length == 0:
        return [(1.0, 0, 0, FRESH)]
    there = acceptance.available if run == FRESH else 1.0
    kinds = {COPY: acceptance.copies, CHANCE: 1 - acceptance.copies} if run == FRESH else {run: 1.0}
    found = [(1 - there, 0, 0, FRESH)]
    for kind, share in kinds.items():
        chance = acceptance.long if kind == COPY else acceptance.short
        reached = there * share
        for accepted in range(length):
            found.append((reached * (1 - chance), length, accepted, FRESH))
            reached *= chance
        # The token after the draft is the model's own: the run goes on only if it is the one that would be drafted.
        found.append((reached * chance, length, length, kind))
        found.append((reached * (1 - chance), length, length, FRESH))
    return found


def cost_of(width: int, costs: Mapping[int, float]) -> float:
    """c_v at S=`width`, or at the next S that was measured."""
    return costs[min(s for s in costs if s >= width)]
