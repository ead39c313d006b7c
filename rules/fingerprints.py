"""What a finding is recognised by in a later scan, when lines have moved and messages were reworded."""

from __future__ import annotations

import hashlib
from collections import Counter

from rules.fixes import Judged


def fingerprints(item: Judged) -> tuple[str, ...]:
    """One fingerprint for each of the graph's reasons and advice, in that order.

    It is made of the rule, the graph's identifier, the file that decides, and how many of the same stand before it. No
    line and no wording is in it: both change without the finding being another.
    """
    seen: Counter[tuple[str, str]] = Counter()
    made = []
    for finding in (*item.judgement.reasons, *item.judgement.advice):
        path = finding.primary.path if finding.primary else item.graph.script
        key = (finding.rule, path)
        text = "\0".join((finding.rule, item.graph.id, path, str(seen[key])))
        seen[key] += 1
        made.append(hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32])
    return tuple(made)
