"""Inspection of a `.mlpackage` or `.mlmodelc`, on any system and without a runtime."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from probes.backend import BackendError, Inspection
from probes.coreml import compiled, marks, spec, weights
from probes.coreml.package import SPEC_LIMIT, PackageError, locate, read_bytes
from probes.coreml.program import Model

ROOM, ROOM_PER_BYTE = 2**30, 4
"""Address space that reading a description may take: a hostile one asks for fifty times its own size."""
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
        if package.spec is None:
            with limited(ROOM + ROOM_PER_BYTE * size_of(package.mil)):
                model = compiled.read(package)
            weights.check(package.root, package.root, model.blobs)
            return model
        data = read_bytes(package.root, package.spec, SPEC_LIMIT)
        with limited(ROOM + ROOM_PER_BYTE * len(data)):
            model = spec.read(data, package.spec.name)
        if package.weights is not None:
            weights.check(package.root, package.spec.parent, model.blobs)
        return model
    except PackageError as error:
        raise BackendError(str(error)) from None
    except (MemoryError, RecursionError) as error:
        raise BackendError(f"{path.name}: its description needs more than it should ({type(error).__name__})") from None


def size_of(path: Path | None) -> int:
    """In bytes; 0 where there is no such file."""
    return path.stat().st_size if path else 0


@contextlib.contextmanager
def limited(room: int) -> Iterator[None]:
    """At most `room` bytes of address space more than now, where the system can limit it."""
    before = limit_memory(room)
    try:
        yield
    finally:
        if before is not None:
            import resource

            resource.setrlimit(resource.RLIMIT_AS, before)


def limit_memory(room: int) -> tuple[int, int] | None:
    """Limit this process to `room` bytes of address space more than now; the limits before, None where that fails."""
    try:
        import resource

        used = int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize()
        before = resource.getrlimit(resource.RLIMIT_AS)
        ceilings = [used + room, *(one for one in before if one != resource.RLIM_INFINITY)]
        resource.setrlimit(resource.RLIMIT_AS, (min(ceilings), before[1]))
    except (ImportError, OSError, ValueError, IndexError):
        return None
    return before
