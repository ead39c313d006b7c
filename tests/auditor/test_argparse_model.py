"""The model of argparse against argparse itself: one parser, many command lines, the same values."""

from __future__ import annotations

import argparse
import contextlib
import io
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Any

import pytest

from auditor.interpreter import ExitSignal, Frame, Interpreter
from auditor.natives import make_loader
from auditor.run import MEANING
from auditor.sinks import Sinks
from auditor.sources import Sources
from auditor.stdlib.files import PATH, path_text
from auditor.stdlib.options.parsing import NAMESPACE
from auditor.values import Const, Instance, Seq, Union, Unknown, Value

EXIT = "ends the process"
OPEN = "the command line decides"

HEAD = "import argparse\nfrom pathlib import Path\nparser = argparse.ArgumentParser()\nadd = parser.add_argument\n"


def run(root: Path, script: str, argv: Sequence[str] = ()) -> tuple[dict[str, Value], Interpreter]:
    """The names of the script after its evaluation, and the run. Raises `ExitSignal`."""
    (root / "script.py").write_text(HEAD + script)
    loader = make_loader(Sources(root))
    it = Interpreter(MEANING, loader, Sinks(), tuple(argv), literals=loader.literals)
    module = loader.main_module("script.py")
    for statement in module.source.statements:
        it.run_block(statement.nodes, Frame(module.env, statement, module))
    return module.env.names, it


def told(root: Path, script: str, argv: Sequence[str]) -> Any:
    """The namespace `args` of the script by the model, as plain values."""
    try:
        names, _ = run(root, script, argv)
    except ExitSignal:
        return EXIT
    return plain(names["args"])


def plain(value: Value) -> Any:
    match value:
        case Const(value=x):
            return x
        case Seq(kind=kind, items=items) if value.exact:
            return (list if kind == "list" else tuple)(map(plain, items))
        case Instance(cls=cls) if cls is PATH:
            return PurePath(path_text(value))
        case Instance(cls=cls, attrs=attrs) if cls is NAMESPACE:
            return {name: plain(v) for name, v in attrs.items()}
        case Unknown() | Union():
            return OPEN
    return value


