"""The configuration of an audited repository: `[tool.spec-audit]` of its pyproject.toml, or its spec-audit.toml.

Keys are the options of `scan` by their long names, and a few that have no option. The file belongs to the audited tree,
which is not trusted: nothing in it can name a place to write to outside that tree.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any

from auditor.recipes import KEYS, RecipeSettings
from auditor.waivers import problem
from rules.expect import Expectation, FailOn
from rules.provenance import checked_url
from rules.verdict import Verdict
from rules.waivers import Waiver

PYPROJECT = "pyproject.toml"
OWN = "spec-audit.toml"
_LARGEST = 1_000_000


class ConfigError(Exception):
    """A configuration that cannot be used: the file, what is wrong, and what to write instead."""


@dataclass(frozen=True, slots=True)
class Config:
    """What a configuration says; None and empty where it says nothing. Paths are absolute."""

    source: Path | None = None
    libraries: tuple[Path, ...] = ()
    recipes: str | None = None
    recipe_keys: Mapping[str, str] = field(default_factory=dict)
    script_root: str | None = None
    checkpoints: Path | None = None
    format: str | None = None
    output: Path | None = None
    fail_on: FailOn | None = None
    jobs: int | None = None
    no_cache: bool | None = None
    expect: tuple[Expectation, ...] = ()
    source_url: str = ""
    waivers: tuple[Waiver, ...] = ()
    baseline: Path | None = None

    def recipe_settings(self, glob: str | None) -> RecipeSettings:
        """The settings of recipes; `glob` from the command line wins."""
        chosen = glob or self.recipes
        settings = RecipeSettings(script_root=self.script_root or "", keys=dict(self.recipe_keys))
        return RecipeSettings(chosen, settings.script_root, settings.keys) if chosen else settings


def load(root: Path, formats: Collection[str]) -> Config:
    """The configuration of `root`; empty when it has none, `ConfigError` when it has two.

    `formats` are the names that the key `format` may hold.
    """
    pyproject, own = root / PYPROJECT, root / OWN
    section = _section(pyproject) if pyproject.is_file() else None
    if own.is_file():
        if section is not None:
            raise ConfigError(f"two configurations: [tool.spec-audit] in {pyproject} and {own}; keep one of them")
        return parse(_read(own), own, formats)
    return parse(section, pyproject, formats) if section is not None else Config()


def load_file(path: Path, formats: Collection[str]) -> Config:
    """The configuration in a file that the user named: pyproject.toml by its section, any other file as a whole."""
    if not path.is_file():
        raise ConfigError(f"no such configuration file: {path}")
    if path.name != PYPROJECT:
        return parse(_read(path), path, formats)
    section = _section(path)
    if section is None:
        raise ConfigError(f"{path} has no [tool.spec-audit]")
    return parse(section, path, formats)


def parse(table: Mapping[str, Any], source: Path, formats: Collection[str]) -> Config:
    """The configuration in a table read from `source`."""
    read: dict[str, Any] = {}
    for key, value in table.items():
        if key not in _READERS:
            close = difflib.get_close_matches(key, _READERS, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else f"; the keys are {', '.join(_READERS)}"
            raise ConfigError(f"{source}: unknown key {key!r}{hint}")
        name, reader = _READERS[key]
        try:
            read[name] = reader(value, source.parent)
        except ValueError as error:
            raise ConfigError(f"{source}: {key}: {error}") from None
    if "format" in read and read["format"] not in formats:
        raise ConfigError(f"{source}: format: write one of {', '.join(formats)}")
    return Config(source, **read)


def _section(path: Path) -> Mapping[str, Any] | None:
    tool = _read(path).get("tool", {})
    section = tool.get("spec-audit") if isinstance(tool, dict) else None
    if section is not None and not isinstance(section, dict):
        raise ConfigError(f"{path}: tool.spec-audit has to be a table")
    return section


def _read(path: Path) -> Mapping[str, Any]:
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise ConfigError(f"{path}: larger than {_LARGEST} bytes, which no configuration is")
        return tomllib.loads(data.decode("utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: not TOML ({error})") from None


def _text(value: Any, _: Path) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("write a text")
    return value


def _url(value: Any, folder: Path) -> str:
    return checked_url(_text(value, folder))


def _path(value: Any, folder: Path) -> Path:
    return folder / _text(value, folder)


def _paths(value: Any, folder: Path) -> tuple[Path, ...]:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list):
        raise ValueError("write a path, or a list of paths")
    return tuple(_path(item, folder) for item in items)


def _inside(value: Any, folder: Path) -> Path:
    path = _path(value, folder)
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ValueError("it has to lie below the configuration's folder; use --output for another place")
    return path


def _flag(value: Any, _: Path) -> bool:
    if not isinstance(value, bool):
        raise ValueError("write true or false")
    return value


def _count(value: Any, _: Path) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError("write a number of processes, 1 or more")
    return value


def _choice(options: tuple[str, ...]) -> Callable[[Any, Path], str]:
    def read(value: Any, _: Path) -> str:
        if not isinstance(value, str) or value not in options:
            raise ValueError(f"write one of {', '.join(options)}")
        return value

    return read


def _keys(value: Any, _: Path) -> Mapping[str, str]:
    if not isinstance(value, dict) or not all(isinstance(name, str) for name in value.values()):
        raise ValueError("write a table of names")
    for key in value:
        _choice(KEYS)(key, Path())
    return dict(value)


def _fail_on(value: Any, folder: Path) -> FailOn:
    return FailOn(_choice(tuple(FailOn))(value, folder))


def _expect(value: Any, folder: Path) -> tuple[Expectation, ...]:
    if not isinstance(value, dict):
        raise ValueError('write a table of verdicts, as in "models/x/recipe.toml#x" = "eligible"')
    return tuple(
        Expectation(model, Verdict(_choice(tuple(Verdict))(verdict, folder))) for model, verdict in value.items()
    )


_WAIVER = ("rule", "model", "reason", "expires")


def _waivers(value: Any, _: Path) -> tuple[Waiver, ...]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ValueError("write tables, each as [[waivers]] with rule, model, reason and perhaps expires")
    return tuple(_waiver(item, number) for number, item in enumerate(value, 1))


def _waiver(item: Mapping[str, Any], number: int) -> Waiver:
    strange = next((key for key in item if key not in _WAIVER), None)
    if strange is not None:
        raise ValueError(f"number {number}: unknown key {strange!r}; the keys are {', '.join(_WAIVER)}")
    rules = [item["rule"]] if isinstance(item.get("rule"), str) else item.get("rule")
    if not isinstance(rules, list) or not all(isinstance(rule, str) for rule in rules):
        raise ValueError(f"number {number}: rule: write the identifier of a rule, or a list of them")
    texts = {key: item.get(key) for key in ("model", "reason")}
    for key, text in texts.items():
        if not isinstance(text, str) or not text.strip():
            raise ValueError(f"number {number}: {key}: write a text")
    wrong = problem(rules, str(texts["reason"]))
    if wrong:
        raise ValueError(f"number {number}: {wrong}")
    expires = item.get("expires")
    if expires is not None and (not isinstance(expires, date) or isinstance(expires, datetime)):
        raise ValueError(f"number {number}: expires: write a date without quotes, as in 2027-01-31")
    return Waiver(tuple(rules), str(texts["reason"]).strip(), str(texts["model"]), expires)


_READERS: dict[str, tuple[str, Callable[[Any, Path], Any]]] = {
    "library": ("libraries", _paths),
    "recipes": ("recipes", _text),
    "recipe-keys": ("recipe_keys", _keys),
    "script-root": ("script_root", _text),
    "checkpoints": ("checkpoints", _path),
    "format": ("format", _text),
    "output": ("output", _inside),
    "fail-on": ("fail_on", _fail_on),
    "jobs": ("jobs", _count),
    "no-cache": ("no_cache", _flag),
    "expect": ("expect", _expect),
    "source-url": ("source_url", _url),
    "waivers": ("waivers", _waivers),
    "baseline": ("baseline", _inside),
}
