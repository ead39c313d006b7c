"""placeholder"""
from __future__ import annotations
import sys
from typing import Any
from probes.backend import Inspection, OpenOptions, Session, BackendError
from dataclasses import replace
class CoreML:
    def __init__(self) -> None:
        self.scope = "device" if sys.platform == "darwin" else "program"
    def inspect(self, path: str) -> Inspection:
        from probes.coreml.inspection import inspect
        return replace(inspect(path), not_executable="Core ML runs on macOS only; --backend reference evaluates the program here")
    def open(self, path: str, graph: str, options: OpenOptions) -> Session:
        raise BackendError("x")
    def environment(self) -> dict[str, Any]:
        return {}
    def close(self) -> None: ...
