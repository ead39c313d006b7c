"""A process that helps with a scan. It is told what is audited, then the runs of one script after the other.

Lines of JSON come on standard input, and go to what was standard output. When standard input ends, so does the process:
there is nothing more to do, or its parent is gone.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
import traceback

from auditor.deep import deep, mostly_kept
from auditor.job_messages import READY, answer_line, read_request, read_runs
from auditor.request import ScanRequest
from auditor.scan import examiner_of


def main() -> None:
    """Serve one scan until standard input ends. A failure ends the process too, with a traceback."""
    try:
        _main()
    except BaseException:
        traceback.print_exc()
    sys.stderr.flush()
    os._exit(1)  # Python's own exit stumbles over the thread that listens


def _main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its helpers
    out = os.dup(1)
    os.dup2(2, 1)  # whatever prints is no answer
    request = read_request(sys.stdin.buffer.readline())
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(lines,), daemon=True).start()
    deep(lambda: _serve(request, lines, out))


def _listen(lines: queue.SimpleQueue[bytes]) -> None:
    for line in sys.stdin.buffer:
        lines.put(line)
    os._exit(0)


def _serve(request: ScanRequest, lines: queue.SimpleQueue[bytes], out: int) -> None:
    examiner = examiner_of(request)
    _write(out, READY)
    with mostly_kept():
        while True:
            outcomes = examiner.group(read_runs(lines.get()))
            _write(out, answer_line(outcomes, request.seen.taken()))


def _write(out: int, data: bytes) -> None:
    with open(out, "wb", closefd=False) as stream:
        stream.write(data)
