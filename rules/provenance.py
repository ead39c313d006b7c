"""Where a scan comes from: what has to be known to make it again."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Provenance:
    """`command` holds what decides the result (not where it is written, nor how); `configuration` the file that was
    read, relative to the root where it lies below it; `commit` that of the audited tree. Empty: none, or not known.

    `source_url` leads to a line on the repository's web view: `https://…/{commit}/{path}#L{line}`.
    """

    command: tuple[str, ...] = ()
    configuration: str = ""
    commit: str = ""
    source_url: str = ""


FIELDS = ("path", "line", "commit")
"""What a `source_url` may hold in braces."""


def checked_url(template: str) -> str:
    """`template`, or `ValueError` with what is wrong: it may come from a tree that is not trusted."""
    if not template.lower().startswith(("https://", "http://")):
        raise ValueError("write a URL that starts with https:// or http://")
    if "{path}" not in template:
        raise ValueError("write {path} where the path goes, and {line} where the line goes")
    rest = template
    for field in FIELDS:
        rest = rest.replace("{" + field + "}", "")
    if "{" in rest or "}" in rest or not template.isprintable() or " " in template:
        raise ValueError("only {path}, {line} and {commit} are filled in, and there are no spaces in a URL")
    return template
