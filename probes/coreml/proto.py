"""coremltools' generated protobuf classes without coremltools.

Importing the package costs seconds on some systems, prints warnings, and brings numpy. The classes need none of it, so
they are imported below a stand-in for the parent package, which is gone afterwards: whoever imports coremltools then
gets the real one.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
import types
from functools import cache
from typing import Any

from probes.backend import BackendError

INSTALL = "pip install 'coremltools>=9.0,<10'"
_LOCK = threading.Lock()


@cache
def model_class() -> Any:
    """The class of `CoreML.Specification.Model`; `BackendError` with an install line where coremltools is missing."""
    with _LOCK:
        if "coremltools" in sys.modules:
            return importlib.import_module("coremltools.proto.Model_pb2").Model
        spec = importlib.util.find_spec("coremltools")
        if spec is None or not spec.submodule_search_locations:
            raise BackendError(f"coremltools is not installed; {INSTALL}")
        stand_in = types.ModuleType("coremltools")
        stand_in.__path__ = list(spec.submodule_search_locations)
        sys.modules["coremltools"] = stand_in
        try:
            return importlib.import_module("coremltools.proto.Model_pb2").Model
        except ImportError as error:
            raise BackendError(f"coremltools has no protobuf classes that can be used ({error}); {INSTALL}") from None
        finally:
            for name in [name for name in sys.modules if name == "coremltools" or name.startswith("coremltools.")]:
                del sys.modules[name]
