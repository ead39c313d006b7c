"""Paths: `pathlib` and `os.path` on texts that may have unknown parts."""

from __future__ import annotations

import posixpath
from collections.abc import Callable

from auditor import documents, operators
from auditor.expressions.text import format_value
from auditor.handlers import itself, nothing
from auditor.interpreter import Handler, Interpreter
from auditor.joins import union
from auditor.places import Site, here
from auditor.values import (
    NONE,
    TRUE,
    Args,
    Const,
    Instance,
    Native,
    NativeClass,
    Pattern,
    Seq,
    Star,
    Unknown,
    Value,
    text_of,
)


def path_text(value: Value) -> str:
    """The path as a text, `*` for unknown parts."""
    return format_value(value, "", None)


def make_path(text: str, *sources: Value) -> Instance:
    inner = operators.pattern(text, *sources)
    return Instance(PATH, payload=inner, places=inner.places, flags=inner.flags)


def _new(it: Interpreter, args: Args, site: Site | None) -> Value:
    parts = args.pos[1:]
    return make_path(posixpath.join(*(path_text(p) for p in parts)) if parts else ".", *parts)


def _joined(it: Interpreter, args: Args, site: Site | None) -> Value:
    return make_path(posixpath.join(*(path_text(p) for p in args.pos)), *args.pos)


def _right_joined(it: Interpreter, args: Args, site: Site | None) -> Value:
    return make_path(posixpath.join(path_text(args.pos[1]), path_text(args.pos[0])), *args.pos)


def _normal(it: Interpreter, args: Args, site: Site | None) -> Value:
    text = path_text(args.pos[0])
    return make_path(text if "*" in text else posixpath.normpath(text), args.pos[0])


def _attribute(pick: Callable[[str], str], path: bool = False) -> Handler:
    def get(it: Interpreter, args: Args, site: Site | None) -> Value:
        text = pick(path_text(args.pos[0]))
        return make_path(text, args.pos[0]) if path else operators.pattern(text, args.pos[0])

    return get


def _stem(text: str) -> str:
    return posixpath.splitext(posixpath.basename(text))[0]


def _suffix(text: str) -> str:
    """The ending of a file's name; any, where nobody knows how the name ends."""
    return posixpath.splitext(text)[1] or ("*" if text.endswith("*") else "")


def _with_name(it: Interpreter, args: Args, site: Site | None) -> Value:
    folder = posixpath.dirname(path_text(args.pos[0]))
    return make_path(posixpath.join(folder, path_text(args.pos[1])), *args.pos)


def _with_suffix(it: Interpreter, args: Args, site: Site | None) -> Value:
    return make_path(posixpath.splitext(path_text(args.pos[0]))[0] + path_text(args.pos[1]), *args.pos)


def _with_stem(it: Interpreter, args: Args, site: Site | None) -> Value:
    text = path_text(args.pos[0])
    name = path_text(args.pos[1]) + posixpath.splitext(text)[1]
    return make_path(posixpath.join(posixpath.dirname(text), name), *args.pos)


def _relative(it: Interpreter, args: Args, site: Site | None) -> Value:
    text, start = path_text(args.pos[0]), path_text(args.pos[1]).rstrip("/")
    if "*" not in start and text.startswith(start + "/"):
        return make_path(text[len(start) + 1 :], *args.pos)
    return make_path("*/" + posixpath.basename(text), *args.pos)


def _unknown(kind: str, what: str) -> Handler:
    def get(it: Interpreter, args: Args, site: Site | None) -> Value:
        return Unknown(f"{what} `{path_text(args.pos[0])}`", f"{what}()", kind, places=here(site))

    return get


def _read_text(it: Interpreter, args: Args, site: Site | None) -> Value:
    found = (
        it.loader.checkpoints.text(path_text(args.pos[0])) if path_text(args.pos[0]).endswith("config.json") else None
    )
    if found is not None:
        return Instance(CONFIG_TEXT, payload=Const(found[1]), attrs={"name": Const(path_text(args.pos[0]))})
    name = path_text(args.pos[0])
    if documents.find(it, name) is not None:
        return Instance(CONFIG_TEXT, attrs={"document": Const(name)}, flags=args.pos[0].flags)
    return _unknown("str", "the contents of")(it, args, site)


def _is_file(it: Interpreter, args: Args, site: Site | None) -> Value:
    """A file that the tree holds is there; of any other nobody knows."""
    if documents.find(it, path_text(args.pos[0])) is not None:
        return TRUE
    return _unknown("bool", "whether there is a file")(it, args, site)


def _write(it: Interpreter, args: Args, site: Site | None) -> Value:
    it.written.add(path_text(args.pos[0]))
    return NONE


CONFIG_TEXT = NativeClass("str")
"""The text of a configuration: `json.loads` of it gives data that is cited by its lines."""


def _listing(it: Interpreter, args: Args, site: Site | None) -> Value:
    found = make_path(posixpath.join(path_text(args.pos[0]), "*"), args.pos[0])
    return Seq("list", [Star((found,))])


def _parents(it: Interpreter, args: Args, site: Site | None) -> Value:
    out: list[Value] = []
    text = path_text(args.pos[0])
    if "*" in text:
        return Seq("tuple", out, Unknown("the folders above a path that is not known", places=args.pos[0].places))
    while text not in ("/", ".", "") and len(out) < 16:
        text = posixpath.dirname(text) or "."
        out.append(make_path(text, args.pos[0]))
    return Seq("tuple", out)


