"""Other programs and the interpreter itself: `subprocess`, `runpy`, `os.system`, `sys.path`."""

from __future__ import annotations

import posixpath
import shlex

from auditor.containers.iteration import iterate
from auditor.expressions.text import format_value
from auditor.handlers import leaves, nothing
from auditor.interpreter import Handler, Interpreter
from auditor.loader import FILE_PREFIX
from auditor.places import Site, here
from auditor.stdlib.options.parsing import command_line
from auditor.values import NONE, Args, Const, Instance, Native, NativeClass, Seq, Unknown, Value, text_of


def _command(it: Interpreter, args: Args, site: Site | None) -> Value:
    """A program is started: its command line is noted; what it exports is looked for later."""
    given = args.get(0, "args")
    words: list[str] = []
    if given is not None and site is not None:
        if text_of(given) is not None:
            try:
                words = shlex.split(text_of(given) or "")
            except ValueError:
                words = []
        elif isinstance(given, Seq):
            words = [format_value(i, "", None) for i in iterate(it, given, site).items]
    it.sinks.command(tuple(words), site, it.conditions)
    return Instance(
        COMPLETED,
        {
            "returncode": Const(0),
            "stdout": Unknown("the output of a program", "stdout", "str"),
            "stderr": Unknown("the output of a program", "stderr", "str"),
        },
    )


COMPLETED = NativeClass("subprocess.CompletedProcess", {"check_returncode": nothing})


def _run(*before: str) -> Handler:
    """`runpy.run_path` and `run_module`: the script runs with what is in `sys.argv` then."""

    def run(it: Interpreter, args: Args, site: Site | None) -> Value:
        name = format_value(args.pos[0], "", None)
        words = command_line(it)
        it.sinks.command(("python", *before, name, *(["*"] if words is None else words)), site, it.conditions)
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
    "subprocess.check_output": Native("subprocess.check_output", _command),
    "subprocess.Popen": Native("subprocess.Popen", _command),
    "os.system": Native("os.system", _command),
    "runpy.run_path": Native("run_path", _run()),
    "runpy.run_module": Native("run_module", _run("-m")),
    "sys.path": Instance(SYS_PATH),
    "sys.executable": Const("python"),
    "sys.platform": Const("darwin"),
    "sys.version_info": Seq("tuple", [Const(3), Const(11), Const(0), Const("final"), Const(0)]),
}
