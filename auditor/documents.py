"""YAML, JSON and TOML files of the audited tree: what a script reads from them, cited by their lines.

A path that a script computes from its own place is that file. A relative one is taken from the script's folder or from
the root, where a file is at one of the two; a file that the script has written before is not the one in the tree.
"""

from __future__ import annotations

import json
import posixpath
import re
import tomllib
from typing import Any

from auditor.interpreter import Interpreter
from auditor.loader import FILE_PREFIX
from auditor.modules import Statement
from auditor.places import Site
from auditor.trees import Unreadable
from auditor.values import Const, Mapping, Seq, Unknown, Value, key_of, text_of

_LIMIT = 1 << 20
_MOST = 20_000
_DEEPEST = 32
_ENDINGS = (".yaml", ".yml", ".json", ".toml")
# A checkpoint has a file of this name, and a bare name says nothing of whose file it is.
_OF_CHECKPOINTS = ("config.json", "generation_config.json", "params.json", "tokenizer.json", "tokenizer_config.json")

_PLAIN_TAGS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")

Flags = frozenset[str]


def find(it: Interpreter, name: str) -> tuple[str, str] | None:
    """(displayed path, text) of the file of the tree that a script means by `name`; None where that is not sure."""
    if "*" in name or not name.endswith(_ENDINGS) or name in it.written:
        return None
    inside = name.removeprefix(FILE_PREFIX)
    places = [inside]
    if inside == name:
        if name.startswith(("/", "~")) or posixpath.basename(name) in _OF_CHECKPOINTS:
            return None
        argv = it.loader.patched.get("sys.argv")
        script = text_of(argv.items[0]) if isinstance(argv, Seq) and argv.items else None
        places = [name, posixpath.join(posixpath.dirname(script or ""), name)]
    found = {p: t for place in places if (t := _text(it, p := posixpath.normpath(place))) is not None}
    return next(iter(found.items())) if len(found) == 1 else None


def _text(it: Interpreter, path: str) -> str | None:
    if path.startswith(("..", "/")):
        return None
    try:
        data = it.loader.sources.data_file(path)
        return data.decode("utf-8") if data is not None and len(data) <= _LIMIT else None
    except (Unreadable, UnicodeDecodeError):
        return None


def parsed(path: str, text: str, flags: Flags) -> Value:
    """The data of a file by its ending; unknown, with the reason, when it cannot be parsed or is too large."""
    ending = posixpath.splitext(path)[1]
    parse = {".json": _json, ".toml": _toml}.get(ending, _yaml)
    try:
        return parse(path, text, flags)
    except _Unfit as error:
        return Unknown(f"{path}: {error}", path, "data", places=(site(path, 1),))


def site(path: str, line: int) -> Site:
    """A line of a file that is no Python."""
    return Site(Statement(path, "", line))


class _Unfit(Exception):
    """A file whose data is not taken, and why."""


def _json(path: str, text: str, flags: Flags) -> Value:
    try:
        return _Plain(path, text, flags).value(json.loads(text))
    except (ValueError, RecursionError):
        raise _Unfit("no JSON") from None


def _toml(path: str, text: str, flags: Flags) -> Value:
    try:
        return _Plain(path, text, flags).value(tomllib.loads(text))
    except (ValueError, RecursionError):
        raise _Unfit("no TOML") from None


class _Counted:
    """Makes values, not more than a scan can bear: an alias of YAML may stand for millions."""

    def __init__(self, path: str, flags: Flags) -> None:
        self.path, self.flags, self.made = path, flags, 0

    def count(self, depth: int) -> None:
        self.made += 1
        if self.made > _MOST or depth > _DEEPEST:
            raise _Unfit("more data than is looked at")

    def scalar(self, data: Any, line: int) -> Value:
        return Const(data, places=(site(self.path, line),), flags=self.flags)

    def mapping(self, pairs: list[tuple[Any, int, Value]]) -> Value:
        out = Mapping(places=(site(self.path, pairs[0][1] if pairs else 1),), flags=self.flags)
        for name, line, value in pairs:
            key = self.scalar(name, line)
            out.entries[key_of(key) or ("str", str(name))] = (key, value)
        return out

    def sequence(self, items: list[Value], line: int) -> Value:
        return Seq("list", items, places=(site(self.path, line),), flags=self.flags)


class _Plain(_Counted):
    """Plain data; the line is that of the first text that looks like the key."""

    def __init__(self, path: str, text: str, flags: Flags) -> None:
        super().__init__(path, flags)
        self.lines = _key_lines(text)

    def value(self, data: Any, line: int = 1, depth: int = 0) -> Value:
        self.count(depth)
        if isinstance(data, dict):
            rows = [(k, self.lines.get(str(k), line)) for k in data]
            return self.mapping([(k, at, self.value(data[k], at, depth + 1)) for k, at in rows])
        if isinstance(data, list):
            return self.sequence([self.value(v, line, depth + 1) for v in data], line)
        return self.scalar(data, line)


_KEYS = re.compile(r"""\n|"((?:[^"\\\n]|\\.)*)"\s*[:=]|'([^'\n]*)'\s*=|(?<![\w.-])([\w.-]+)\s*=""")


def _key_lines(text: str) -> dict[str, int]:
    """The first line of what looks like each key: one pass, for a vocabulary has many thousands."""
    out: dict[str, int] = {}
    line = 1
    for found in _KEYS.finditer(text):
        quoted, plain, dotted = found.groups()
        if quoted is not None:
            out.setdefault(_unescaped(quoted), line)
        elif plain is not None:
            out.setdefault(plain, line)
        elif dotted is not None:
            out.setdefault(dotted.rpartition(".")[2], line)
        line += found.group().count("\n")
    return out


def _unescaped(key: str) -> str:
    try:
        return str(json.loads(f'"{key}"')) if "\\" in key else key
    except ValueError:
        return key


def _yaml(path: str, text: str, flags: Flags) -> Value:
    import yaml

    made = _Counted(path, flags)

    def line(node: yaml.Node) -> int:
        return int(node.start_mark.line) + 1

    def value(node: yaml.Node, depth: int = 0) -> Value:
        made.count(depth)
        if not isinstance(node, yaml.ScalarNode) and node.tag not in _PLAIN_TAGS:
            raise _Unfit(f"the tag `{node.tag}` (line {line(node)})")
        if isinstance(node, yaml.MappingNode):
            loader.flatten_mapping(node)
            pairs = []
            for key, inner in node.value:
                name = loader.construct_object(key, deep=True)
                if not isinstance(name, (str, int, float, bool)):
                    raise _Unfit(f"a key that is no text (line {line(key)})")
                pairs.append((name, line(key), value(inner, depth + 1)))
            return made.mapping(pairs)
        if isinstance(node, yaml.SequenceNode):
            return made.sequence([value(i, depth + 1) for i in node.value], line(node))
        return made.scalar(loader.construct_object(node), line(node))

    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        return Const(None, places=(site(path, 1),)) if node is None else value(node)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _Unfit(f"no YAML ({str(error).splitlines()[0]})") from None


def merged(first: Mapping, second: Mapping) -> Mapping:
    """Both, with the values of `second` where they differ; mappings inside are merged too."""
    out = Mapping(dict(first.entries), first.rest or second.rest, places=first.places, flags=first.flags | second.flags)
    for key, (name, value) in second.entries.items():
        old = out.entries.get(key)
        if old is not None and isinstance(old[1], Mapping) and isinstance(value, Mapping):
            value = merged(old[1], value)
        out.entries[key] = (name, value)
    return out
