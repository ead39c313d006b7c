"""Configuration files of the tree: `json.load`, `yaml.safe_load`, `tomllib.load`, and OmegaConf's objects."""

from __future__ import annotations

from auditor import documents, operators
from auditor.containers.entries import put
from auditor.expressions.text import format_value
from auditor.handlers import nothing
from auditor.interpreter import Interpreter, RaiseSignal
from auditor.objects.inheritance import OBJECT
from auditor.places import Site, here
from auditor.values import (
    NONE,
    Args,
    Const,
    Instance,
    Mapping,
    Native,
    NativeClass,
    Pattern,
    Seq,
    Unknown,
    Value,
    key_of,
    text_of,
)

_RUN_TIME = "data that is read at run time"


def loaded(it: Interpreter, given: Value | None, site: Site | None) -> Value | None:
    """The data of a file of the tree, given the opened file or its text; None for anything else."""
    if not isinstance(given, Instance) or "document" not in given.attrs:
        return None
    path = text_of(given.attrs["document"]) or ""
    found = documents.find(it, path)
    return None if found is None else documents.parsed(*found, given.flags)


def _load(kind: str) -> Native:
    def run(it: Interpreter, args: Args, site: Site | None) -> Value:
        given = args.pos[0] if args.pos else args.kw.get("stream")
        found = loaded(it, given, site)
        if found is not None:
            return found
        return operators.unknown_from(_RUN_TIME, "data", *([given] if given is not None else []), name=kind)

    return Native(kind, run)


# -- OmegaConf ----------------------------------------------------------------------------------------------------


def wrapped(value: Value, root: Mapping | None = None) -> Value:
    """Data as a configuration object: attributes and items are the same, `${key}` stands for another value.

    A value that has to be given (`???`), and a reference that cannot be followed, is unknown.
    """
    if isinstance(value, Mapping):
        top = value if root is None else root
        entries = {k: (name, wrapped(v, top)) for k, (name, v) in value.entries.items()}
        inner = Mapping(entries, value.rest, places=value.places, flags=value.flags)
        return Instance(CONFIG, payload=inner, places=value.places, flags=value.flags)
    if isinstance(value, Seq):
        return Seq(value.kind, [wrapped(i, root) for i in value.items], value.rest, places=value.places)
    if isinstance(value, Const) and isinstance(value.value, str):
        if value.value == "???":
            return Unknown("the configuration leaves this value to the command line", "???", places=value.places)
        if "${" in value.value:
            return _referred(value.value, root, value.places)
    return value


def _referred(text: str, root: Mapping | None, places: tuple[Site, ...]) -> Value:
    found: Value | None = root
    for part in text[2:-1].split(".") if text.startswith("${") and text.find("}") == len(text) - 1 else ("",):
        key = key_of(Const(part))
        entry = found.entries.get(key) if isinstance(found, Mapping) and key is not None else None
        found = entry[1] if entry is not None else None
    if isinstance(found, Const) and "${" not in str(found.value) and found.value != "???":
        return found
    return Unknown(f"the reference `{text}` of a configuration", text, places=places)


def plain(value: Value) -> Value:
    """The data of a configuration object."""
    if isinstance(value, Instance) and value.cls is CONFIG and isinstance(value.payload, Mapping):
        inner = value.payload
        entries = {k: (name, plain(v)) for k, (name, v) in inner.entries.items()}
        return Mapping(entries, inner.rest, places=inner.places, flags=inner.flags)
    if isinstance(value, Seq):
        return Seq(value.kind, [plain(i) for i in value.items], value.rest, places=value.places, flags=value.flags)
    return value


def _inner(args: Args) -> Mapping:
    obj = args.pos[0]
    assert isinstance(obj, Instance)
    assert isinstance(obj.payload, Mapping)
    return obj.payload


def _getattr(it: Interpreter, args: Args, site: Site | None) -> Value:
    inner, name = _inner(args), text_of(args.pos[1]) or ""
    entry = inner.entries.get(key_of(Const(name)) or ("", name))
    if entry is not None:
        return entry[1]
    if inner.rest is not None:
        return inner.rest.child(f".{name}")
    if name in ("get", "items", "keys", "values", "pop"):
        return it.get(inner, name, site)
    raise RaiseSignal("AttributeError")


