"""A scan in several processes: this one and its helpers take the runs of one script after the other from one queue.

Helpers are started like any other program (`python -P`, see `auditor.job`), and neither forked nor spawned by
`multiprocessing`. A fork would save them the imports and what was read so far, half a second; but a scan has threads
(its own, for the sake of the stack), of which a fork leaves the locks behind, and on macOS a fork without an exec is
not safe at all. `multiprocessing` would import the main module of whoever uses this once more, look it up on a path of
its own, and talk in pickles. Here nothing but `-P`, the folder of this package and lines of JSON goes over.

This process works too, so that `--jobs 2` is two processes. A helper is given its next script when it has answered, the
longest scripts first: none waits long for another at the end. A helper that dies is a result: its script is tried once
more, in a new process, when all others are done; if that one dies as well, the script is an error.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Sequence

from auditor.examine import Examiner
from auditor.helper import Died, Helper
from auditor.request import ScanRequest
from auditor.runs import Group, Outcome, Run, grouped
from auditor.sources import Unreadable


class Jobs:
    """The runs of one scan, shared among at most `request.jobs` processes. As a context: when it is left, all are dead.

    `examine` runs in one thread, and one more follows each helper; what they share is touched with the lock held.
    """

    def __init__(self, request: ScanRequest) -> None:
        self.request = request
        self._lock = threading.Lock()
        self._helpers: list[Helper] = []
        self._closed = False
        self._runs: Sequence[Run] = ()
        self._left: deque[Group] = deque()
        self._lost: list[Group] = []
        self._outcomes: dict[int, Outcome] = {}
        self._shown = 0
        self._failure: BaseException | None = None

    def __enter__(self) -> Jobs:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._closed = True
            helpers = list(self._helpers)
        for helper in helpers:
            helper.end()

    def examine(self, examiner: Examiner, runs: Sequence[Run]) -> list[Outcome]:
        """What each run comes to, in the order of `runs`."""
        groups = grouped(runs)
        self._runs = runs
        more = min(self.request.jobs, len(groups)) - 1 if sys.executable else 0
        if more:
            groups.sort(key=lambda group: self._length(examiner, group), reverse=True)
        self._left = deque(groups)
        threads = [threading.Thread(target=self._follow, daemon=True) for _ in range(more)]
        for thread in threads:
            thread.start()
        self._work(examiner)
        for thread in threads:
            thread.join()
        if self._failure is not None:
            raise self._failure
        for group in sorted(self._lost):
            self._keep(group, self._once_more(examiner, group))
        return [self._outcomes[number] for number in range(len(runs))]

    def _length(self, examiner: Examiner, group: Group) -> int:
        """How long a group may take, in no unit: the length of its script, for each run. Commands come first."""
        first = self._runs[group[0]]
        if first.command:
            return sys.maxsize
        try:
            return len(group) * len(examiner.sources.read(first.script).text)
        except Unreadable:
            return 0

    # -- who works ------------------------------------------------------------------------------------------------

    def _work(self, examiner: Examiner) -> None:
        """This process: it takes what is left, until nothing is. A helper that has nothing to do then is not needed."""
        while group := self._take():
            self._keep(group, examiner.group(self._of(group), self._show))
        with self._lock:
            idle = [helper for helper in self._helpers if not helper.busy]
        for helper in idle:
            helper.end()

    def _follow(self) -> None:
        """A helper, until nothing is left for it or it dies."""
        try:
            with self._start() as helper:
                helper.ready()
                while group := self._take(helper):
                    try:
                        outcomes = self._examined(helper, group)
                    except Died:
                        with self._lock:
                            self._lost.append(group)
                        return
                    self._show(self._runs[group[0]], len(group))
                    self._keep(group, outcomes)
        except (OSError, Died):
            return  # whatever keeps a helper from beginning: the others do its part
        except BaseException as error:
            self._failure = error

    def _start(self) -> Helper:
        with self._lock:
            if self._closed:
                raise Died("is not needed any more")
            helper = Helper(self.request)
            self._helpers.append(helper)
        return helper

    def _examined(self, helper: Helper, group: Group) -> list[Outcome]:
        outcomes, seen = helper.examine(self._of(group))
        with self._lock:
            self.request.seen.add(seen)
        return outcomes

    def _once_more(self, examiner: Examiner, group: Group) -> list[Outcome]:
        """The outcomes of runs at which a helper died, by a new one; it may well be they that killed it."""
        try:
            with self._start() as helper:
                helper.ready()
                return self._examined(helper, group)
        except (OSError, Died) as error:
            self.request.seen.spoil()
            reason = (
                f"the process that evaluated this file {error}, twice; --jobs 1 evaluates it in one with all others"
            )
            return [examiner.failed(run, reason) for run in self._of(group)]

    # -- what is shared -------------------------------------------------------------------------------------------

    def _take(self, helper: Helper | None = None) -> Group:
        """The next group; an empty one when nothing is left."""
        with self._lock:
            group = self._left.popleft() if self._left else ()
            if helper is not None:
                helper.busy = bool(group)
        return group

    def _of(self, group: Group) -> list[Run]:
        return [self._runs[number] for number in group]

    def _keep(self, group: Group, outcomes: Sequence[Outcome]) -> None:
        with self._lock:
            self._outcomes |= zip(group, outcomes, strict=True)

    def _show(self, run: Run, count: int = 1) -> None:
        with self._lock:
            done, self._shown = self._shown, self._shown + count
            if self.request.progress is not None and not self._closed:
                self.request.progress(done, len(self._runs), run.script or run.recipe)
