"""The dense loop: draft, verify in one forward, keep the accepted prefix and one token more. Greedy, batch 1.

Rollback is "do not advance": rows past the accepted prefix are stale, and the next forward overwrites them before
anything can read them. Every emitted token is the model's own argmax, so the text cannot depend on the drafts where the
graph does what the gates ask for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from probes.ab.choose import choose
from probes.ab.drafters.drafter import Drafter
from probes.ab.policies import Fixed, Policy

if TYPE_CHECKING:
    from probes.backend import Session

OFF = Fixed(0)
CHUNK = 32
BUDGET, STOP, FULL = "budget", "stop", "cache full"


@dataclass(frozen=True, slots=True)
class Task:
    """What to generate: at most `budget` tokens after `prompt`, ending with any of `stop`, which is emitted."""

    prompt: Sequence[int]
    budget: int
    stop: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Round:
    """One forward: the tokens drafted for it, how many were accepted, how many it emitted, its seconds in the runtime.

    `emitted` is less than `accepted` + 1 only where a stop token lies inside the accepted run.
    """

    at: int
    drafts: tuple[int, ...]
    accepted: int
    emitted: int
    seconds: float


@dataclass(slots=True)
class Generation:
    """The tokens and how they came. Times are in seconds, of everything after the prompt."""

    tokens: list[int] = field(default_factory=list)
    rounds: list[Round] = field(default_factory=list)
    ended: str = ""
    prefill_seconds: float = 0.0
    seconds: float = 0.0
    draft_seconds: float = 0.0
    argmax_seconds: float = 0.0

    @property
    def forward_seconds(self) -> float:
        return sum(one.seconds for one in self.rounds)

    @property
    def decoded(self) -> int:
        """Tokens that the timed part emitted: all but the first, which the prompt's forward gives."""
        return sum(one.emitted for one in self.rounds)


def generate(
    session: Session,
    task: Task,
    policy: Policy = OFF,
    drafter: Drafter | None = None,
    tick: Callable[[int], None] = lambda emitted: None,
) -> Generation:
    """Generate from fresh states. ValueError when there is no prompt, no budget, or no room for the prompt."""
    if not task.prompt or task.budget < 1:
        raise ValueError("a generation needs a prompt and a budget of one token at least")
    room = session.capacity
    if room is not None and len(task.prompt) > room:
        raise ValueError(f"the prompt has {len(task.prompt)} tokens, and the cache {room} rows")
    made = Generation()
    started = time.perf_counter()
    pending = _prefill(session, task.prompt)
    made.tokens.append(pending)
    if drafter is not None:
        drafter.extend(task.prompt)
        drafter.extend([pending])
    made.prefill_seconds = time.perf_counter() - started
    position, length = len(task.prompt), policy.first
    started = time.perf_counter()
    while not (ended := _ended(made.tokens, task, position, room)):
        most = min(length, task.budget - len(made.tokens) - 1, session_limit(session))
        if room is not None:
            most = min(most, room - position - 1)
        drafts = _draft(made, drafter, policy, most, session.vocab)
        chosen = choose(session, [pending, *drafts], position)
        made.argmax_seconds += chosen.seconds
        accepted = _accepted(drafts, chosen.tokens)
        emitted = _up_to_stop(chosen.tokens[: accepted + 1], task.stop)
        made.rounds.append(Round(position, drafts, accepted, len(emitted), session.seconds))
        made.tokens += emitted
        position += len(emitted)
        pending = emitted[-1]
        if drafter is not None:
            before = time.perf_counter()
            drafter.extend(emitted)
            made.draft_seconds += time.perf_counter() - before
        length = policy.after(length, len(drafts), accepted)
        tick(len(made.tokens))
    made.seconds = time.perf_counter() - started
    made.ended = ended
    return made


def session_limit(session: Session) -> int:
    """The longest draft that the graph takes beside the pending token."""
    return 2**31 if session.widths is None else max(session.widths) - 1


def _ended(tokens: Sequence[int], task: Task, position: int, room: int | None) -> str:
    if tokens[-1] in task.stop:
        return STOP
    if len(tokens) >= task.budget:
        return BUDGET
    return FULL if room is not None and position >= room else ""


def _prefill(session: Session, prompt: Sequence[int]) -> int:
    """The token after the prompt, which goes in by pieces that the graph takes."""
    session.reset()
    if session.widths is None:
        chunk = CHUNK
    elif 1 in session.widths:
        chunk = 1
    else:
        raise ValueError(f"the graph takes S={session.widths} only, and the loop needs S=1")
    token = -1
    for start in range(0, len(prompt), chunk):
        token = choose(session, prompt[start : start + chunk], start, last_only=True).tokens[-1]
    return token


def _draft(made: Generation, drafter: Drafter | None, policy: Policy, most: int, vocabulary: int) -> tuple[int, ...]:
    """Drafts for this round; a token outside the vocabulary ends the draft, for a runtime may die of it."""
    if drafter is None or most < 1:
        return ()
    before = time.perf_counter()
    draft = drafter.draft(most)
    drafts = draft.tokens[: min(most, policy.wants(most, draft.match))]
    bad = next((index for index, token in enumerate(drafts) if not 0 <= token < vocabulary), len(drafts))
    made.draft_seconds += time.perf_counter() - before
    return drafts[:bad]


def _accepted(drafts: Sequence[int], chosen: Sequence[int]) -> int:
    return next((index for index, token in enumerate(drafts) if chosen[index] != token), len(drafts))


def _up_to_stop(tokens: Sequence[int], stop: frozenset[int]) -> list[int]:
    last = next((index for index, token in enumerate(tokens) if token in stop), len(tokens) - 1)
    return list(tokens[: last + 1])


def first_difference(first: Sequence[int], second: Sequence[int]) -> int | None:
    """Where two outputs part, as a number of tokens; None when they are the same."""
    for index, (left, right) in enumerate(zip(first, second, strict=False)):
        if left != right:
            return index
    return None if len(first) == len(second) else min(len(first), len(second))


def as_json(made: Generation) -> dict[str, Any]:
    """The run as plain data; `forwards` are [S, seconds], `rounds` [drafted, accepted]."""
    return {
        "tokens": list(made.tokens),
        "ended": made.ended,
        "decoded": made.decoded,
        "seconds": made.seconds,
        "prefill_seconds": made.prefill_seconds,
        "forward_seconds": made.forward_seconds,
        "draft_seconds": made.draft_seconds,
        "argmax_seconds": made.argmax_seconds,
        "forwards": [[1 + len(one.drafts), one.seconds] for one in made.rounds],
        "rounds": [[len(one.drafts), one.accepted] for one in made.rounds],
        "emitted": [one.emitted for one in made.rounds],
        "drafts": [list(one.drafts) for one in made.rounds],
        "at": [one.at + 1 for one in made.rounds],
    }
