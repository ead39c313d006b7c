"""The difference of two scans for a terminal or, as a list, for a comment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reports.markdown import code, text
from reports.wording import plain, plural

_TITLES = {
    "lost": "lost eligibility",
    "became": "became eligible",
    "verdict": "another verdict",
    "facts": "the same verdict, other facts",
    "appeared": "new, not eligible",
    "gone": "gone, was not eligible",
}


def render(difference: Mapping[str, Any]) -> str:
    """Plain text; every line is safe to print."""
    return "\n".join(plain(line) for line in _lines(difference)) + "\n"


def _lines(difference: Mapping[str, Any]) -> Iterator[str]:
    yield summary(difference)
    last = ""
    for model in difference["models"]:
        if model["change"] != last:
            yield ""
            yield _TITLES[model["change"]]
            last = model["change"]
        yield f"  {model['id']}: {model['old'] or 'not there'} -> {model['new'] or 'not there'}"
        for change in model["by"]:
            yield f"    {change['what']}: {change['old']} -> {change['new']}"
            for place in change["evidence"][-1:]:
                yield f"      {place['path']}:{place['line']}  {place.get('note', '')}".rstrip()


def summary(difference: Mapping[str, Any]) -> str:
    """One line: how many lost it, became so, and stayed."""
    return (
        f"{plural(difference['lost'], 'model')} lost eligibility, {difference['became']} became eligible, "
        f"{difference['unchanged']} unchanged"
    )


def markdown(difference: Mapping[str, Any]) -> str:
    """The same as Markdown."""
    return "\n\n".join(_blocks(difference)) + "\n"


def _blocks(difference: Mapping[str, Any]) -> Iterator[str]:
    yield f"**spec-audit:** {text(summary(difference))}"
    for key, title in _TITLES.items():
        models = [model for model in difference["models"] if model["change"] == key]
        if models:
            yield f"### {title.capitalize()}"
            yield "\n".join(line for model in models for line in _items(model))


def _items(model: Mapping[str, Any]) -> Iterator[str]:
    yield f"- {code(model['id'])}: {model['old'] or 'not there'} → {model['new'] or 'not there'}"
    for change in model["by"]:
        where = "".join(f" ({code(place['path'] + ':' + str(place['line']))})" for place in change["evidence"][-1:])
        yield f"    - {text(change['what'])}: {text(change['old'])} → {text(change['new'])}{where}"
