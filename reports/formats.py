"""The formats by name. Each is imported when it is asked for: only one of them needs Jinja."""

from __future__ import annotations

import importlib
from typing import cast

from reports.interface import Report

FORMATS = {
    "text": "reports.text:TextReport",
    "json": "reports.json_report:JsonReport",
    "html": "reports.html:HtmlReport",
    "markdown": "reports.markdown:MarkdownReport",
    "sarif": "reports.sarif:SarifReport",
    "junit": "reports.junit:JunitReport",
    "github": "reports.github:GithubReport",
}


def report(name: str) -> Report:
    """The format of that name; `KeyError` when there is none."""
    module, _, attribute = FORMATS[name].partition(":")
    return cast(Report, getattr(importlib.import_module(module), attribute)())
