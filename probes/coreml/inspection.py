"""Inspection of a `.mlpackage` or `.mlmodelc`, on any system and without a runtime."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from probes.backend import BackendError, Inspection
from probes.coreml import compiled, marks, spec
from probes.coreml.package import SPEC_LIMIT, PackageError, locate, read_bytes
from probes.coreml.program import Model

MEMORY = 4 * 2**30
"""Address space that reading a description may take: a hostile one of a few megabytes can ask for any amount."""
NOT_SEEN = "sliding windows and gathered experts are not looked for in an ML Program"


def inspect(path: str) -> Inspection:
    """Every function of the model at `path`; `BackendError` when it cannot be read."""
    model = read(Path(path))
    programs = {signature.name: marks.seen(signature, function) for signature, function in model}
    unseen = (*model.unseen, NOT_SEEN) if model.functions else model.unseen
    return Inspection(model.signatures, programs, unseen, about=model.about)


def read(path: Path) -> Model:
    """The model, whichever form it has."""
    try:
        package = locate(path)
        with limited(MEMORY):
            if package.spec is None:
                return compiled.read(package)
            return spec.read(read_bytes(package.root, package.spec, SPEC_LIMIT), package.spec.name)
    except PackageError as error:
        raise BackendError(str(error)) from None
    except (MemoryError, RecursionError) as error:
        raise BackendError(f"{path.name}: its description needs more than it should ({type(error).__name__})") from None


@contextlib.contextmanager
def limited(size: int) -> Iterator[None]:
    """At most `size` bytes of address space in all, where the system can limit it."""
    try:
        import resource

        before = resource.getrlimit(resource.RLIMIT_AS)
        hard = before[1]
        resource.setrlimit(resource.RLIMIT_AS, (size if hard == resource.RLIM_INFINITY else min(size, hard), hard))
    except (ImportError, OSError, ValueError):
        yield
        return
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def limited_for_good(room: int) -> None:
    """At most `room` bytes of address space more than now, for the rest of this process, where that can be limited."""
    with contextlib.suppress(ImportError, OSError, ValueError, IndexError):
        import resource

        used = int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize()
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        wanted = used + room
        resource.setrlimit(resource.RLIMIT_AS, (wanted if hard < 0 else min(wanted, hard), hard))
