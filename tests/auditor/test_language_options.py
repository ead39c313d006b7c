# ruff: noqa: E501  (one snippet a line reads better than a folded one)
"""Command lines: the evaluator reads options as Python's argparse does. Each snippet is also run, and both must agree."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.auditor.support import told_by_python, told_by_the_scan

PARSER = "import argparse\np = argparse.ArgumentParser()\n"

Case = tuple[str, tuple[str, ...]]

CASES: dict[str, Case] = {
    "a positional": ('p.add_argument("name")\nNAME = p.parse_args().name', ("decode",)),
    "an optional positional": ('p.add_argument("n", nargs="?", type=int, default=3)\nWIDTH = p.parse_args().n', ()),
    "an optional positional, given": ('p.add_argument("n", nargs="?", type=int)\nWIDTH = p.parse_args().n', ("7",)),
    "a const": ('p.add_argument("--w", nargs="?", type=int, const=9, default=2)\nWIDTH = p.parse_args().w', ("--w",)),
    "a value": ('p.add_argument("--width", type=int)\nWIDTH = p.parse_args().width', ("--width", "6")),
    "an equals sign": ('p.add_argument("--width", type=int)\nWIDTH = p.parse_args().width', ("--width=6",)),
    "a short option": ('p.add_argument("-w", "--width", type=int)\nWIDTH = p.parse_args().width', ("-w", "6")),
    "a short option without a space": ('p.add_argument("-w", type=int)\nWIDTH = p.parse_args().w', ("-w6",)),
    "an abbreviation": ('p.add_argument("--width", type=int)\nWIDTH = p.parse_args().width', ("--wid", "6")),
    "a default": ('p.add_argument("--width", type=int, default=5)\nWIDTH = p.parse_args().width', ()),
    "a default as text": ('p.add_argument("--width", type=int, default="5")\nWIDTH = p.parse_args().width', ()),
    "a dest": ('p.add_argument("--width", dest="w", type=int, default=5)\nWIDTH = p.parse_args().w', ()),
    "a dash": ('p.add_argument("--query-width", type=int, default=5)\nWIDTH = p.parse_args().query_width', ()),
    "store_true": ('p.add_argument("--one", action="store_true")\nWIDTH = 1 if p.parse_args().one else 4', ("--one",)),
    "store_true, absent": ('p.add_argument("--one", action="store_true")\nWIDTH = 1 if p.parse_args().one else 5', ()),
    "store_false": (
        'p.add_argument("--no-dynamic", dest="dynamic", action="store_false")\nDYNAMIC = p.parse_args().dynamic',
        (),
    ),
    "store_const": (
        'p.add_argument("--one", dest="w", action="store_const", const=1, default=6)\nWIDTH = p.parse_args().w',
        ("--one",),
    ),
    "two flags of one dest": (
        'p.add_argument("--big", dest="w", action="store_const", const=32)\n'
        'p.add_argument("--small", dest="w", action="store_const", const=8)\nWIDTH = p.parse_args().w',
        ("--small",),
    ),
    "an optional boolean": (
        'p.add_argument("--dynamic", action=argparse.BooleanOptionalAction, default=True)\n'
        "DYNAMIC = p.parse_args().dynamic",
        ("--no-dynamic",),
    ),
    "an optional boolean, by default": (
        'p.add_argument("--dynamic", action=argparse.BooleanOptionalAction, default=True)\n'
        "DYNAMIC = p.parse_args().dynamic",
        (),
    ),
    "choices": (
        'p.add_argument("--mode", choices=["one", "many"], default="one")\n'
        'WIDTH = {"one": 1, "many": 16}[p.parse_args().mode]',
        ("--mode", "many"),
    ),
    "choices of numbers": ('p.add_argument("--w", type=int, choices=(1, 8))\nWIDTH = p.parse_args().w', ("--w", "8")),
    "append": ('p.add_argument("--state", action="append")\nSTATES = p.parse_args().state', ("--state=k", "--state=v")),
    "count": ('p.add_argument("-v", action="count", default=0)\nWIDTH = 1 + p.parse_args().v', ("-vv",)),
    "several values": ('p.add_argument("--states", nargs="+")\nSTATES = p.parse_args().states', ("--states", "k", "v")),
    "several values, then an option": (
        'p.add_argument("--states", nargs="*")\np.add_argument("--w", type=int)\n'
        "a = p.parse_args()\nSTATES, WIDTH = a.states, a.w",
        ("--states", "k", "v", "--w", "3"),
    ),
    "two values": (
        'p.add_argument("--range", nargs=2, type=int)\nWIDTH = p.parse_args().range[1]',
        ("--range", "1", "6"),
    ),
    "the rest": ('p.add_argument("rest", nargs=argparse.REMAINDER)\nNAME = p.parse_args().rest[-1]', ("a", "--b", "c")),
    "parse_known_args": (
        'p.add_argument("--w", type=int, default=2)\nargs, rest = p.parse_known_args()\nWIDTH = args.w + len(rest)',
        ("--w", "3", "--other", "x"),
    ),
    "set_defaults": ('p.add_argument("--w", type=int)\np.set_defaults(w=7)\nWIDTH = p.parse_args().w', ()),
    "a group": (
        'g = p.add_argument_group("graph")\ng.add_argument("--w", type=int, default=7)\nWIDTH = p.parse_args().w',
        (),
    ),
    "an exclusive group": (
        "g = p.add_mutually_exclusive_group()\n"
        'g.add_argument("--one", action="store_true")\ng.add_argument("--eight", action="store_true")\n'
        "a = p.parse_args()\nWIDTH = 1 if a.one else 8 if a.eight else 4",
        ("--eight",),
    ),
    "a parent": (
        'base = argparse.ArgumentParser(add_help=False)\nbase.add_argument("--w", type=int, default=7)\n'
        "child = argparse.ArgumentParser(parents=[base])\nWIDTH = child.parse_args().w",
        ("--w", "2"),
    ),
    "sub-parsers": (
        's = p.add_subparsers(dest="command", required=True)\n'
        'a = s.add_parser("decode")\na.add_argument("--w", type=int, default=1)\n'
        'b = s.add_parser("prefill")\nb.add_argument("--w", type=int, default=64)\n'
        "args = p.parse_args()\nNAME, WIDTH = args.command, args.w",
        ("prefill",),
    ),
    "sub-parsers with a function": (
        "s = p.add_subparsers()\n"
        "def decode(args): return 1\ndef prefill(args): return args.w\n"
        's.add_parser("decode").set_defaults(run=decode)\n'
        'b = s.add_parser("prefill")\nb.add_argument("--w", type=int, default=64)\nb.set_defaults(run=prefill)\n'
        "args = p.parse_args()\nWIDTH = args.run(args)",
        ("prefill", "--w", "32"),
    ),
    "a type function": (
        'def width(text): return int(text) * 2\np.add_argument("--w", type=width, default=4)\nWIDTH = p.parse_args().w',
        ("--w", "3"),
    ),
    "a lambda as type": (
        'p.add_argument("--states", type=lambda s: s.split(","))\nSTATES = p.parse_args().states',
        ("--states", "k,v"),
    ),
    "a Path": (
        'from pathlib import Path\np.add_argument("--out", type=Path, default=Path("build"))\n'
        'BUNDLE = p.parse_args().out / "m.aimodel"',
        ("--out", "x/y"),
    ),
    "handed on": (
        'p.add_argument("--w", type=int, default=3)\ndef run(args):\n    return inner(args)\n'
        "def inner(o):\n    return o.w + 1\nWIDTH = run(p.parse_args())",
        (),
    ),
    "splatted": (
        'p.add_argument("--w", type=int, default=3)\np.add_argument("--name", default="x")\n'
        "def run(w, name): return w, name\nWIDTH, NAME = run(**vars(p.parse_args()))",
        ("--name", "y"),
    ),
    "getattr": ('p.add_argument("--w", type=int, default=3)\nWIDTH = getattr(p.parse_args(), "w")', ()),
    "getattr of what is not there": ("WIDTH = getattr(p.parse_args(), 'w', 11)", ()),
    "hasattr": ("WIDTH = 1 if hasattr(p.parse_args(), 'w') else 2", ()),
    "an argv of its own": (
        'p.add_argument("--w", type=int)\ndef main(argv=None):\n    return p.parse_args(argv).w\nWIDTH = main(["--w", "5"])',
        ("--w", "9"),
    ),
    "sys.argv": ("import sys\nNAME = sys.argv[1]\nWIDTH = len(sys.argv)", ("a", "b")),
    "a slice of sys.argv": (
        'import sys\np.add_argument("n", type=int)\nWIDTH = p.parse_args(sys.argv[2:]).n',
        ("x", "4"),
    ),
    "a word in sys.argv": ('import sys\nDYNAMIC = "--dynamic" in sys.argv', ("--dynamic",)),
    "a namespace of its own": (
        'ns = argparse.Namespace(w=6)\np.add_argument("--w", type=int)\np.parse_args(namespace=ns)\nWIDTH = ns.w',
        (),
    ),
    "a loop that adds options": (
        'for n in ("a", "b"):\n    p.add_argument(f"--{n}", type=int, default=2)\n'
        "args = p.parse_args()\nWIDTH = args.a * args.b",
        ("--b", "5"),
    ),
    "a function that adds options": (
        'def add(parser, *, default):\n    parser.add_argument("--w", type=int, default=default)\n    return parser\n'
        "WIDTH = add(p, default=12).parse_args().w",
        (),
    ),
    "a subclass of the parser": (
        "class Parser(argparse.ArgumentParser):\n    def __init__(self):\n        super().__init__()\n"
        '        self.add_argument("--w", type=int, default=13)\nWIDTH = Parser().parse_args().w',
        (),
    ),
    "after two dashes": ('p.add_argument("name")\nNAME = p.parse_args().name', ("--", "-x")),
    "a negative number": ('p.add_argument("--w", type=int)\nWIDTH = -p.parse_args().w', ("--w", "-3")),
}


RARE = frozenset({"a namespace of its own", "a subclass of the parser", "an abbreviation"})
"""What scripts hardly ever do: it may stay unknown, and must not be wrong."""


@pytest.mark.parametrize("name", sorted(CASES))
def test_agrees_with_argparse(tmp_path: Path, name: str) -> None:
    code, argv = CASES[name]
    ran, read = told_by_python(tmp_path, PARSER + code, argv), told_by_the_scan(tmp_path, PARSER + code, argv)
    assert read.agrees(ran), (read, ran)
    if name not in RARE:
        assert read == ran
