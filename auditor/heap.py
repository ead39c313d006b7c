"""The journal of the mutable values: what a branch changed can be undone, kept or joined with another branch.

A frame maps an object to its content when the frame was opened. Objects register themselves before every change
(`touch`), so that a fork costs what its branches change and no more. What was made inside a frame is not journaled
there: no other world can reach it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from auditor.values import serial


class Mutable(Protocol):
    born: int

    def snapshot(self) -> Any: ...

    def restore(self, content: Any) -> None: ...


Contents = dict[int, tuple[Mutable, Any]]


class Journal(Contents):
    """One frame, with the serial number of its opening."""

    def __init__(self) -> None:
        super().__init__()
        self.opened = serial()

    def keep(self, entries: Contents) -> None:
        """Take over what an inner frame has journaled, but for objects made inside this frame."""
        for key, entry in entries.items():
            if entry[0].born < self.opened:
                self.setdefault(key, entry)


@dataclass(slots=True)
class Pending:
    """A way out of a scope (return, break, continue) taken by some worlds while the others went on."""

    signal: Any
    contents: Contents


@dataclass(slots=True)
class Heap:
    frames: list[Journal] = field(default_factory=list)
    pending: list[Pending] = field(default_factory=list)

    def touch(self, obj: Mutable) -> None:
        """Call before changing `obj`."""
        if self.frames:
            frame = self.frames[-1]
            if id(obj) not in frame and obj.born < frame.opened:
                frame[id(obj)] = (obj, obj.snapshot())

    def open(self) -> None:
        self.frames.append(Journal())

    def since(self, depth: int) -> Contents:
        """The current content of every object that was changed since the frame at `depth` was opened."""
        return {key: (obj, obj.snapshot()) for f in self.frames[depth:] for key, (obj, _) in f.items()}

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
            self.frames[depth - 1].keep(frame)

    def undo(self, frame: Contents) -> None:
        for obj, content in frame.values():
            obj.restore(content)

    def apply(self, contents: Contents) -> None:
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
        objects = {key: obj for _, contents in out for key, (obj, _) in contents.items()}
        now: Contents = {key: (obj, obj.snapshot()) for key, obj in objects.items()}
        full = [(signal, {**now, **contents}) for signal, contents in out]
        if self.frames:
            self.frames[-1].keep({**now, **later})
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
