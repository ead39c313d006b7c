"""The console scripts that a project or an installed distribution declares: command name to (module, attribute)."""

from __future__ import annotations

import configparser
import tomllib
from collections.abc import Callable, Mapping
from typing import Any

from auditor.trees import Tree, Unreadable, is_file

Scripts = dict[str, tuple[str, str]]


def console_scripts(tree: Tree, installed: bool = True) -> Scripts:
    """What `tree` declares at its top: `setup.cfg`, `pyproject.toml`, and with `installed` each `*.dist-info`.

    A file that cannot be read or parsed declares nothing.
    """
    found: Scripts = {}
    if installed:
        for folder in sorted(tree.listing("").folders):
            if folder.endswith((".dist-info", ".egg-info")):
                found |= _read(tree, f"{folder}/entry_points.txt", _entry_points)
    found |= _read(tree, "setup.cfg", _setup_cfg)
    found |= _read(tree, "pyproject.toml", _pyproject)
    return found


def _read(tree: Tree, path: str, parse: Callable[[str], Mapping[str, str]]) -> Scripts:
    if not is_file(tree, path):
        return {}
    try:
        declared = parse(tree.read(path).decode("utf-8"))
    except (Unreadable, UnicodeDecodeError, ValueError, RecursionError, configparser.Error):
        return {}
    return {name: target for name, value in declared.items() if (target := _target(value)) is not None}


def _target(value: str) -> tuple[str, str] | None:
    """`module:attribute [extra]`, as the entry-points specification has it."""
    module, colon, attribute = value.split("[")[0].partition(":")
    module, attribute = module.strip(), attribute.strip()
    return (module, attribute) if module and colon and attribute else None


def _pyproject(text: str) -> Mapping[str, str]:
    data = tomllib.loads(text)
    project = _table(_table(data, "project"), "scripts")
    poetry = _table(_table(_table(data, "tool"), "poetry"), "scripts")
    declared: dict[str, str] = {}
    for name, value in {**poetry, **project}.items():
        # Poetry also writes {reference = "module:attribute", type = "console"}.
        target = value.get("reference", value.get("callable")) if isinstance(value, dict) else value
        if isinstance(target, str):
            declared[name] = target
    return declared


def _table(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = data.get(key)
    return found if isinstance(found, dict) else {}


def _entry_points(text: str) -> Mapping[str, str]:
    parser = configparser.ConfigParser(delimiters=("=",), interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(text)
    return dict(parser["console_scripts"]) if parser.has_section("console_scripts") else {}


def _setup_cfg(text: str) -> Mapping[str, str]:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.read_string(text)
    lines = parser.get("options.entry_points", "console_scripts", fallback="").splitlines()
    pairs = [line.partition("=") for line in lines]
    return {name.strip(): value.strip() for name, equals, value in pairs if equals and name.strip()}
