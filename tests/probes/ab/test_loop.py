"""The loop is lossless whatever is drafted, and ends where it should."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from memory_model import MemoryModel, chaotic, counting

from probes.ab.drafters import NAMES, Match, make
from probes.ab.drafters.drafter import Draft
from probes.ab.drafters.recorded import Recorded
from probes.ab.loop import BUDGET, CHUNK, FULL, STOP, Task, as_json, first_difference, generate
from probes.ab.policies import Adaptive, ByMatch, Fixed, Policy

POLICIES: list[Policy] = [Fixed(1), Fixed(2), Fixed(4), Fixed(8), Adaptive(5), Adaptive(8), ByMatch(6, 2)]
PROMPT = [1, 2, 3, 1, 2, 3, 1, 2]


class Oracle:
    """Drafts the text that will come, with every `wrong`-th token off by one."""

    def __init__(self, text: Sequence[int], vocab: int, wrong: int = 0) -> None:
        self._text = [(t + 1) % vocab if wrong and i % wrong == wrong - 1 else t for i, t in enumerate(text)]
        self._at = 0

    def remember(self, tokens: Sequence[int]) -> None:
        pass

    def extend(self, tokens: Sequence[int]) -> None:
        self._at += len(tokens)

    def draft(self, limit: int) -> Draft:
        return Draft(tuple(self._text[self._at : self._at + limit]), 99)


def straight(model: MemoryModel, task: Task) -> list[int]:
    """The text by the definition: every token from all before it, one by one."""
    text = list(task.prompt)
    while len(text) - len(task.prompt) < task.budget:
        text.append(model._rule(text))
        if text[-1] in task.stop or (model.capacity is not None and len(text) > model.capacity):
            break
    return text[len(task.prompt) :]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@pytest.mark.parametrize("drafter", NAMES)
def test_lossless_for_all_drafters_and_policies(drafter: str, policy: Policy) -> None:
    dice = random.Random(f"{drafter} {policy.name}")
    drafted = accepted = 0
    for seed in range(24):
        rule = chaotic(seed) if seed % 3 == 0 else counting(seed)
        model = MemoryModel(rule, capacity=dice.choice([None, 256, 90]))
        prompt = [dice.randrange(6) for _ in range(dice.choice([1, 5, CHUNK, CHUNK + 1, 80]))]
        task = Task(prompt, dice.choice([1, 2, 17, 100]), frozenset(dice.sample(range(12), dice.choice([0, 1]))))
        wanted = straight(model, task)
        off = generate(model, task)
        on = generate(model, task, policy, make(drafter, Match(1, 3)))
        assert off.tokens == on.tokens == wanted
        assert off.ended == on.ended
        assert all(len(one.drafts) <= policy.most for one in on.rounds)
        drafted += sum(len(one.drafts) for one in on.rounds)
        accepted += sum(one.accepted for one in on.rounds)
    assert 0 < accepted < drafted


@pytest.mark.parametrize("wrong", [0, 2, 3, 7])
def test_accepted_counts_are_those_of_the_drafts(wrong: int) -> None:
    model = MemoryModel(chaotic(1))
    task = Task(PROMPT, 60)
    text = [*PROMPT, *straight(model, task)]
    on = generate(model, task, Fixed(4), Oracle(text, model.vocab, wrong))
    assert on.tokens == text[len(PROMPT) :]
    if wrong == 0:
        # 59 tokens after the first: 11 rounds of 5, then one of 4.
        assert [one.accepted for one in on.rounds] == [4] * 11 + [3]
    else:
        assert all(one.accepted < wrong for one in on.rounds)
    assert on.decoded == 59
    assert len(as_json(on)["forwards"]) == len(on.rounds)


def test_a_stop_token_inside_an_accepted_run_ends_the_text_there() -> None:
    model = MemoryModel(chaotic(3))
    text = [*PROMPT, *straight(model, Task(PROMPT, 40))]
    stop = next(t for i, t in enumerate(text[len(PROMPT) + 2 :]) if t not in text[len(PROMPT) : len(PROMPT) + 2 + i])
    task = Task(PROMPT, 40, frozenset([stop]))
    on = generate(model, task, Fixed(8), Oracle(text, model.vocab))
    assert on.tokens == generate(model, task).tokens == straight(model, task)
    assert on.tokens[-1] == stop
    assert on.ended == STOP
    assert on.rounds[-1].emitted < on.rounds[-1].accepted + 1


def test_a_stop_token_right_after_the_prompt() -> None:
    model = MemoryModel(lambda tokens: 5)
    on = generate(model, Task(PROMPT, 40, frozenset([5])), Fixed(4), make("ngram"))
    assert (on.tokens, on.rounds, on.ended) == ([5], [], STOP)


def test_a_prompt_longer_than_one_forward_goes_in_by_pieces() -> None:
    prompt = [index % 7 for index in range(2 * CHUNK + 3)]
    model = MemoryModel(chaotic(5, 12))
    made = generate(model, Task(prompt, 1))
    assert model.calls == [(CHUNK, 0), (CHUNK, CHUNK), (3, 2 * CHUNK)]
    assert made.tokens == [model._rule(prompt)]
    single = MemoryModel(chaotic(5, 12), widths=(1,))
    assert generate(single, Task(prompt, 5)).tokens == straight(single, Task(prompt, 5))


@pytest.mark.parametrize("capacity", [9, 12, 13, 20])
def test_a_full_cache_ends_both_ways_at_the_same_token(capacity: int) -> None:
    model = MemoryModel(chaotic(2), capacity=capacity)
    task = Task(PROMPT, 100)
    text = [*PROMPT, *straight(MemoryModel(chaotic(2), capacity=None), task)]
    off = generate(model, task)
    on = generate(model, task, Fixed(4), Oracle(text, model.vocab))
    assert off.tokens == on.tokens == text[len(PROMPT) : capacity + 1]
    assert off.ended == on.ended == FULL
    assert max(position + s for s, position in model.calls) == capacity


def test_a_prompt_that_fills_the_cache_gives_one_token_and_a_longer_one_is_refused() -> None:
    model = MemoryModel(chaotic(2), capacity=len(PROMPT))
    assert generate(model, Task(PROMPT, 9)).ended == FULL
    with pytest.raises(ValueError, match="9 tokens, and the cache 8 rows"):
        generate(model, Task([*PROMPT, 1], 9))


@pytest.mark.parametrize("budget", [1, 2, 3, 4, 11])
def test_no_draft_goes_past_the_budget(budget: int) -> None:
    model = MemoryModel(chaotic(4))
    text = [*PROMPT, *straight(model, Task(PROMPT, 40))]
    model.calls.clear()
    on = generate(model, Task(PROMPT, budget), Fixed(8), Oracle(text, model.vocab))
    assert on.tokens == text[len(PROMPT) : len(PROMPT) + budget]
    assert on.ended == BUDGET
    assert max(position + s for s, position in model.calls) <= len(PROMPT) + budget - 1


def test_drafts_outside_the_vocabulary_never_reach_the_model() -> None:
    model = MemoryModel(counting(1))
    drafts = Recorded(dict.fromkeys(range(100), (3, 99, 3)))
    on = generate(model, Task(PROMPT, 20), Fixed(3), drafts)
    assert on.tokens == generate(model, Task(PROMPT, 20)).tokens
    assert {len(one.drafts) for one in on.rounds} == {0, 1}


def test_recorded_drafts_replay_a_run() -> None:
    model = MemoryModel(counting(8))
    task = Task(PROMPT, 60)
    first = generate(model, task, Adaptive(7), make("suffix"))
    data = as_json(first)
    again = generate(model, task, Adaptive(7), Recorded(dict(zip(data["at"], data["drafts"], strict=True))))
    assert as_json(again)["rounds"] == data["rounds"]
    assert any(accepted for _, accepted in data["rounds"])


@pytest.mark.parametrize(
    "defect",
    [{"mask": "late"}, {"recurrent": True}, {"ring": 12}],
    ids=lambda defect: next(iter(defect)),
)
def test_a_broken_model_is_not_lossless(defect: dict[str, object]) -> None:
    caught = 0
    for seed in range(10):
        model = MemoryModel(chaotic(seed), **defect)  # type: ignore[arg-type]
        on = generate(model, Task(PROMPT, 60), Fixed(4), make("ngram", Match(1, 3)))
        caught += on.tokens != generate(model, Task(PROMPT, 60)).tokens
    assert caught >= 9


def test_one_row_cannot_verify() -> None:
    model = MemoryModel(counting(1), rows="last")
    assert len(generate(model, Task(PROMPT, 20)).tokens) == 20
    with pytest.raises(ValueError, match="1 rows came out for S=3"):
        generate(model, Task(PROMPT, 20), Fixed(2), Recorded(dict.fromkeys(range(100), (3, 3))))


def test_without_s1_there_is_no_loop() -> None:
    with pytest.raises(ValueError, match="needs S=1"):
        generate(MemoryModel(counting(1), widths=(4,)), Task(PROMPT, 20))


def test_where_texts_part() -> None:
    assert first_difference([1, 2, 3], [1, 2, 3]) is None
    assert first_difference([1, 2, 3], [1, 5, 3]) == 1
    assert first_difference([1, 2, 3], [1, 2]) == 2