def real(script: str, argv: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """The same namespace by running the script."""
    monkeypatch.setattr("sys.argv", ["script.py", *argv])
    names: dict[str, Any] = {}
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            exec(HEAD + script, names)
    except SystemExit:
        return EXIT
    args = names["args"]
    return vars(args) if isinstance(args, argparse.Namespace) else (vars(args[0]), args[1])


def typed(value: Any) -> Any:
    """The value with the types of its parts: 1 is not True, nor 1.0."""
    if isinstance(value, dict):
        return {name: typed(v) for name, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(typed, value))
    return (PurePath if isinstance(value, PurePath) else type(value), value)


PARSE = "args = parser.parse_args()\n"
KNOWN = "args = parser.parse_known_args()\n"

CASES: dict[str, tuple[str, list[str]]] = {
    "types": (
        'add("-n", "--number", type=int, default=3)\nadd("--rate", type=float, default=0.5)\n'
        'add("--name", default="x")\nadd("--out", type=Path, default=Path("build"))\n' + PARSE,
        [
            "",
            "-n 4",
            "-n4",
            "--number=5",
            "--num 6",
            "--rate 2",
            "--rate 1e-3",
            "--name a --out b/c",
            "--out=d",
            "-n -4",
        ],
    ),
    "defaults as text": (
        'add("--n", type=int, default="8")\nadd("--out", type=Path, default="build")\nadd("--name", type=str)\n'
        + PARSE,
        ["", "--n 4", "--name=", "--out x"],
    ),
    "switches": (
        'add("--on", action="store_true")\nadd("--off", action="store_false")\nadd("-v", action="count", default=0)\n'
        'add("--no-x", dest="x", action="store_false", default=True)\nadd("-q", "--quiet", action="store_true")\n'
        + PARSE,
        ["", "--on", "--off", "-v", "-vvv", "-v -v", "--no-x", "-q", "-qv", "--on --off --no-x --quiet"],
    ),
    "boolean options": (
        'add("--a", action=argparse.BooleanOptionalAction)\n'
        'add("--b", action=argparse.BooleanOptionalAction, default=True)\n' + PARSE,
        ["", "--a", "--no-a", "--b", "--no-b", "--no-b --b"],
    ),
    "constants": (
        'add("--small", dest="size", action="store_const", const=1, default=4)\n'
        'add("--large", dest="size", action="store_const", const=9)\nadd("--opt", nargs="?", const="c", default="d")\n'
        + PARSE,
        ["", "--small", "--large", "--large --small", "--opt", "--opt e"],
    ),
    "options of one destination": (
        'add("--dynamic", dest="d", action="store_true")\nadd("--static", dest="d", action="store_false")\n'
        'add("--on", dest="e", action="store_false")\nadd("--off", dest="e", action="store_true")\n'
        'add("--int8", dest="mode", action="store_const", const="int8")\n'
        'add("--int4", dest="mode", action="store_const", const="int4", default="no")\n'
        'add("--mode", dest="mode", default="never")\n'
        'add("--k", dest="names", action="append_const", const="keyCache")\n'
        'add("--v", dest="names", action="append_const", const="valueCache")\n'
        'add("--name", dest="names", action="append")\n' + PARSE,
        [
            *("", "--dynamic", "--static", "--static --dynamic", "--off", "--on", "--int8", "--int4", "--int4 --int8"),
            *("--mode fp16", "--int8 --mode a", "--mode a --int4", "--k --v", "--v --name x --k"),
        ],
    ),
    "several values": (
        'add("--two", nargs=2, type=int)\nadd("--some", nargs="+")\nadd("--any", nargs="*", default=["d"])\n'
        'add("--again", action="append")\nadd("--more", action="extend", nargs="+", type=int)\n' + PARSE,
        [
            "",
            "--two 1 2",
            "--some a",
            "--some a b --two 3 4",
            "--any",
            "--any x y",
            "--again a --again b",
            "--more 1 2 --more 3",
        ],
    ),
    "positionals": (
        'add("mode")\nadd("n", type=int, nargs="?", default=2)\nadd("rest", nargs="*")\nadd("--x", type=int)\n' + PARSE,
        ["a", "a 3", "a 3 b c", "--x 1 a", "a --x 1 3 b", "a 3 --x=4"],
    ),
    "a positional of several values": ('add("files", nargs="+")\nadd("--x")\n' + PARSE, ["a", "a b c", "--x y a b"]),
    "the rest": ('add("--x")\nadd("rest", nargs=argparse.REMAINDER)\n' + PARSE, ["a --x b", "--x y a --z", "a"]),
    "choices": (
        'add("--mode", choices=["a", "b"], default="a")\nadd("--n", type=int, choices=(1, 2), default=1)\n' + PARSE,
        ["", "--mode b", "--mode=a --n 2"],
    ),
    "choices of several values": (
        'add("--many", nargs="+", type=int, choices=range(3), default=[7])\nadd("one", nargs="?", choices={"x": 1})\n'
        + PARSE,
        ["", "--many 1 2", "x"],
    ),
    "names": (
        'add("--dash-ed", type=int, default=1)\nadd("-s", type=int, default=2)\n'
        'add("--long", "-l", dest="other", default="o")\n'
        'add("--a", "--alias-of-a", default="x")\n' + PARSE,
        ["", "--dash-ed 3", "-s 4", "-l p", "--long q", "--alias-of-a z", "--dash 5"],
    ),
    "known arguments": (
        'add("--x", type=int, default=1)\n' + KNOWN,
        ["", "--x 2", "--y", "--x 2 --y z", "more --y=1 --x 3", "-- --x"],
    ),
    "groups": (
        'g = parser.add_argument_group("g")\ng.add_argument("--a", type=int, default=1)\n'
        'e = parser.add_mutually_exclusive_group()\ne.add_argument("--b", action="store_true")\n'
        'e.add_argument("--c", action="store_true")\n' + PARSE,
        ["", "--a 2", "--b", "--c --a 3"],
    ),
    "set_defaults": (
        'add("--a", type=int, default=1)\nparser.set_defaults(a=5, b="c")\n' + PARSE,
        ["", "--a 2"],
    ),
    "parents": (
        'base = argparse.ArgumentParser(add_help=False)\nbase.add_argument("--a", type=int, default=1)\n'
        'parser = argparse.ArgumentParser(parents=[base])\nparser.add_argument("--b", default="x")\n' + PARSE,
        ["", "--a 2", "--b y --a 3"],
    ),
    "defaults that are added to": (
        'add("--x", action="append", default=["a"])\nadd("--y", action="extend", nargs="+", type=int, default=[1])\n'
        'add("-v", action="count", default=2)\nadd("-w", action="count")\n' + PARSE,
        ["", "--x b", "--x b --x c", "--y 2 3", "-v", "-vv -w", "-ww"],
    ),
    "sub-commands": (
        'add("--top", type=int, default=0)\ns = parser.add_subparsers(dest="command", required=True)\n'
        'one = s.add_parser("one")\none.add_argument("--n", type=int, default=1)\n'
        'two = s.add_parser("two")\ntwo.add_argument("name")\ntwo.add_argument("--n", type=int, default=2)\n' + PARSE,
        ["one", "two a", "one --n 4", "two --n 5 b", "--top 3 one", "--top 3 two c --n 6"],
    ),
    "a type of the script": (
        "def pair(text):\n    a, b = text.split('x')\n    return (int(a), int(b))\n"
        'add("--size", type=pair, default=(1, 1))\nadd("--names", type=lambda s: s.split(","), default=[])\n' + PARSE,
        ["", "--size 3x4", "--names a,b,c", "--size 5x6 --names d"],
    ),
    "a list of arguments": ('add("--n", type=int)\nargs = parser.parse_args(["--n", "7"])\n', ["", "--n 3"]),
    "what argparse refuses": (
        'add("--n", type=int, default=1)\nadd("--two", nargs=2)\nadd("--k", type=int, choices=[1, 2])\n' + PARSE,
        ["--k x", "--n x", "--n", "--two a", "--other", "more"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_values_are_those_of_argparse(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script, lines = CASES[case]
    for line in lines:
        argv = line.split()
        expected = real(script, argv, monkeypatch)
        found = told(tmp_path, script, argv)
        assert found == expected, argv
        assert typed(found) == typed(expected), argv


@pytest.mark.parametrize(
    ("option", "argv", "value"),
    [
        ('add("--n", type=int, required=True)', "", OPEN),
        ('add("--n", type=int, required=True)', "--n 3", 3),
        ('add("n")', "", OPEN),
        ('add("n")', "a", "a"),
        ('add("n", choices=["a", "b"])', "", OPEN),
        ('add("--n", choices=["a"], required=True)', "", "a"),
    ],
)
def test_what_argparse_would_ask_for_is_open(option: str, argv: str, value: Any, tmp_path: Path) -> None:
    """A run without a required option is how the scan reads a script by default: the option may then be anything."""
    found = told(tmp_path, f"{option}\n{PARSE}", argv.split())
    assert found == {"n": value}


@pytest.mark.parametrize(
    ("option", "argv", "value"),
    [
        ('add("--n", choices=["a", "b"])', "--n c", OPEN),
        ('add("--n", type=int, choices=(1, 2))', "--n 3", OPEN),
        ('add("--n", choices={"a": 1})', "--n b", "a"),
        ('add("n", choices=["a", "b"])', "c", OPEN),
        ('add("--n", nargs="+", type=int, choices=range(3))', "--n 1 7", [1, OPEN]),
    ],
)
def test_what_is_no_choice_may_be_any_choice(option: str, argv: str, value: Any, tmp_path: Path) -> None:
    """The script would refuse it: a recipe that says so is reported, and read as one that names some choice."""
    names, it = run(tmp_path, f"{option}\n{PARSE}", argv.split())
    assert plain(names["args"]) == {"n": value}
    assert "has no choice" in it.sinks.problems[0][0]


@pytest.mark.parametrize(
    "given",
    [
        '["--n", "2"] if os.environ.get("X") else ["--n", "3"]',
        '["--n", "2"] if os.environ.get("X") else None',
        '["--n", os.environ["N"]]',
        "[f\"--n={os.environ['N']}\"]",
        'os.environ["ARGS"].split()',
        '["--n", "2", *os.environ["ARGS"].split()]',
    ],
)
def test_a_command_line_that_is_not_known_is_open(given: str, tmp_path: Path) -> None:
    script = f'import os\nadd("--n", default="1")\nargs = parser.parse_args({given})\nn = args.n\n'
    assert plain(run(tmp_path, script)[0]["n"]) == OPEN


@pytest.mark.parametrize(("settings", "kind"), [("type=int", "int"), ("type=float", "float"), ("help='a name'", "str")])
def test_an_open_option_has_its_type(settings: str, kind: str, tmp_path: Path) -> None:
    names, it = run(tmp_path, f'add("--n", required=True, {settings})\n{PARSE}given = args.n is not None\nn = args.n\n')
    assert plain(names["given"]) is True
    assert isinstance(names["n"], Unknown)
    assert names["n"].kind == kind
    assert list(it.flag_table) == ["--n"]


@pytest.mark.parametrize(
    ("use", "flags"),
    [
        ("args.a", {"--a"}),
        ("args.b", {"--b"}),
        ("args.a + args.n", {"--a", "--n"}),
        ("args.a if args.b else args.n", {"--a", "--b"}),
        ("len(args.many)", {"--many"}),
        ("args.where / 'x'", {"--where"}),
        ("vars(args)['a']", {"--a"}),
        ("getattr(args, 'n')", {"--n"}),
    ],
)
def test_a_value_remembers_its_options(use: str, flags: set[str], tmp_path: Path) -> None:
    script = (
        'add("-a", "--a", type=int, default=1)\nadd("--b", action="store_true", default=True)\n'
        'add("--n", type=int, default=2)\n'
        'add("--many", nargs="+", default=[1, 2])\nadd("--where", type=Path, default=Path("o"))\n'
        f"{PARSE}result = {use}\n"
    )
    names, _ = run(tmp_path, script)
    assert names["result"].flags == flags


@pytest.mark.parametrize(
    ("option", "kind", "choices"),
    [
        ('"--n", action="store_true"', "switch", None),
        ('"--n", action="store_false"', "switch", None),
        ('"--n", action=argparse.BooleanOptionalAction', "switch", None),
        ('"--n", choices=["a", "b"]', "choice", ["a", "b"]),
        ('"--n", choices={"a": 1, "b": 2}', "choice", ["a", "b"]),
        ('"--n", type=int', "value", None),
        ('"n"', "value", None),
    ],
)
def test_kinds_of_options(option: str, kind: str, choices: list[str] | None, tmp_path: Path) -> None:
    _, it = run(tmp_path, f"add({option})\n{PARSE}")
    (found,) = it.flag_table.values()
    assert found.kind == kind
    assert found.positional is (option == '"n"')
    assert (None if found.choices is None else [plain(c) for c in found.choices]) == choices
