"""`config.json` files of checkpoints at hand: plain data that decides what a script builds, cited by their lines."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from auditor.modules import Statement
from auditor.places import Site
from auditor.seen import Seen
from auditor.values import Const, Mapping, Seq, Unknown, Value

_LIMIT = 1 << 20


@dataclass(slots=True)
class Checkpoints:
    """A folder that holds `<owner>/<name>/config.json` or `<name>/config.json`; None for none at hand."""

    folder: Path | None = None
    seen: Seen = field(default_factory=Seen)
    _texts: dict[str, tuple[str, str] | None] = field(default_factory=dict)

    def text(self, name: str) -> tuple[str, str] | None:
        """(displayed path, text) of the configuration of a checkpoint, by its identifier or a path that ends in it."""
        if self.folder is None or "*" in name:
            return None
        if name not in self._texts:
            self._texts[name] = self._find(name)
        return self._texts[name]

    def _find(self, name: str) -> tuple[str, str] | None:
        assert self.folder is not None
        parts = [p for p in name.removesuffix("config.json").split("/") if p not in ("", ".", "..", "~", "@")]
        for count in (2, 1):
            inner = "/".join([*parts[-count:], "config.json"])
            path = self.folder / inner
            self.seen.whole(path)
            if len(parts) >= count and path.is_file() and path.stat().st_size <= _LIMIT:
                try:
                    return f"{self.folder.name}/{inner}", path.read_text("utf-8")
                except (OSError, UnicodeDecodeError):
                    return None
        return None

    def config(self, name: str) -> Unknown | None:
        """The configuration object of a checkpoint: its keys are known, what its class adds to them is not."""
        found = self.text(name)
        if found is None:
            return None
        path, text = found
        try:
            data = json.loads(text)
        except ValueError:
            return None
        return _object(data, path, text, "config") if isinstance(data, dict) else None

    def data(self, name: str) -> Value | None:
        """The same file as plain data, as `json.loads` gives it."""
        found = self.text(name)
        if found is None:
            return None
        path, text = found
        try:
            return _plain(json.loads(text), path, text)
        except ValueError:
            return None


def _site(path: str, text: str, key: str = "") -> Site:
    at = text.find(f'"{key}"') if key else 0
    line = text.count("\n", 0, max(at, 0)) + 1
    return Site(Statement(path, "", line), None, key)


def _object(data: dict[str, Any], path: str, text: str, name: str) -> Unknown:
    out = Unknown(f"{path} does not say", name, "data", places=(_site(path, text),))
    for key, value in data.items():
        inner: Value
        if isinstance(value, dict):
            inner = _object(value, path, text, f"{name}.{key}")
        else:
            inner = _plain(value, path, text, key)
        out.children[f".{key}"] = out.children[f"[{key!r}]"] = inner
    return out


def _plain(data: Any, path: str, text: str, key: str = "") -> Value:
    places = (_site(path, text, key),)
    if isinstance(data, dict):
        entries: dict[Any, tuple[Value, Value]] = {
            ("str", k): (Const(k, places=places), _plain(v, path, text, k)) for k, v in data.items()
        }
        return Mapping(entries, places=places)
    if isinstance(data, list):
        return Seq("list", [_plain(v, path, text, key) for v in data], places=places)
    return Const(data, places=places)