def _setattr(it: Interpreter, args: Args, site: Site | None) -> Value:
    inner = _inner(args)
    it.heap.touch(inner)
    put(inner, args.pos[1], wrapped(args.pos[2]))
    return NONE


CONFIG = NativeClass("omegaconf.DictConfig", {"__getattr__": _getattr, "__setattr__": _setattr}, (OBJECT,))


def _conf_load(it: Interpreter, args: Args, site: Site | None) -> Value:
    given = args.get(0, "file_")
    name = format_value(given, "", None) if given is not None else "*"
    found = documents.find(it, name)
    if found is None:
        return Unknown(f"the file `{name}` is read at run time", "config", "data", places=here(site))
    return wrapped(documents.parsed(*found, given.flags if given is not None else frozenset()))


def _create(it: Interpreter, args: Args, site: Site | None) -> Value:
    return wrapped(args.pos[0]) if args.pos else wrapped(Mapping())


def _merge(it: Interpreter, args: Args, site: Site | None) -> Value:
    parts = [plain(a) for a in args.pos]
    out = Mapping()
    for part in parts:
        if not isinstance(part, Mapping):
            return operators.unknown_from("a configuration that is not known is merged in", "data", *parts)
        out = documents.merged(out, part)
    return wrapped(out)


def _from_cli(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`key=value` words of the command line."""
    given = it.loader.patched.get("sys.argv")
    words = (
        args.pos[0].items
        if args.pos and isinstance(args.pos[0], Seq)
        else given.items[1:]
        if isinstance(given, Seq)
        else []
    )
    it.loader.argv_read = True
    return wrapped(overridden(Mapping(), [text_of(w) or "*" for w in words]))


def overridden(data: Mapping, words: list[str]) -> Mapping:
    """The data with `a.b=value` words of a command line laid over it; what cannot be read leaves all unknown."""
    for word in words:
        name, equals, text = word.lstrip("+").partition("=")
        if not equals or word.startswith("~") or "*" in word:
            return Mapping(rest=Unknown(f"the word `{word}` of the command line is not read", "config", "data"))
        value = documents.parsed("command line.yaml", text, frozenset())
        for part in reversed(name.split(".")):
            value = Mapping({("str", part): (Const(part), value)})
        assert isinstance(value, Mapping)
        data = documents.merged(data, value)
    return data


def _container(it: Interpreter, args: Args, site: Site | None) -> Value:
    return plain(args.pos[0]) if args.pos else Unknown("a configuration", "config", "data")


def _text(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Pattern("*")


NATIVES: dict[str, Value] = {
    "yaml.safe_load": _load("yaml"),
    "yaml.load": _load("yaml"),
    "yaml.full_load": _load("yaml"),
    "tomllib.load": _load("toml"),
    "tomllib.loads": _load("toml"),
    "omegaconf.OmegaConf.load": Native("OmegaConf.load", _conf_load),
    "omegaconf.OmegaConf.create": Native("OmegaConf.create", _create),
    "omegaconf.OmegaConf.merge": Native("OmegaConf.merge", _merge),
    "omegaconf.OmegaConf.from_cli": Native("OmegaConf.from_cli", _from_cli),
    "omegaconf.OmegaConf.from_dotlist": Native("OmegaConf.from_dotlist", _from_cli),
    "omegaconf.OmegaConf.to_container": Native("OmegaConf.to_container", _container),
    "omegaconf.OmegaConf.to_object": Native("OmegaConf.to_object", _container),
    "omegaconf.OmegaConf.to_yaml": Native("OmegaConf.to_yaml", _text),
    "omegaconf.OmegaConf.resolve": Native("OmegaConf.resolve", nothing),
    "omegaconf.OmegaConf.set_struct": Native("OmegaConf.set_struct", nothing),
    "omegaconf.DictConfig": CONFIG,
}
