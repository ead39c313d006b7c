"""Scripts that reach an export call by way of modules that only define something, or by starting another program."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.facts import FileStatus
from rules.verdict import judge
from tests.auditor.support import EXPORTER, default_graphs, file_of, mutate, scan_text

EXPORTS = mutate(
    EXPORTER.split('if __name__ == "__main__":\n')[0],
    ("def export(args):\n", "def export(static):\n"),
    ("tokens = 1 if args.static else 8", "tokens = 1 if static else 8"),
    ('"input_ids": None if args.static else', '"input_ids": None if static else'),
)
PIPELINE = "from convert import export\n\n\ndef run(static=False):\n    return export(static)\n"
STEPS = "from pipeline import run\n\n\nclass Steps:\n    def all(self):\n        return run()\n"


def said(root: Path, files: dict[str, str], script: str) -> list[str]:
    return [judge(g.facts).says() for g in default_graphs(scan_text(root, files), script)]


@pytest.mark.parametrize(
    "script",
    [
        'from pipeline import run\n\nif __name__ == "__main__":\n    run()\n',
        "from pipeline import run\n\nrun()\n",
        "from pipeline import run\n\nmade = run()\n",
        "import pipeline\n\nmade, other = pipeline.run(), 1\n",
        "import os\nimport pipeline\n\nif os.name:\n    print('now')\n    pipeline.run()\n",
        "import pipeline\n\ntry:\n    pipeline.run()\nexcept OSError:\n    raise\n",
        "from steps import Steps\n\nSteps().all()\n",
        "from package import run\n\nrun()\n",
        "import package\n\npackage.run()\n",
    ],
)
def test_a_module_between_a_script_and_its_export(tmp_path: Path, script: str) -> None:
    files = {
        "convert.py": EXPORTS,
        "pipeline.py": PIPELINE,
        "steps.py": STEPS,
        "package/__init__.py": "from pipeline import run\n",
        "go.py": script,
    }
    assert said(tmp_path, files, "go.py") == ["eligible"]


@pytest.mark.parametrize(
    "script",
    [
        "from pipeline import NAME\n\nprint(NAME)\n",
        "import logging\nfrom pipeline import run\n\nLOG = logging.getLogger(__name__)\n\n\ndef later():\n    run()\n",
        "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from pipeline import run\n",
    ],
)
def test_scripts_that_export_nothing(tmp_path: Path, script: str) -> None:
    files = {"convert.py": EXPORTS, "pipeline.py": PIPELINE + '\n\nNAME = "x"\n', "go.py": script}
    result = scan_text(tmp_path, files)
    assert default_graphs(result, "go.py") == []
    assert file_of(result, "go.py").status is FileStatus.NO_EXPORT


COMMANDS = """\
import typer

from convert import export

app = typer.Typer()


@app.command()
def decoder(static: bool = False):
    export(static)
"""


def test_commands_that_another_module_puts_into_an_app(tmp_path: Path) -> None:
    files = {"convert.py": EXPORTS, "commands.py": COMMANDS, "go.py": "from commands import app\n\napp()\n"}
    graphs = scan_text(tmp_path, files).graphs
    assert [judge(g.facts).says() for g in graphs if g.script == "go.py"] == ["eligible", "out by static-query"]


def test_commands_of_another_module_in_a_group(tmp_path: Path) -> None:
    script = (
        "import typer\nfrom commands import app as inner\n\n"
        'app = typer.Typer()\napp.add_typer(inner, name="export")\napp()\n'
    )
    assert said(tmp_path, {"convert.py": EXPORTS, "commands.py": COMMANDS, "go.py": script}, "go.py") == ["eligible"]


SCRIPT = EXPORTS + (
    '\nif __name__ == "__main__":\n'
    "    parser = argparse.ArgumentParser()\n"
    '    parser.add_argument("--static", action="store_true")\n'
    "    export(parser.parse_args().static)\n"
)
PROJECT = '[project]\nname = "zoo"\nversion = "1"\n\n[project.scripts]\nzoo-export = "tools.commands:app"\n'


STATIC, FLEXIBLE = "out by static-query", "eligible"
LOOP = 'for more in ([], ["--static"]):\n    subprocess.run([sys.executable, "tools/export.py", *more])'


@pytest.mark.parametrize(
    ("start", "says"),
    [
        ('subprocess.run(["python", "tools/export.py", "--static"], check=True)', [STATIC]),
        ('subprocess.check_call([sys.executable, "-m", "tools.export"])', [FLEXIBLE]),
        (LOOP, [FLEXIBLE, STATIC]),
        ('os.system("python tools/export.py --static")', [STATIC]),
        ('subprocess.run("zoo-export --static", shell=True)', [STATIC]),
        ('sys.argv = ["x", "--static"]\nrunpy.run_module("tools.export", run_name="__main__")', [STATIC]),
        ('sys.argv[1:] = ["--static"]\nrunpy.run_path("tools/export.py", run_name="__main__")', [STATIC]),
        ('subprocess.run(["python", "tools/other.py"])  # and not tools/export.py', []),
        ('subprocess.run(["cat", "tools/export.py"])', []),
    ],
)
def test_a_script_that_only_starts_another(tmp_path: Path, start: str, says: list[str]) -> None:
    files = {
        "tools/export.py": SCRIPT,
        "tools/other.py": "print(1)\n",
        "tools/convert.py": EXPORTS,
        "tools/commands.py": COMMANDS,
        "pyproject.toml": PROJECT,
        "all.py": f"import os\nimport runpy\nimport subprocess\nimport sys\n\n{start}\n",
    }
    assert said(tmp_path, files, "all.py") == says


@pytest.mark.parametrize(("static", "says"), [("False", "eligible"), ("True", "out by static-query")])
def test_a_script_that_starts_another_and_exports_by_a_switch(tmp_path: Path, static: str, says: str) -> None:
    own = EXPORTS + (
        "\nimport subprocess\n\nparser = argparse.ArgumentParser()\n"
        'parser.add_argument("--fuse", action="store_true")\nparser.add_argument("--quiet", action="store_true")\n'
        'args = parser.parse_args()\nsubprocess.run(["python", "other.py", "--static"])\n'
        f"if args.fuse:\n    export({static})\n"
    )
    graphs = [g for g in scan_text(tmp_path, {"all.py": own, "other.py": SCRIPT}).graphs if g.script == "all.py"]
    assert [(g.invocation.argv, judge(g.facts).says()) for g in graphs] == [
        ((), "out by static-query"),
        (("--fuse",), says),
    ]


def test_a_path_that_may_be_one_of_two_scripts(tmp_path: Path) -> None:
    """Nobody knows whether the current folder is that of the script or the root."""
    files = {
        "export.py": SCRIPT,
        "tools/export.py": SCRIPT,
        "tools/all.py": 'import subprocess\n\nsubprocess.run(["python", "export.py"])\n',
    }
    assert said(tmp_path, files, "tools/all.py") == []
