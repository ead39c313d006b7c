"""The no-draft path against the runner that ships: a harness that only agrees with itself proves little."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from probes.ab.bands import rate
from probes.ab.loop import first_difference
from probes.ab.options import AbOptions

TOLERANCE = 0.015


def against_shipped(options: AbOptions, anchors: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Speed within 1.5%, and the same text as far as both go; None when nothing was given."""
    if not anchors or (options.shipped_tok_s is None and options.shipped_tokens is None):
        return None
    own = statistics.median(rate(one) for one in anchors)
    found: dict[str, Any] = {"tok_s": options.shipped_tok_s, "own_tok_s": own, "speed_agrees": None}
    if options.shipped_tok_s:
        off = own / options.shipped_tok_s - 1
        found |= {"difference": off, "speed_agrees": abs(off) <= TOLERANCE}
    if options.shipped_tokens is not None:
        tokens = anchors[0]["tokens"]
        common = min(len(tokens), len(options.shipped_tokens))
        apart = first_difference(tokens[:common], options.shipped_tokens[:common])
        found |= {"text_agrees": apart is None, "first_difference": apart, "compared": common}
    return found
