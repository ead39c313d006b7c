"""What the branches taken so far assume: a condition that nobody knows has one answer for as long as a world lasts.

    if layer.is_attention:        # nobody knows, so both ways are followed
        h = layer(h, kv_cache)    # where `if self.is_attention:` has the answer of this way

What differs between the two ways is kept with the condition (`Union.guard`), so that a later branch on the same
condition finds the value of its own way again: the constructor of a layer makes one of two mixers, `forward` calls it.

An element of a list of unknown length stands for all of them. Conditions are answered for one element at a time: a
loop of unknown length starts without assumptions, and where two elements may be in play at once (`layers[i]` beside
`layers[j]`, or a loop over elements inside another) nothing is assumed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from auditor.joins import guarded, union
from auditor.operators import compare, truth
from auditor.rounds import elements
from auditor.values import Const, Seq, Union, Unknown, Value, as_dim

_MOST = 32
_NESTED = 3

Constant = tuple[Any, ...]

_FORGOTTEN: tuple[Value, Constant, bool] = (Unknown("an answer that holds no longer"), (), False)


class Assumptions:
    """The conditions that have an answer in the current world, the last first; `cut` forgets those of a closed scope.

    `ways` are those in which elements of lists of unknown length were reached: by a loop, by a number. `mixed` is set
    when there are two, which may have led to two elements; `reached` has what was found by a number.
    """

    __slots__ = ("made", "mixed", "outer", "reached", "ways")

    def __init__(self, outer: Assumptions | None = None) -> None:
        self.made: list[tuple[Value, Constant, bool]] = [] if outer is None else list(outer.made)
        self.outer = outer
        self.reached: list[Value] = []
        self.ways: set[Any] = set(outer.ways) if outer is not None else set()
        self.mixed: bool = outer is not None and outer.mixed

    def inside(self, items: Sequence[Value]) -> Assumptions:
        """Those of a round of a loop of unknown length over `items`."""
        inner = Assumptions(self)
        for item in items:
            found = len(list(elements([item])))
            if found > 1:
                inner.mix()  # elements of two lists side by side
            if found:
                inner.hand_out((), inner)
                inner.made.clear()
        numbers = [n for i in items if isinstance(i, Seq) for n in i.items if not list(elements([n]))]
        inner.ways |= {way_to(n) for n in numbers} if inner.ways else set()  # the number that goes with the element
        return inner

    def hand_out(self, found: Iterable[Value], way: Any) -> None:
        """Elements of a list of unknown length are reached in this way."""
        if self.ways and way not in self.ways:
            self.mix()
        self.ways.add(way)
        self.reached += found

    def mix(self) -> None:
        """There may be two elements in play: which of them a condition is about cannot be told."""
        self.mixed = True
        self._blank()

    def assume(self, test: Value, answer: bool) -> None:
        """`test` is true, or false, for the rest of the scope."""
        if isinstance(test, (Unknown, Union)) and not self.mixed:
            subject, constant, wanted = _question(test)
            self._assume(subject, constant, answer is wanted)

    def _assume(self, subject: Value, constant: Constant, answer: bool) -> None:
        """Take an answer, and what follows from it: the way of an earlier branch that contradicts it was not taken."""
        if len(self.made) >= _MOST:
            return
        self.made.append((subject, constant, answer))
        if not isinstance(subject, Union) or subject.guard is None:
            return
        test, when, otherwise = subject.guard
        taken = self.answer(test)
        if taken is None and _holds(when, constant) is (not answer):
            taken = False
        elif taken is None and _holds(otherwise, constant) is (not answer):
            taken = True
        if taken is not None:
            self.assume(test, taken)
            self._assume(when if taken else otherwise, constant, answer)

    def cut(self, length: int) -> None:
        del self.made[length:]

    def forget(self) -> None:
        """Code that nobody can read may have changed what was asked."""
        scope: Assumptions | None = self
        while scope is not None:
            scope._blank()
            scope = scope.outer

    def _blank(self) -> None:
        """Forget the answers and keep their number: open scopes will `cut` at the length that they began with."""
        self.made[:] = [_FORGOTTEN] * len(self.made)

    def answer(self, test: Value) -> bool | None:
        """What the world says of a condition; None when it says nothing."""
        if not self.made or not isinstance(test, (Unknown, Union)):
            return None
        subject, constant, wanted = _question(test)
        for known, other, answer in reversed(self.made):
            if known is subject:
                if constant == other:
                    return answer is wanted
                if answer and constant and other:  # it equals one constant only
                    return not wanted
        return None

    def chosen(self, value: Value, depth: int = _NESTED) -> Value:
        """The value on the way that the world has taken, where it is one of two; also behind a branch that is open."""
        if not isinstance(value, Union) or value.guard is None:
            return value
        test, when, otherwise = value.guard
        answer = self.answer(test)
        if answer is not None:
            return self.chosen(when if answer else otherwise, depth)
        if not depth:
            return value
        a, b = self.chosen(when, depth - 1), self.chosen(otherwise, depth - 1)
        return value if a is when and b is otherwise else guarded(union([a, b]), test, a, b)


def _question(test: Value) -> tuple[Value, Constant, bool]:
    """What a condition asks: of which value, whether it equals which constant (empty: its truth), and if or if not."""
    wanted = True
    while isinstance(test, (Unknown, Union)) and test.test is not None:
        op, subject, constant = test.test
        if op != "not":
            return subject, (type(constant), constant), wanted is (op == "==")
        test, wanted = subject, not wanted
    return test, (), wanted


def _holds(value: Value, constant: Constant) -> bool | None:
    """Whether a value equals the constant, or is true when there is none."""
    return truth(compare("==", value, Const(constant[1])) if constant else value)


def way_to(key: Value) -> Any:
    """How an item is reached by a key that is not known: the same number is the same way."""
    found = as_dim(key)
    return found if found is not None else key if isinstance(key, (Unknown, Union)) else object()
