"""Recipes: the command lines that a repository records for the bundles it ships."""

from __future__ import annotations

import difflib
import posixpath
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from auditor.launches import Launch, Starts, launches
from auditor.sources import Sources, Unreadable

_WHERE = "correct its path, set the script root, or scan the folder that holds both"
KEYS = ("script", "args", "command", "bundle", "steps")


@dataclass(frozen=True, slots=True)
class Recipe:
    """One run. `name` is `<recipe file>#<table>`, with `/step<i>` where the table has steps.

    `script` is a displayed path and empty for a command; `command` is the console command with its arguments and empty
    for a script; `argv` are the arguments of either. A table that names neither has both empty.
    """

    name: str
    script: str
    argv: tuple[str, ...]
    command: tuple[str, ...]
    bundle: str


class RecipeError(Exception):
    """A recipe (`name`; the file, when none of it can be read) that cannot be used, the reason, and what to do."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}")
        self.name = name
        self.reason = reason


@dataclass(frozen=True, slots=True)
class RecipeSettings:
    """Which files hold recipes, the folder that scripts are named from (besides the recipe's own), and other key names.

    `keys` maps any of `KEYS` to what the repository calls it.
    """

    glob: str = "**/recipe.toml"
    script_root: str = ""
    keys: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if unknown := sorted(self.keys.keys() - set(KEYS)):
            raise ValueError(f"unknown recipe key {unknown[0]!r}: the keys are {', '.join(KEYS)}")

    def key(self, key: str) -> str:
        return self.keys.get(key, key)


def discover(sources: Sources, settings: RecipeSettings) -> tuple[tuple[Recipe, ...], tuple[RecipeError, ...]]:
    """The recipes below the root, in the order of their files, tables and steps, and an error for each bad one.

    When only some paths are audited: those in them, and those elsewhere that run a script in them.
    """
    reader = _Reader(sources, settings)
    matches = _pattern(settings.glob).fullmatch
    files = [path for path in sources.paths() if matches(path)]
    if not files and settings.glob != RecipeSettings().glob:
        return (), (RecipeError(settings.glob, "no file below the root fits; `**/` is any number of folders"),)
    found = [
        item
        for path in files
        for item in reader.file(path)
        if sources.asked(path) or (isinstance(item, Recipe) and item.script and sources.asked(item.script))
    ]
    recipes = tuple(item for item in found if isinstance(item, Recipe))
    return recipes, tuple(item for item in found if isinstance(item, RecipeError))


class _Reader:
    def __init__(self, sources: Sources, settings: RecipeSettings) -> None:
        self.sources = sources
        self.settings = settings

    def file(self, path: str) -> Iterator[Recipe | RecipeError]:
        try:
            tables = tomllib.loads((self.sources.data_file(path) or b"").decode("utf-8"))
        except Unreadable as error:
            yield RecipeError(path, error.reason)
        except UnicodeDecodeError:
            yield RecipeError(path, "not UTF-8, which TOML has to be: save it as UTF-8")
        except (ValueError, RecursionError) as error:
            yield RecipeError(path, f"not TOML ({str(error) or type(error).__name__}): correct it there")
        else:
            for table, entries in tables.items():
                if isinstance(entries, dict):
                    yield from self._table(path, table, entries)

    def _table(self, path: str, table: str, entries: Mapping[str, Any]) -> Iterator[Recipe | RecipeError]:
        name = f"{path}#{table}"
        steps_key = self.settings.key("steps")
        runs: list[tuple[str, Mapping[str, Any]]] = [(name, entries)]
        if steps_key in entries:
            steps = entries[steps_key]
            if not isinstance(steps, list) or not steps or not all(isinstance(step, dict) for step in steps):
                yield RecipeError(
                    name, f"{steps_key!r} is no list of tables, or an empty one: write [[{table}.{steps_key}]]"
                )
                return
            runs = [(f"{name}/step{i}", _override(entries, step, self.settings)) for i, step in enumerate(steps)]
        for run, keys in runs:
            try:
                yield self._recipe(path, run, keys)
            except RecipeError as error:
                yield error

    def _recipe(self, path: str, name: str, keys: Mapping[str, Any]) -> Recipe:
        script_key, command_key = self.settings.key("script"), self.settings.key("command")
        script, bundle = (_text(name, key, keys) for key in (script_key, self.settings.key("bundle")))
        argv, words = (_words(name, key, keys) for key in (self.settings.key("args"), command_key))
        if script and words:
            raise RecipeError(name, f"both {script_key!r} and {command_key!r}: keep one of them")
        if not script and not words:
            return Recipe(name, "", argv, (), bundle)
        found = [Launch(Starts.SCRIPT, script, argv)] if script else list(launches([*words, *argv]))
        if len(found) != 1:
            many = f"{len(found)} programs: give each a step of its own" if found else "no script, module or command"
            raise RecipeError(name, f"{command_key!r} starts {many}: {shlex.join(words)}")
        started = found[0]
        if started.starts is Starts.COMMAND:
            return Recipe(name, "", started.argv, (started.name, *started.argv), bundle)
        locate = self._module if started.starts is Starts.MODULE else self._script
        return Recipe(name, locate(path, name, started), started.argv, (), bundle)

    def _module(self, path: str, name: str, started: Launch) -> str:
        folders = [
            posixpath.join(folder, started.folder) for folder in (posixpath.dirname(path), self.settings.script_root)
        ]
        found = self.sources.program(started.name, folders)
        if found is None:
            known = "below the root or in a library: correct it, or add its --library"
            raise RecipeError(name, f"no module {started.name!r} {known}")
        return found.path

    def _script(self, path: str, name: str, started: Launch) -> str:
        """Beside the recipe, then at the script root, then at the root, then in the only folder that has it."""
        script = posixpath.join(started.folder, started.name)
        files = self._by_name.get(posixpath.basename(script), ())
        for folder in (posixpath.dirname(path), self.settings.script_root, ""):
            candidate = posixpath.normpath(posixpath.join(folder, script))
            if candidate in files:
                return candidate
        tail = "/" + posixpath.normpath(script)
        matches = [file for file in files if f"/{file}".endswith(tail)]
        if len(matches) == 1:
            return matches[0]
        if matches:
            listed = f"{len(matches)} folders ({', '.join(matches)})"
            raise RecipeError(name, f"script {script!r} is in {listed}: write its path from the root")
        close = difflib.get_close_matches(posixpath.basename(script), self._by_name, n=1)
        hint = f"did you mean {self._by_name[close[0]][0]}?" if close else _WHERE
        raise RecipeError(name, f"no script {script!r} beside the recipe, at the root or in a folder below it: {hint}")

    @cached_property
    def _by_name(self) -> Mapping[str, Sequence[str]]:
        found: dict[str, list[str]] = {}
        for path in self.sources.paths():
            found.setdefault(posixpath.basename(path), []).append(path)
        return found


def _override(table: Mapping[str, Any], step: Mapping[str, Any], settings: RecipeSettings) -> Mapping[str, Any]:
    """A step's keys over its table's. A step that says what runs replaces both ways of saying it."""
    either = {settings.key("script"), settings.key("command")}
    inherited = {key: value for key, value in table.items() if key not in either or not either & step.keys()}
    return {**inherited, **step}


def _text(name: str, key: str, keys: Mapping[str, Any]) -> str:
    value = keys.get(key, "")
    if not isinstance(value, str):
        raise RecipeError(name, f"{key!r} is not a string")
    return value


def _words(name: str, key: str, keys: Mapping[str, Any]) -> tuple[str, ...]:
    """A list of strings (numbers are taken as written), or one string that a shell would split."""
    value = keys.get(key, [])
    if isinstance(value, str):
        try:
            return tuple(shlex.split(value))
        except ValueError as error:
            raise RecipeError(name, f"{key!r} cannot be split into words ({error}): write it as a list") from error
    if not isinstance(value, list) or not all(_is_word(word) for word in value):
        raise RecipeError(name, f"{key!r} is not a list of strings")
    return tuple(str(word) for word in value)


def _is_word(value: object) -> bool:
    return isinstance(value, (str, int, float)) and not isinstance(value, bool)


def _pattern(glob: str) -> re.Pattern[str]:
    """`**/` is any number of folders; `*` and `?` stay inside one."""
    special = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", glob)
    return re.compile("".join(special.get(part, re.escape(part)) for part in parts), re.DOTALL)