def _parts(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Seq("tuple", [operators.pattern(p, args.pos[0]) for p in path_text(args.pos[0]).split("/")])


def _open(it: Interpreter, args: Args, site: Site | None) -> Value:
    return it.call(it.loader.builtins["open"], args, site)


PATH = NativeClass(
    "pathlib.Path",
    {
        "__new__": _new,
        "__truediv__": _joined,
        "__rtruediv__": _right_joined,
        "joinpath": _joined,
        "resolve": _normal,
        "absolute": _normal,
        "expanduser": itself,
        "with_name": _with_name,
        "with_suffix": _with_suffix,
        "exists": _is_file,
        "is_file": _is_file,
        "is_dir": _unknown("bool", "whether there is a folder"),
        "read_text": _read_text,
        "read_bytes": _unknown("bytes", "the contents of"),
        "stat": _unknown("", "the size of"),
        "glob": _listing,
        "rglob": _listing,
        "iterdir": _listing,
        "mkdir": nothing,
        "touch": nothing,
        "unlink": nothing,
        "rmdir": nothing,
        "write_text": _write,
        "write_bytes": _write,
        "symlink_to": nothing,
        "rename": itself,
        "relative_to": _relative,
        "with_stem": _with_stem,
        "as_posix": _attribute(lambda t: t),
        "__str__": _attribute(lambda t: t),
        "__fspath__": _attribute(lambda t: t),
        "open": _open,
    },
)
_PROPERTIES: dict[str, Handler] = {
    "parent": _attribute(posixpath.dirname, path=True),
    "name": _attribute(posixpath.basename),
    "stem": _attribute(_stem),
    "suffix": _attribute(_suffix),
    "parents": _parents,
    "parts": _parts,
}


def _getattr(it: Interpreter, args: Args, site: Site | None) -> Value:
    name = text_of(args.pos[1]) or ""
    if name in _PROPERTIES:
        return _PROPERTIES[name](it, args, site)
    return Unknown(f"`{name}` of a path", f"Path.{name}")


PATH.methods["__getattr__"] = _getattr
PATH.methods["cwd"] = lambda it, args, site: make_path("*")
PATH.methods["home"] = lambda it, args, site: make_path("*")


def _join(it: Interpreter, args: Args, site: Site | None) -> Value:
    return operators.pattern(posixpath.join(*(path_text(p) for p in args.pos)), *args.pos)


def _text(pick: Callable[[str], str]) -> Handler:
    return lambda it, args, site: operators.pattern(pick(path_text(args.pos[0])), args.pos[0])


def _norm(text: str) -> str:
    return text if "*" in text else posixpath.normpath(text)


def _splitext(it: Interpreter, args: Args, site: Site | None) -> Value:
    text = path_text(args.pos[0])
    return Seq("tuple", [operators.pattern(t, args.pos[0]) for t in (posixpath.splitext(text)[0], _suffix(text))])


def _split(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Seq("tuple", [operators.pattern(t, args.pos[0]) for t in posixpath.split(path_text(args.pos[0]))])


def _environ(it: Interpreter, args: Args, site: Site | None) -> Value:
    default, name = args.get(1, "default"), text_of(args.pos[0]) or "*"
    reason = f"the environment variable `{name}` is known at run time only"
    found = Unknown(reason, f"environ[{name}]", "str", places=here(site))
    return union([found, default if default is not None else NONE])


NATIVES: dict[str, Value] = {
    "pathlib.Path": PATH,
    "pathlib.PurePath": PATH,
    "pathlib.PosixPath": PATH,
    "pathlib.PurePosixPath": PATH,
    "os.path.join": Native("join", _join),
    "os.path.dirname": Native("dirname", _text(posixpath.dirname)),
    "os.path.basename": Native("basename", _text(posixpath.basename)),
    "os.path.abspath": Native("abspath", _text(_norm)),
    "os.path.realpath": Native("realpath", _text(_norm)),
    "os.path.normpath": Native("normpath", _text(_norm)),
    "os.path.expanduser": Native("expanduser", _text(lambda t: t)),
    "os.path.expandvars": Native("expandvars", _text(lambda t: t if "$" not in t else "*")),
    "os.path.splitext": Native("splitext", _splitext),
    "os.path.split": Native("split", _split),
    "os.path.exists": Native("exists", _is_file),
    "os.path.isfile": Native("isfile", _is_file),
    "os.path.isdir": Native("isdir", _unknown("bool", "whether there is a folder")),
    "os.fspath": Native("fspath", _text(lambda t: t)),
    "os.getcwd": Native("getcwd", lambda it, args, site: Pattern("*")),
    "os.environ.get": Native("environ.get", _environ),
    "os.getenv": Native("getenv", _environ),
    "os.environ.setdefault": Native("environ.setdefault", _environ),
    "os.sep": Const("/"),
    "tempfile.mkdtemp": Native("mkdtemp", lambda it, args, site: Pattern("*")),
    "tempfile.gettempdir": Native("gettempdir", lambda it, args, site: Pattern("*")),
}
