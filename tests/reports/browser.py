"""A real browser for the tests of the page: Chromium as the system installs it, nothing downloaded by Playwright."""

from __future__ import annotations

import os
import shutil
from typing import NoReturn

import pytest

REQUIRED = "SPEC_AUDIT_REQUIRE_BROWSER"
"""When set, a missing browser is an error: a CI that skips these tests has not run them."""
SHOTS = "SPEC_AUDIT_SCREENSHOTS"
"""A folder for screenshots, if they are wanted."""
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def executable() -> str:
    """The browser's path; skips the test, or fails it, where there is none."""
    found = next((path for path in map(shutil.which, _NAMES) if path), None)
    if found:
        return found
    return missing(f"no browser: none of {', '.join(_NAMES)} is on the PATH (apt-get install chromium)")


def missing(message: str) -> NoReturn:
    """Skip, or fail where a browser is required."""
    if os.environ.get(REQUIRED):
        pytest.fail(message)
    pytest.skip(message)
