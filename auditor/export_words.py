"""What the text of a script says of exports, before anything of it is evaluated."""

from __future__ import annotations

import re

from auditor.frameworks.tables import tables

_NO_MODEL = re.compile(
    r"convert_(?:tokens|ids)_to_\w+"
    r"""|\.convert\(\s*(["'])(?:1|L|P|LA|PA|RGB|RGBA|RGBX|CMYK|YCbCr|LAB|HSV|I|F)\1"""
    r"|^[ \t]*#.*$",
    re.MULTILINE,
)
"""Methods of tokenizers and of images, and comments: they convert no model."""


_MAKES = re.compile(
    r"^(?![ \t]*(?:#|def |async def |class )).*"
    r"(?:\b\w*(?:convert|export|lower|core_?ai|core_?ml|bundle|package)\w*\(|\.convert\b)",
    re.MULTILINE | re.IGNORECASE,
)
"""A call, or the naming, of something that makes a model of another kind, by its name."""


def has_words(text: str) -> bool:
    """Whether a file has a word of an export framework."""
    return any(word in text for word in tables().words)


def may_export(text: str) -> bool:
    """Whether a file has a word of a call that exports: many that name a framework only open what it made."""
    text = _NO_MODEL.sub("", text)
    return any(
        any(word in text for word in words) and any(call in text for call in calls) for words, calls in tables().calls
    )


def makes_models(text: str) -> bool:
    """Whether a file names something that may convert a model: many parts of a framework only speak of it."""
    return _MAKES.search(_NO_MODEL.sub("", text)) is not None


def conversions(text: str) -> int:
    """How many calls to convert a file has, by the lines that name one and define none."""
    call = tables().converts
    return sum(1 for line in text.splitlines() if call.search(line) and not line.lstrip().startswith(("def ", "#")))
