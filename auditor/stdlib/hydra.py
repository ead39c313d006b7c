"""Hydra: the configuration that `@hydra.main` composes from the files beside a script, and words of the command line.

Composed are a primary file, its `defaults` list of files and of group options, `_self_`, and `key=value` or
`group=option` words. What goes beyond (packages, optional and overriding entries, resolvers) leaves the configuration
unknown, with the reason, at the line that says so.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass

from auditor import documents
from auditor.interpreter import Interpreter
from auditor.loader import FILE_PREFIX
from auditor.places import Site, here
from auditor.stdlib.configurations import overridden, wrapped
from auditor.values import Args, Const, Mapping, Native, Seq, Unknown, Value, is_given, text_of


class _Beyond(Exception):
    """Why a configuration is not composed, and where."""

    def __init__(self, reason: str, places: tuple[Site, ...] = ()) -> None:
        super().__init__(reason)
        self.places = places


def _main(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`@hydra.main(config_path=..., config_name=...)`."""
    settings = args

    def decorate(it: Interpreter, inner: Args, where: Site | None) -> Value:
        function = inner.pos[0]

        def run(it: Interpreter, given: Args, at: Site | None) -> Value:
            return it.call(function, given if given.pos or given.kw else Args([_composed(it, settings, site)]), at)

        return Native("hydra.main", run)

    return Native("hydra.main", decorate)


def _composed(it: Interpreter, settings: Args, site: Site | None) -> Value:
    folder, name = settings.get(0, "config_path"), settings.get(1, "config_name")
    script = site.path if site is not None else ""
    given = it.loader.patched.get("sys.argv")
    words = [text_of(w) or "*" for w in given.items[1:]] if isinstance(given, Seq) else []
    it.loader.argv_read = True
    inner = text_of(folder) if is_given(folder) else ""
    primary = text_of(name) if name is not None else None
    try:
        if inner is None or primary is None or "*" in inner or "*" in primary:
            raise _Beyond("the name of the configuration is not known")
        composer = _Composer(it, posixpath.join(posixpath.dirname(script), inner))
        groups = {w.partition("=")[0]: w.partition("=")[2] for w in words if composer.is_group(w.partition("=")[0])}
        data = composer.file(primary, groups)
        return wrapped(overridden(data, [w for w in words if w.partition("=")[0] not in groups]))
    except _Beyond as error:
        places = error.places or here(site)
        return Unknown(f"the configuration is not composed: {error}", "cfg", "data", places=places)


@dataclass(slots=True)
class _Composer:
    """Composes files of one folder."""

    it: Interpreter
    folder: str
    depth: int = 0

    def is_group(self, name: str) -> bool:
        return bool(name) and self.it.loader.sources.exists(posixpath.normpath(posixpath.join(self.folder, name)))

    def load(self, name: str) -> tuple[Mapping, str]:
        path = posixpath.normpath(posixpath.join(self.folder, name if name.endswith(".yaml") else f"{name}.yaml"))
        found = documents.find(self.it, FILE_PREFIX + path)
        if found is None:
            raise _Beyond(f"there is no {path}")
        data = documents.parsed(*found, frozenset())
        if not isinstance(data, Mapping):
            raise _Beyond(f"{path} holds no keys", data.places)
        if "@package" in found[1]:
            raise _Beyond(f"{path} names its package", data.places)
        return data, path

    def file(self, name: str, groups: dict[str, str]) -> Mapping:
        """A file with what its `defaults` list names; `groups` are the options that the command line chose."""
        self.depth += 1
        if self.depth > 16:
            raise _Beyond(f"the defaults of {name} go round")
        own, _ = self.load(name)
        listed = own.entries.pop(("str", "defaults"), None)
        chosen = dict(groups)
        parts: list[Mapping] = []
        placed = listed is None
        for entry in _items(listed[1]) if listed is not None else ():
            if isinstance(entry, Const) and entry.value == "_self_":
                parts.append(own)
                placed = True
            elif isinstance(entry, Const) and isinstance(entry.value, str) and not set(entry.value) & set("@$ /"):
                parts.append(self.file(entry.value, {}))
            else:
                parts.append(self.option(entry, chosen))
        if not placed:
            self.agree(own, parts)
        parts += [] if placed and listed is not None else [own]
        if chosen:
            raise _Beyond(f"the defaults of {name} do not list `{next(iter(chosen))}`")
        out = Mapping(places=own.places)
        for part in parts:
            out = documents.merged(out, part)
        return out

    def option(self, entry: Value, chosen: dict[str, str]) -> Mapping:
        """`group: option`: the file `group/option.yaml`, whose data stands under `group`."""
        pairs = list(entry.entries.values()) if isinstance(entry, Mapping) else []
        group, option = (text_of(pairs[0][0]), text_of(pairs[0][1])) if len(pairs) == 1 else (None, None)
        if group is None or set(group) & set("@$ /"):
            raise _Beyond("an entry of the defaults that is not read", entry.places)
        option = chosen.pop(group, option)
        if option is None or "$" in option or option == "???":
            raise _Beyond(f"which `{group}` is chosen is left to the command line", entry.places)
        inner = self.file(f"{group}/{option}", {})
        return Mapping({("str", group): (Const(group), inner)}, places=inner.places)

    def agree(self, own: Mapping, parts: list[Mapping]) -> None:
        """Without `_self_` the order depends on Hydra's version: it must not matter."""
        for part in parts:
            for key in own.entries.keys() & part.entries.keys():
                raise _Beyond(f"whether `{key[1]}` of the file or of its defaults counts", own.entries[key][1].places)


def _items(value: Value) -> list[Value]:
    if not isinstance(value, Seq) or value.rest is not None:
        raise _Beyond("defaults that are no list", value.places)
    return value.items


NATIVES: dict[str, Value] = {"hydra.main": Native("hydra.main", _main)}
