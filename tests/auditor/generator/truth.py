"""What a recorded export is: its `forward` is run on the example, and its output asked at other lengths."""

from __future__ import annotations

from dataclasses import dataclass

from tests.auditor.generator.lengths import Lengths, Refused
from tests.auditor.generator.recorder import RECORDER, Recorded
from tests.auditor.generator.tensors import Tensor

VOCAB, HIDDEN = 128, 32
"""The sizes of every generated model; a width of the vocabulary is what tells logits from hidden states."""

_HYBRID = ("conv", "rec", "ssm")


@dataclass(frozen=True, slots=True)
class Truth:
    """The rules that the graph breaks; none when it is eligible."""

    broken: frozenset[str]

    @property
    def eligible(self) -> bool:
        return not self.broken


def truth(export: Recorded) -> Truth:
    """The rules that an export breaks, by running it."""
    broken = set()
    caches = [n for n in export.inputs if "cache" in n and not export.traced]
    if any(word in s.lower() for s in export.states for word in _HYBRID):
        broken.add("hybrid-state")
    if not export.states:
        broken.add("kv-as-io" if caches or any("cache" in n for n in export.inputs) else "not-a-decoder")
    example, axes = export.inputs["input_ids"]
    symbol = axes.get(1, "")
    if not symbol or symbol.startswith("enumerated"):
        width = 0 if symbol else export.fixed["input_ids"][1]
        broken.add("static-query" if width == 1 else "fixed-window")
    lengths = _example(export)
    outputs = _forward(export, lengths)
    logits = outputs[0]
    if logits.dtype.startswith("int") or logits.now[-1] != VOCAB:
        broken.add("no-logits")
    elif symbol and not symbol.startswith("enumerated"):
        broken |= _rows(logits, lengths, symbol)
    elif logits.now[1] != example.now[1]:
        broken.add("last-token-only")
    if any(wraps for _, wraps in RECORDER.writes):
        broken.add("ring-cache")
    return Truth(frozenset(broken))


def _rows(logits: Tensor, lengths: Lengths, symbol: str) -> set[str]:
    seen = set()
    for more in (0, 1, 3, 6):
        now = {n: v + more for n, v in lengths.items()}
        try:
            for check in RECORDER.checks:
                check(now)
            rows = logits.at(now)[1] if len(logits.at(now)) == 3 else 1
        except Refused:
            return {"baked-length"}
        if now[symbol] > 1 and rows == 1:
            seen.add("last-token-only")
        elif rows != now[symbol]:
            seen.add("baked-length")
    return seen


def _example(export: Recorded) -> Lengths:
    lengths: Lengths = {}
    for value, axes in export.inputs.values():
        for axis, symbol in axes.items():
            lengths[symbol] = value.now[axis]
    return lengths


def _forward(export: Recorded, lengths: Lengths) -> list[Tensor]:
    RECORDER.writes, RECORDER.checks, RECORDER.lengths = [], [], lengths
    given = {}
    for name, (value, axes) in export.inputs.items():
        shape = value.at({})
        given[name] = Tensor(_input(shape, axes), value.dtype, name)
    result = export.module(**given)
    found = (
        result if isinstance(result, (tuple, list)) else list(result.values()) if isinstance(result, dict) else [result]
    )
    for output in found:
        output.at(lengths)
    return list(found)


def _input(shape: tuple[int, ...], axes: dict[int, str]):  # type: ignore[no-untyped-def]
    return lambda e: tuple(e[axes[n]] if n in axes else d for n, d in enumerate(shape))
