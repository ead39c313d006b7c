"""Scripts that reach an export call by way of modules that only define something, or by starting another program."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.facts import FileStatus
from rules.verdict import judge
from tests.auditor.support import EXPORTER, default_graphs, file_of, mutate, scan_text, write

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
IMPORTED = ("asyncio", "os", "runpy", "subprocess", "sys")
ASYNC = "async def go():\n    p = await asyncio.create_subprocess_{}\n    await p.wait()\n\n\nasyncio.run(go())"
LOOP = 'for more in ([], ["--static"]):\n    subprocess.run([sys.executable, "tools/export.py", *more])'


def only_what_is_used(text: str) -> str:
    """The imports of a script: a further one might be what it is looked at for."""
    imports = [f"import {name}" for name in IMPORTED if f"{name}." in text]
    imports += ["from pathlib import Path"] * ("Path(" in text) + ["from tools.convert import export"] * (
        "export(" in text
    )
    return "\n".join(imports)


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
        ('subprocess.run([sys.executable, "export.py", "--static"], cwd="tools")', [STATIC]),
        ('subprocess.run([sys.executable, "export.py"], cwd=Path(__file__).resolve().parent / "tools")', [FLEXIBLE]),
        ('subprocess.run([sys.executable, "-m", "export", "--static"], cwd="tools")', [STATIC]),
        ('subprocess.run("cd tools && python export.py --static", shell=True)', [STATIC]),
        ('subprocess.run(["bash", "-c", "cd tools; exec python3 export.py --static"])', [STATIC]),
        ('subprocess.run(["nohup", "nice", "-n", "5", "python", "tools/export.py", "--static"])', [STATIC]),
        ('os.execv(sys.executable, [sys.executable, "tools/export.py", "--static"])\nexport(False)', [STATIC]),
        ('os.execlp("python3", "python3", "tools/export.py")', [FLEXIBLE]),
        ('from os import environ, system\nsystem("python tools/export.py --static")', [STATIC]),
        ('from os import (\n    environ,\n    popen,\n)\npopen("python tools/export.py --static").read()', [STATIC]),
        ('import subprocess as sp\nsp.run(["python", "tools/export.py", "--static"])', [STATIC]),
        ('from runpy import run_path\nrun_path("tools/export.py", run_name="__main__")', [FLEXIBLE]),
        ('os.popen("python tools/export.py --static").read()', [STATIC]),
        ('print(subprocess.getoutput("python tools/export.py --static"))', [STATIC]),
        ('with subprocess.Popen(["python", "tools/export.py", "--static"]) as p:\n    p.communicate()', [STATIC]),
        ('p = subprocess.Popen(["python", "tools/export.py"])\nif p.wait() != 0:\n    sys.exit(p.poll())', [FLEXIBLE]),
        (ASYNC.format('exec(sys.executable, "tools/export.py", "--static")'), [STATIC]),
        (ASYNC.format('shell("python tools/export.py --static")'), [STATIC]),
        ('subprocess.run([sys.executable, "-m", "package", "--static"])', [STATIC]),
        ('runpy.run_module("package")', [FLEXIBLE]),
        ('subprocess.run([sys.executable, "export.py"], cwd="elsewhere")  # tools/export.py', []),
        ('subprocess.run("cd elsewhere && python export.py", shell=True)  # tools/export.py', []),
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
        "package/__init__.py": "from tools.convert import export\n",
        "package/__main__.py": SCRIPT,
        "all.py": f"{only_what_is_used(start)}\n{start}\n",
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


def test_a_module_of_a_library_that_is_run(tmp_path: Path) -> None:
    """`python -m`, with its package's `__main__` and by its own name; and one that the library does not have."""
    library = {
        "kit/__init__.py": "",
        "kit/__main__.py": SCRIPT,
        "kit/tools/__init__.py": "",
        "kit/tools/make.py": SCRIPT,
    }
    starts = {
        "all.py": '"kit.tools.make", "--static"',
        "package.py": '"kit"',
        "gone.py": '"kit.tools.gone"',
    }
    files = {name: f'import subprocess\n\nsubprocess.run(["python", "-m", {what}])\n' for name, what in starts.items()}
    write(tmp_path / "library", library)
    result = scan_text(tmp_path / "exports", files, libraries=(tmp_path / "library",))
    said = {name: [judge(g.facts).says() for g in default_graphs(result, name)] for name in files}
    assert said == {"all.py": ["out by static-query"], "package.py": ["eligible"], "gone.py": []}


def test_a_module_that_exports_and_is_not_among_the_sources(tmp_path: Path) -> None:
    start = 'import subprocess\n\nsubprocess.run(["python", "-m", "exporters.coreml", "--model=a/b", "exported/"])\n'
    (graph,) = default_graphs(scan_text(tmp_path, {"all.py": start}), "all.py")
    assert judge(graph.facts).says() == "unresolved by unknown-kind"
    assert "`exporters.coreml` exports" in graph.facts.kind.reason
