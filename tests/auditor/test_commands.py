"""Command lines by typer, click and fire: defaults, options, several commands, and the variants that they offer."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.changes import changed
from auditor.stdlib.options.option import Option
from rules.facts import Graph, InvocationKind, Scan
from rules.verdict import judge
from tests.auditor.support import EXPORTER, scan_text

LIBRARY = EXPORTER.split('if __name__ == "__main__":')[0] + (
    "\n\nclass Given:\n    def __init__(self, static):\n        self.static = static\n"
)
HEAD = """\
from enum import Enum
from typing import Annotated, Optional
from pathlib import Path
from library import Given, export
"""

DEFAULT_IS_DYNAMIC = {
    "typer, a flag": """\
import typer
app = typer.Typer(add_completion=False)

@app.command()
def main(out: Path = typer.Option(Path("x"), "--out"), static: bool = typer.Option(False, help="pin")):
    export(Given(static))

if __name__ == "__main__":
    app()
""",
    "typer, annotated, an enumeration": """\
import typer

class Mode(str, Enum):
    free = "free"
    fixed = "fixed"

def main(name: str, mode: Annotated[Mode, typer.Option("--mode")] = Mode.free, limit: Optional[int] = None):
    export(Given(mode == Mode.fixed))

if __name__ == "__main__":
    typer.run(main)
""",
    "click": """\
import click

@click.command()
@click.option("--static", is_flag=True)
@click.option("--context", "length", type=int, default=64, show_default=True)
@click.argument("name")
def main(static, length, name):
    export(Given(static or length < 2))

if __name__ == "__main__":
    main()
""",
    "click, a choice": """\
import click

@click.command()
@click.option("--mode", type=click.Choice(["fixed", "free"]), default="free")
def main(mode):
    export(Given(mode == "fixed"))

if __name__ == "__main__":
    main(standalone_mode=False)
""",
    "fire, a function": """\
import fire

def main(name="m", static=False):
    export(Given(static))

if __name__ == "__main__":
    fire.Fire(main)
""",
}


def default_and_variants(result: Scan) -> tuple[list[str], dict[tuple[str, ...], str]]:
    def says(graph: Graph) -> str:
        return judge(graph.facts).says()

    mine = [g for g in result.graphs if g.script == "export.py"]
    default = [says(g) for g in mine if g.invocation.kind is InvocationKind.DEFAULT]
    return default, {g.invocation.argv: says(g) for g in mine if g.invocation.kind is InvocationKind.VARIANT}


@pytest.mark.parametrize("name", sorted(DEFAULT_IS_DYNAMIC))
def test_defaults_and_the_variant_of_the_option(tmp_path: Path, name: str) -> None:
    result = scan_text(tmp_path, {"library.py": LIBRARY, "export.py": HEAD + DEFAULT_IS_DYNAMIC[name]})
    default, variants = default_and_variants(result)
    assert default == ["eligible"]
    assert "out by static-query" in variants.values()


def test_a_default_that_pins_the_query(tmp_path: Path) -> None:
    pinned = DEFAULT_IS_DYNAMIC["typer, a flag"].replace(
        "typer.Option(False", 'typer.Option(True, "--static/--dynamic"'
    )
    default, variants = default_and_variants(scan_text(tmp_path, {"library.py": LIBRARY, "export.py": HEAD + pinned}))
    assert default == ["out by static-query"]
    assert variants == {("--dynamic",): "eligible"}


SEVERAL = """\
import typer
app = typer.Typer()

@app.command()
def pinned(static: bool = True):
    export(Given(static))

@app.command("free")
def other():
    export(Given(False))

if __name__ == "__main__":
    app()
"""


def test_several_commands_are_as_many_invocations(tmp_path: Path) -> None:
    result = scan_text(tmp_path, {"library.py": LIBRARY, "export.py": HEAD + SEVERAL})
    mine = [g for g in result.graphs if g.script == "export.py" and g.invocation.kind is InvocationKind.DEFAULT]
    assert {g.invocation.argv: judge(g.facts).says() for g in mine} == {
        ("pinned",): "out by static-query",
        ("free",): "eligible",
    }
    _, variants = default_and_variants(result)
    assert variants == {("pinned", "--no-static"): "eligible"}


def test_fire_takes_classes_and_dictionaries(tmp_path: Path) -> None:
    table = "import fire\n\n\ndef run():\n    export(Given(False))\n\n\nfire.Fire({'run': run})\n"
    cls = (
        "import fire\n\n\nclass Tool:\n    def run(self, static=False):\n        export(Given(static))\n\n"
        "    def _hidden(self):\n        export(Given(True))\n\n\nfire.Fire(Tool)\n"
    )
    for folder, script in (("table", table), ("cls", cls)):
        default, _ = default_and_variants(
            scan_text(tmp_path / folder, {"library.py": LIBRARY, "export.py": HEAD + script})
        )
        assert default == ["eligible"], folder


def test_a_default_that_the_script_refuses_is_tried_with_each_choice(tmp_path: Path) -> None:
    script = """\
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--part", choices=["one", "two", "all"], default="all")
args = parser.parse_args()
if args.part == "one":
    export(Given(False))
elif args.part == "two":
    export(Given(True))
else:
    raise ValueError(args.part)
"""
    result = scan_text(tmp_path, {"library.py": LIBRARY, "export.py": HEAD + script})
    mine = [g for g in result.graphs if g.script == "export.py" and g.invocation.kind is InvocationKind.DEFAULT]
    assert {g.invocation.argv: judge(g.facts).says() for g in mine} == {
        ("--part", "one"): "eligible",
        ("--part", "two"): "out by static-query",
    }


def test_how_a_boolean_option_is_switched_off() -> None:
    from auditor.values import TRUE, Const

    plain = Option("--static", ("--static",), "static", {"default": TRUE}, "boolean", None)
    named = Option("--static", ("--static",), "static", {"default": TRUE, "off": Const("--free")}, "boolean", None)
    assert [c.argv for c in changed((), [plain])] == [("--no-static",)]
    assert [c.argv for c in changed((), [named])] == [("--free",)]
