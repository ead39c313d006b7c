"""The journal of the mutable values: what a branch changed can be undone, kept or joined with another branch.

A frame maps an object to its content when the frame was opened. Objects register themselves before every change
(`touch`), so that a fork costs what its branches change and no more. What was made inside a frame is not journaled
there: no other world can reach it. That holds for runs, too: what was made before one began, or is kept from it for the
runs that follow (`share`), is as it was when it ends.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from auditor.values import Env, serial


class Mutable(Protocol):
    """What changes while a run lasts. `born` is the serial number of its making."""

    born: int

    def snapshot(self) -> Any:
        """A copy of the content that later changes leave alone."""
        ...

    def restore(self, content: Any) -> None:
        """Take over a content that `snapshot` gave."""
        ...


SHARED = -1
"""The serial number of what every run may reach, whenever it was made."""

Contents = dict[int, tuple[Mutable, Any]]
"""Objects by their `id`, each with a content."""


def current(contents: Contents) -> Contents:
    """The same objects with what they hold now."""
    return {key: (obj, obj.snapshot()) for key, (obj, _) in contents.items()}


class Journal(Contents):
    """One frame, with the serial number of its opening."""

    def __init__(self) -> None:
        super().__init__()
        self.opened = serial()


@dataclass(slots=True)
class Pending:
    """A way out of a scope (return, break, continue) taken by some worlds while the others went on."""

    signal: Any
    contents: Contents


@dataclass(slots=True)
class Heap:
    """The journal of a run, from `begin` to `end`.

    `shared` has, in order, the serial numbers between which something was made that other runs will use as well,
    `until` the last of them. `changed` is set when the run has changed such an object, the names of modules aside.
    """

    frames: list[Journal] = field(default_factory=list)
    pending: list[Pending] = field(default_factory=list)
    root: Journal = field(default_factory=Journal)
    shared: list[tuple[int, int]] = field(default_factory=list)
    until: int = 0
    changed: bool = False

    def touch(self, obj: Mutable) -> None:
        """Call before changing `obj`."""
        if self.frames:
            frame = self.frames[-1]
            born = obj.born
            if (born < frame.opened or (born < self.until and self._is_shared(born))) and id(obj) not in frame:
                frame[id(obj)] = (obj, obj.snapshot())
                if not self.changed and (born < self.root.opened or (born < self.until and self._is_shared(born))):
                    self.changed = not (isinstance(obj, Env) and obj.module is not None)

    def _is_shared(self, born: int) -> bool:
        found = bisect_right(self.shared, (born, born)) - 1
        return found >= 0 and born < self.shared[found][1]

    def begin(self) -> None:
        """A run begins."""
        self.root = Journal()
        self.frames.append(self.root)

    def end(self) -> None:
        """Undo the run."""
        self.pending.clear()
        while self.frames:
            self.undo(self.frames.pop())

    def pristine(self) -> Contents:
        """Make the shared objects what they were before the run, the names of modules aside. Gives what they are."""
        before = {
            key: (obj, content)
            for key, (obj, content) in self.before(0).items()
            if not (isinstance(obj, Env) and obj.module is not None)
            and (obj.born < self.root.opened or self._is_shared(obj.born))
        }
        now = current(before)
        self.undo(before)
        return now

    def share(self, low: int) -> None:
        """What was made since the serial number `low` is kept for other runs."""
        while self.shared and self.shared[-1][0] >= low:
            self.shared.pop()
        self.until = serial()
        self.shared.append((low, self.until))

    def keep(self, frame: Journal, entries: Contents) -> None:
        """Let a frame take over what an inner one has journaled, but for objects made inside of it."""
        for key, entry in entries.items():
            born = entry[0].born
            if born < frame.opened or (born < self.until and self._is_shared(born)):
                frame.setdefault(key, entry)

    def open(self) -> None:
        """Open a frame."""
        self.frames.append(Journal())

    def since(self, depth: int) -> Contents:
        """The current content of every object that was changed since the frame at `depth` was opened."""
        return current(self.before(depth))

    def before(self, depth: int) -> Contents:
        """The content, when the frame at `depth` was opened, of every object that was changed since."""
        found: Contents = {}
        for frame in reversed(self.frames[depth:]):
            found.update(frame)
        return found

    def close(self, depth: int) -> None:
        """End the frame at `depth`, which the frame before it takes over; those behind it stay."""
        frame = self.frames.pop(depth)
        if depth:
            self.keep(self.frames[depth - 1], frame)

    def undo(self, frame: Contents) -> None:
        """Give every object the content of a frame that is closed, which no other frame learns of."""
        for obj, content in frame.values():
            obj.restore(content)

    def apply(self, contents: Contents) -> None:
        """Give every object this content, as any change."""
        for obj, content in contents.values():
            self.touch(obj)
            obj.restore(content)

    def hold(self, signal: Any, contents: Contents) -> None:
        """Record worlds that left the scope with `contents`; the journal starts anew for those that go on."""
        self.pending.append(Pending(signal, contents))
        self.open()

    def release(self, mark: int) -> list[tuple[Any, Contents]]:
        """End the scope that began when `len(pending)` was `mark`.

        Gives the worlds that left early and, last, the one that is current (signal None), each with the content of
        every object that differs between them. The frames that `hold` opened are closed.
        """
        held = self.pending[mark:]
        del self.pending[mark:]
        if not held:
            return [(None, {})]
        out: list[tuple[Any, Contents]] = []
        later: Contents = {}
        for p in reversed(held):
            frame = self.frames.pop()
            later = {**later, **frame}
            out.append((p.signal, {**later, **p.contents}))
        out.reverse()
        now = current({key: entry for _, contents in out for key, entry in contents.items()})
        full = [(signal, {**now, **contents}) for signal, contents in out]
        if self.frames:
            self.keep(self.frames[-1], {**now, **later})
        full.append((None, now))
        return full

    def join(self, alternatives: Iterable[Contents], combine: Callable[[Mutable, list[Any]], Any]) -> None:
        """Set every object to the join of its contents in the alternatives."""
        worlds = list(alternatives)
        objects = {key: obj for w in worlds for key, (obj, _) in w.items()}
        for key, obj in objects.items():
            self.touch(obj)
            contents = [w[key][1] if key in w else obj.snapshot() for w in worlds]
            obj.restore(combine(obj, contents))
