"""Replays recorded drafts: at the text length at which a draft was made, the same draft again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from probes.ab.drafters.drafter import Draft

_SIZE_LIMIT = 64 * 2**20


class Recorded:
    """`drafts` by the number of tokens that the text (prompt and output) had."""

    def __init__(self, drafts: Mapping[int, Sequence[int]]) -> None:
        self._drafts = {int(at): tuple(tokens) for at, tokens in drafts.items()}
        self._length = 0

    def remember(self, tokens: Sequence[int]) -> None:
        pass

    def extend(self, tokens: Sequence[int]) -> None:
        self._length += len(tokens)

    def draft(self, limit: int) -> Draft:
        tokens = self._drafts.get(self._length, ())[: max(limit, 0)]
        return Draft(tokens, len(tokens))


def read(path: Path) -> Recorded:
    """`{"drafts": {"<text length>": [token, ...]}}`. ValueError says what is wrong."""
    try:
        size = path.stat().st_size
        data = json.loads(path.read_text("utf-8")) if size <= _SIZE_LIMIT else None
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"{path}: not valid JSON ({error})") from None
    if size > _SIZE_LIMIT:
        raise ValueError(f"{path}: too large for recorded drafts")
    drafts = data.get("drafts") if isinstance(data, dict) else None
    if not isinstance(drafts, dict) or not all(_is_draft(at, tokens) for at, tokens in drafts.items()):
        raise ValueError(f'{path}: {{"drafts": {{"<text length>": [token, ...]}}}} was expected')
    return Recorded({int(at): tokens for at, tokens in drafts.items()})


def _is_draft(at: str, tokens: Any) -> bool:
    return at.isdecimal() and isinstance(tokens, list) and all(type(token) is int and token >= 0 for token in tokens)
