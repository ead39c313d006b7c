"""Other programs and the interpreter itself: `subprocess`, `runpy`, `os.system`, `sys.path`."""

from __future__ import annotations

import posixpath
from collections.abc import Callable

from auditor.containers.iteration import iterate
from auditor.expressions.text import format_value
from auditor.handlers import itself, leaves, nothing
from auditor.interpreter import ExitSignal, Handler, Interpreter
from auditor.launches import words_of
from auditor.loader import FILE_PREFIX
from auditor.places import Site, here
from auditor.stdlib.options.parsing import command_line
from auditor.values import NONE, Args, Const, Instance, Native, NativeClass, Seq, Unknown, Value, is_none, text_of


def _command(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`subprocess.run(args, cwd=...)` and those like it."""
    _start(it, _words(it, args.get(0, "args", "cmd", "command"), site), site, args.kw.get("cwd"))
    texts = {name: _printed(name, site, "str") for name in ("stdout", "stderr")}
    return Instance(COMPLETED, {"returncode": Const(0), **texts})


def _printed(name: str, site: Site | None, kind: str = "") -> Unknown:
    return Unknown("the output of a program", name, kind, places=here(site))


def _start(it: Interpreter, words: list[str], site: Site | None, folder: Value | None = None) -> None:
    """A program is started: its command line is noted; what it exports is looked for later."""
    at = "" if folder is None or is_none(folder) else format_value(folder, "", None)
    it.sinks.command(tuple(words), site, at)


def _words(it: Interpreter, given: Value | None, site: Site | None) -> list[str]:
    line = text_of(given) if given is not None else None
    if line is not None:
        return words_of(line)
    return (
        [format_value(i, "", None) for i in iterate(it, given, site).items] if isinstance(given, Seq) and site else []
    )


def _spread(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`asyncio.create_subprocess_exec(program, *args, cwd=...)`: gives what `subprocess.run` does."""
    return _command(it, Args([Seq("list", list(args.pos), args.more)], args.kw), site)


def _output(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`subprocess.check_output` and `getoutput`."""
    _command(it, args, site)
    return _printed("output", site, "str")


def _opened(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`os.popen`: a file to read the output from."""
    _command(it, args, site)
    return _printed("output", site)


def _listed(it: Interpreter, args: Args, site: Site | None) -> list[str]:
    """The words of `(path, args, ...)`, where `args` begins with the program's own name."""
    path, listed = args.get(0, "path", "file"), args.get(1, "args", "argv")
    words = _words(it, listed, site)[1:] if listed is not None else []
    return [*([] if path is None else [format_value(path, "", None)]), *words]


def _strung(it: Interpreter, args: Args, site: Site | None) -> list[str]:
    """The words of `(path, name, *args)`."""
    return [format_value(word, "", None) for word in (*args.pos[:1], *args.pos[2:])]


def _replaced_by(words: Callable[[Interpreter, Args, Site | None], list[str]]) -> Handler:
    """`os.exec*`: the program takes the place of this one."""

    def replace(it: Interpreter, args: Args, site: Site | None) -> Value:
        _start(it, words(it, args, site), site)
        raise ExitSignal("SystemExit")

    return replace


def _spawned_by(words: Callable[[Interpreter, Args, Site | None], list[str]], before: int) -> Handler:
    """`os.spawn*` (a mode comes first) and `os.posix_spawn`: gives an exit status or the number of a process."""

    def spawn(it: Interpreter, args: Args, site: Site | None) -> Value:
        _start(it, words(it, Args(args.pos[before:], args.kw, args.more), site), site)
        return _waited(it, args, site)

    return spawn


def _status_and_output(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`subprocess.getstatusoutput`."""
    return Seq("tuple", [_waited(it, args, site), _output(it, args, site)])


def _waited(it: Interpreter, args: Args, site: Site | None) -> Value:
    """The exit status: 0 where the program does what the script starts it for."""
    return Const(0, places=here(site))


def _communicated(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Seq("tuple", [_printed(name, site) for name in ("stdout", "stderr")])


COMPLETED = NativeClass(
    "subprocess.CompletedProcess",
    {
        "check_returncode": nothing,
        "wait": _waited,
        "poll": _waited,
        "communicate": _communicated,
        "__enter__": itself,
        "__exit__": nothing,
    },
)


def _run(*before: str) -> Handler:
    """`runpy.run_path` and `run_module`: the script runs with what is in `sys.argv` then."""

    def run(it: Interpreter, args: Args, site: Site | None) -> Value:
        name = format_value(args.pos[0], "", None)
        words = command_line(it)
        _start(it, ["python", *before, name, *(["*"] if words is None else words)], site)
        return Unknown("the names of a script that was run", "run_path()", "dict", places=here(site))

    return run


def _search(it: Interpreter, args: Args, site: Site | None) -> Value:
    for value in args.pos[1:]:
        text = format_value(value, "", None)
        if not text.startswith("/") and "*" not in text and text:
            folder = posixpath.normpath(text)
            if not folder.startswith("..") and folder not in it.search:
                it.search.append("" if folder == "." else folder)
        if text.startswith(FILE_PREFIX) and "*" not in text:
            folder = posixpath.normpath(text[len(FILE_PREFIX) :])
            folder = "" if folder == "." else folder
            if folder not in it.search and not folder.startswith(".."):
                it.search.append(folder)
    return NONE


SYS_PATH = NativeClass(
    "sys.path",
    {
        "insert": _search,
        "append": _search,
        "extend": lambda it, args, site: (
            _search(it, Args([args.pos[0], *iterate(it, args.pos[1], site).items]), site) if site else NONE
        ),
        "remove": nothing,
        "pop": nothing,
        "index": lambda it, args, site: Unknown("a position in sys.path", "index", "int"),
        "__iter__": lambda it, args, site: Seq("list", [], Unknown("the folders of sys.path", "sys.path")),
        "__getitem__": lambda it, args, site: Unknown("a folder of sys.path", "sys.path[]", "str"),
        "__contains__": lambda it, args, site: Unknown("a folder of sys.path", "in", "bool"),
    },
)


NATIVES: dict[str, Value] = {
    "sys.exit": Native("exit", leaves),
    "os._exit": Native("_exit", leaves),
    "subprocess.run": Native("subprocess.run", _command),
    "subprocess.call": Native("subprocess.call", _command),
    "subprocess.check_call": Native("subprocess.check_call", _command),
    "subprocess.check_output": Native("subprocess.check_output", _output),
    "subprocess.getstatusoutput": Native("subprocess.getstatusoutput", _status_and_output),
    "subprocess.getoutput": Native("subprocess.getoutput", _output),
    "subprocess.Popen": Native("subprocess.Popen", _command),
    "asyncio.create_subprocess_exec": Native("create_subprocess_exec", _spread),
    "asyncio.create_subprocess_shell": Native("create_subprocess_shell", _command),
    "os.system": Native("os.system", _command),
    "os.popen": Native("os.popen", _opened),
    **{f"os.{name}": Native(name, _replaced_by(_listed)) for name in ("execv", "execve", "execvp", "execvpe")},
    **{f"os.{name}": Native(name, _replaced_by(_strung)) for name in ("execl", "execlp")},
    **{f"os.{name}": Native(name, _spawned_by(_listed, 1)) for name in ("spawnv", "spawnve", "spawnvp", "spawnvpe")},
    **{f"os.{name}": Native(name, _spawned_by(_strung, 1)) for name in ("spawnl", "spawnlp")},
    **{f"os.{name}": Native(name, _spawned_by(_listed, 0)) for name in ("posix_spawn", "posix_spawnp")},
    "runpy.run_path": Native("run_path", _run()),
    "runpy.run_module": Native("run_module", _run("-m")),
    "sys.path": Instance(SYS_PATH),
    "sys.executable": Const("python"),
    "sys.platform": Const("darwin"),
    "sys.byteorder": Const("little"),
    "sys.implementation.name": Const("cpython"),
    "os.name": Const("posix"),
}
