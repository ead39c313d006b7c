"""Where a project says that its packages are: `package-dir` of setuptools, in `pyproject.toml` or `setup.cfg`."""

from __future__ import annotations

import configparser
import tomllib
from collections.abc import Iterator

from auditor.trees import Tree, Unreadable, is_file, normal


def package_folders(tree: Tree) -> dict[str, str]:
    """Packages by their dotted names, with the folders of `tree` that they are in; what stands elsewhere is left out.

    The packages of the top (`"" = "src"`) are found without being told. A file that cannot be read declares nothing.
    """
    found: dict[str, str] = {}
    for path, read in (("setup.cfg", _setup_cfg), ("pyproject.toml", _pyproject)):
        if is_file(tree, path):
            try:
                declared = dict(read(tree.read(path).decode("utf-8")))
            except (Unreadable, UnicodeDecodeError, ValueError, RecursionError, configparser.Error):
                continue
            inside = {name: folder for name, folder in declared.items() if _is_inside(name, folder)}
            found |= {name: normal(folder) for name, folder in inside.items()}
    return found


def _is_inside(name: str, folder: str) -> bool:
    return all(map(str.isidentifier, name.split("."))) and not normal(folder).startswith(("/", ".."))


def _pyproject(text: str) -> Iterator[tuple[str, str]]:
    table: object = tomllib.loads(text)
    for key in ("tool", "setuptools", "package-dir"):
        table = table.get(key) if isinstance(table, dict) else None
    for name, folder in table.items() if isinstance(table, dict) else ():
        if isinstance(folder, str):
            yield name, folder


def _setup_cfg(text: str) -> Iterator[tuple[str, str]]:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(text)
    for line in parser.get("options", "package_dir", fallback="").replace(",", "\n").splitlines():
        name, equals, folder = line.partition("=")
        if equals:
            yield name.strip(), folder.strip()
