"""The values that the evaluator computes with: concrete where the script is concrete, abstract elsewhere.

Every value keeps the `places` that made it and the command-line `flags` it depends on. Containers, instances and
environments are mutable and journaled by `auditor.heap`; everything else is immutable.
"""

from __future__ import annotations

from auditor.values.base import NO_FLAGS, Test, Value, altered, merge_flags, merge_places, origins, serial
from auditor.values.containers import Key, Mapping, Seq, Star, each_once
from auditor.values.objects import (
    Args,
    Bound,
    Class,
    Env,
    External,
    ExternalObject,
    Function,
    Instance,
    Met,
    Method,
    Module,
    Native,
    NativeClass,
    Super,
)
from auditor.values.reading import as_data, as_dim, key_of, number, text_of
from auditor.values.scalars import FALSE, NONE, TRUE, Const, Num, Pattern, is_given, is_none
from auditor.values.tensor import Pick, Put, Region, Storage, Tensor
from auditor.values.unknown import MAX_OPTIONS, Union, Unknown

__all__ = [
    "FALSE",
    "MAX_OPTIONS",
    "NONE",
    "NO_FLAGS",
    "TRUE",
    "Args",
    "Bound",
    "Class",
    "Const",
    "Env",
    "External",
    "ExternalObject",
    "Function",
    "Instance",
    "Key",
    "Mapping",
    "Met",
    "Method",
    "Module",
    "Native",
    "NativeClass",
    "Num",
    "Pattern",
    "Pick",
    "Put",
    "Region",
    "Seq",
    "Star",
    "Storage",
    "Super",
    "Tensor",
    "Test",
    "Union",
    "Unknown",
    "Value",
    "altered",
    "as_data",
    "as_dim",
    "each_once",
    "is_given",
    "is_none",
    "key_of",
    "merge_flags",
    "merge_places",
    "number",
    "origins",
    "serial",
    "text_of",
]
