"""How the command ends and where its words go: exit statuses, crashes, closed pipes, progress."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import click

OK, SOMETHING, USAGE, NOTHING, CRASH, INTERRUPTED, CLOSED = 0, 1, 2, 3, 4, 130, 141
"""Nothing to report at the chosen level; something; usage; nothing to audit; a crash of our own; interrupted by the
user; the reader of the output went away. The last two are 128 plus the signal, as shells count."""

DEBUG = "SPEC_AUDIT_DEBUG"
_WIDTH = 78


def guarded(run: Callable[[], int]) -> int:
    """Run a command; whatever happens becomes an exit status and at most a few lines."""
    try:
        status = run()
        if sys.stdout is not None:
            sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        clear_progress()
        say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return CLOSED
    except Exception as error:
        clear_progress()
        _crashed(error)
        return CRASH


def _drop_output() -> None:
    """What could not be written is dropped: the interpreter flushes standard output once more at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _crashed(error: Exception) -> None:
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(last.filename).parent.name}/{Path(last.filename).name}:{last.lineno}"
    what = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    say(f"internal error, not your fault: {what} ({where})")
    if os.environ.get(DEBUG):
        traceback.print_exception(error)
    else:
        say(f"please report it with the command line and what it prints when {DEBUG}=1 is set")


def say(line: str) -> None:
    """A line for the person, on standard error."""
    if sys.stderr is not None:
        print(f"spec-audit: {line}".encode("utf-8", "backslashreplace").decode(), file=sys.stderr, flush=True)


def write(text: str, destination: Path | None = None) -> None:
    """The report, as UTF-8, to a file (which is replaced whole or not at all) or to standard output."""
    data = text.encode("utf-8", "backslashreplace")
    if destination is None:
        if sys.stdout is None:
            raise BrokenPipeError
        try:
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            _drop_output()
            raise click.UsageError(f"cannot write to standard output: {error.strerror}") from None
        return
    try:
        _replace(destination, data)
    except OSError as error:
        raise click.UsageError(f"cannot write {str(destination)!r}: {error.strerror}") from None


def _replace(destination: Path, data: bytes) -> None:
    if destination.exists() and not destination.is_file():
        destination.write_bytes(data)  # a device or a named pipe
        return
    target = destination.resolve()
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        partial.write_bytes(data)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def colourful() -> bool:
    """Whether standard output is a terminal that wants colours (https://no-color.org)."""
    return (
        sys.stdout is not None
        and sys.stdout.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") != "dumb"
    )


def progress() -> Callable[[int, int, str], None] | None:
    """A line that counts, on a terminal; None elsewhere."""
    return _show_progress if _on_terminal() else None


def _on_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _show_progress(done: int, total: int, path: str) -> None:
    shown = "".join(char if char.isprintable() else "?" for char in path)
    line = f"{done}/{total} {shown}"
    sys.stderr.write(f"\r\x1b[K{line[:_WIDTH]}")
    sys.stderr.flush()


def clear_progress() -> None:
    if _on_terminal():
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
