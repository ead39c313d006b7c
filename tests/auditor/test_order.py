"""What is found in one run does not depend on the runs before it, which have evaluated the same modules."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from auditor import evaluations, run
from auditor import scan as scanning
from auditor.interpreter import Interpreter
from auditor.request import ScanRequest
from auditor.scan import scan
from auditor.values import Class, Env, Instance
from rules.facts import FileResult, FileStatus, Graph, InvocationKind, Logits, Query
from rules.verdict import Verdict, judge
from tests.auditor.support import CORE_ML, EXPORTER, mutate, write

SHARED = """\
from einops import rearrange
from outside import LIMIT

TABLE = {"a": 1}


class Turner:
    def turn(self, x):
        return rearrange(x, "a b -> b a")


def pick(choice):
    return Turner if choice else TABLE
"""
USES = ("        logits = self.head(x)\n", "        logits = shared.Turner().turn(self.head(x))\n")
FLAG = (
    "def export(args):\n",
    "def export(args):\n    import shared\n    if args.static:\n        chosen = shared.pick(args.static)\n",
)


def _graphs(root: Path) -> dict[str, Graph]:
    return {graph.id: graph for graph in scan(ScanRequest(root, (root,))).graphs}


def _in_any_order(root: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, Graph], dict[str, FileResult]]:
    """The graphs and the files of a tree, when its scripts are run from the first to the last and the other way."""
    runs, found = scanning._default_runs, []
    for order in (list, reversed):
        monkeypatch.setattr(scanning, "_default_runs", lambda files, order=order: [*order(runs(files))])
        result = scan(ScanRequest(root, (root,)))
        found.append(({g.id: g for g in result.graphs}, {f.path: f for f in result.files}))
    monkeypatch.setattr(scanning, "_default_runs", runs)
    assert found[0] == found[1]
    return found[0]


def test_the_order_of_the_runs_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = mutate("import shared\nfrom outside import LIMIT\n" + EXPORTER, USES, FLAG)
    second = mutate("import shared\nimport outside\nprint(outside.LIMIT)\n" + EXPORTER, USES)
    root = write(tmp_path / "tree", {"a.py": first, "b.py": second, "shared.py": SHARED})
    forward, _ = _in_any_order(root, monkeypatch)
    assert {graph.script for graph in forward.values()} == {"a.py", "b.py"}


def test_an_import_without_a_source_is_named_in_every_run(tmp_path: Path) -> None:
    script = mutate("import shared\n" + EXPORTER, USES)
    root = write(tmp_path / "tree", {"a.py": script, "b.py": script, "shared.py": SHARED})
    reasons = {graph.script: graph.facts.logits.reason for graph in _graphs(root).values()}
    assert set(reasons) == {"a.py", "b.py"}
    assert all("the import of `einops` could not be resolved" in reason for reason in reasons.values()), reasons


def test_graphs_of_which_nothing_is_known_have_names_of_their_own(tmp_path: Path) -> None:
    """Two choices of a required option, and neither run gets far."""
    script = """\
import argparse
from coreai_torch import TorchConverter
import nowhere
parser = argparse.ArgumentParser()
parser.add_argument("--size", choices=["small", "large"], required=True)
args = parser.parse_args()
nowhere.load(args.size)
raise SystemExit(nowhere.export(TorchConverter, args.size))
"""
    root = write(tmp_path / "tree", {"export.py": script})
    graphs = scan(ScanRequest(root, (root,))).graphs
    assert [g.id for g in graphs] == ["export.py::*@-", "export.py::*@-~2"], graphs
    assert [g.invocation.argv for g in graphs] == [("--size", "small"), ("--size", "large")]


LOADS = (
    ("    converter = TorchConverter()\n", "    program = phase(args, program)\n    converter = TorchConverter()\n"),
    (
        "def export(args):\n",
        "def phase(args, program):\n    if args.load:\n        return torch.export.load('p.pt2')\n"
        "    torch.export.save(program, 'p.pt2')\n    return program\n\n\ndef export(args):\n",
    ),
    (
        '"--static", action="store_true")\n',
        '"--static", action="store_true")\n    parser.add_argument("--load", action="store_true")\n',
    ),
)
STARTS = """\
import subprocess, sys
from pathlib import Path
from coreai_torch import TorchConverter
subprocess.run([sys.executable, str(Path(__file__).parent / "saves.py"), "--load"])
"""


def test_what_a_script_saves_is_not_there_for_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script starts another one with a command line that makes it load what it saves by default."""
    recipe = '[m]\nscript = "saves.py"\nargs = ["--load"]\n'
    files = {"saves.py": mutate(EXPORTER, *LOADS), "starts.py": STARTS, "recipe.toml": recipe}
    forward, _ = _in_any_order(write(tmp_path / "tree", files), monkeypatch)
    started = [graph.facts.query for graph in forward.values() if graph.script == "starts.py"]
    assert [fact.value for fact in started] == [None], started
    saved = [graph.facts.query for graph in forward.values() if graph.script == "saves.py"]
    assert len(saved) >= 2
    assert all(fact.value for fact in saved), saved


def test_what_a_module_exports_when_it_is_imported_is_exported_in_each_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    converts = mutate(CORE_ML, ('mlmodel.save("out/model.mlpackage")\n', ""))
    saves = 'import coremltools\nfrom handed_on import mlmodel\nmlmodel.save("out/{}.mlpackage")\n'
    files = {"converts.py": converts, "handed_on.py": "from converts import mlmodel\n"}
    files |= {f"{name}.py": saves.format(name) for name in "abc"}
    graphs, found = _in_any_order(write(tmp_path / "tree", files), monkeypatch)
    assert {f"{name}.py::main@{name}.mlpackage" for name in "abc"} <= graphs.keys()
    assert all(found[f"{name}.py"].status is FileStatus.EXPORTS for name in "abc")


def test_a_name_that_a_library_has_moved_is_told_in_each_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "import argparse\nfrom coreai_torch import TorchConverter\nfrom shared import helper\n"
    script += "argparse.ArgumentParser().parse_args()\n"
    library = {"pkg/__init__.py": "", "pkg/old.py": "X = 1\n", "pkg/new.py": "def helper(x):\n    return x\n"}
    files = {**library, "shared.py": "from pkg.old import helper\n", "a.py": script, "b.py": script}
    _, found = _in_any_order(write(tmp_path / "tree", files), monkeypatch)
    assert "has no `helper`; taken from pkg/new.py instead" in found["a.py"].reason
    assert found["a.py"].reason == found["b.py"].reason


CALLS = "".join(f"def f{n}(): return f{n + 1}()\n" for n in range(88)) + "def f88(): return shared.STATIC\nf0()\n"


@pytest.mark.parametrize("late", ["x = 1\n" * 500 + "print(shared.STATIC)\n", CALLS], ids=["steps", "depth"])
def test_how_far_a_run_was_does_not_matter_to_a_shared_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: str
) -> None:
    """One script looks a shared name up when its own bounds are reached, or nearly; another one at once."""
    monkeypatch.setattr(run, "Interpreter", partial(Interpreter, max_steps=400))
    shared = "def inner(): return True\ndef static(): return inner()\nSTATIC = static()\n"
    uses = mutate("import shared\n" + EXPORTER, ("None if args.static else", "None if shared.STATIC else"))
    script = "import shared\nfrom coreai_torch import TorchConverter\n" + late
    files = {"shared.py": shared, "a.py": script, "b.py": uses}
    graphs, _ = _in_any_order(write(tmp_path / "tree", files), monkeypatch)
    assert graphs["b.py::main@model.aimodel"].facts.query.value == Query(False, (8,))


def test_a_shared_module_that_takes_too_long_does_so_in_each_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "Interpreter", partial(Interpreter, max_steps=400))
    shared = "def slow():\n" + "    x = 1\n" * 500 + "    return x\nVALUE = slow()\n"
    script = "import shared\nfrom coreai_torch import TorchConverter\nshared.VALUE\nTorchConverter()\n"
    files = {"shared.py": shared, "a.py": script, "b.py": script}
    graphs, _ = _in_any_order(write(tmp_path / "tree", files), monkeypatch)
    reasons = {graph.script: graph.facts.kind.reason for graph in graphs.values()}
    assert set(reasons) == {"a.py", "b.py"}
    assert all(r == "the evaluation ended early: more than 400 steps of evaluation" for r in reasons.values()), reasons


def test_a_console_command_knows_of_no_program_that_a_script_has_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its result is used for all scripts that start it."""
    project = '[project]\nname = "p"\n[project.scripts]\nexport-ours = "module:main"\n'
    root = write(tmp_path / "tree", {"pyproject.toml": project, "module.py": "def main():\n    pass\n"})
    made = scanning.examiner_of(ScanRequest(root, (root,))).evaluations
    saved = {("module.py", "p.pt2"): Instance(Class("Program", (), Env()))}
    made.loader.programs = dict(saved)
    known: list[object] = []
    monkeypatch.setattr(evaluations, "run_command", lambda loader, *_: known.append(dict(loader.programs)) or "ran")
    assert [made.evaluate("", (), "export-ours") for _ in range(2)] == ["ran", "ran"]
    made.fresh()
    assert made.evaluate("", (), "export-ours") == "ran"
    assert known == [{}], "one result for all, and it knows of nothing"
    made.loader.programs = dict(saved)
    made.evaluate("", ("--other",), "export-ours")
    assert made.loader.programs == saved


# -- what a run changes -----------------------------------------------------------------------------------------------

USES_STATIC = ("None if args.static else", "None if shared.STATIC else")
FIRST = "import shared\nfrom coreai_torch import TorchConverter\n"
"""Another script, which may be run before."""


def _is_static(graphs: dict[str, Graph], script: str = "b.py") -> bool:
    """Whether the query of a script is static; its flag for that is not used."""
    runs = [g for g in graphs.values() if g.script == script and g.invocation.kind is InvocationKind.DEFAULT]
    found = {g.facts.query.value for g in runs}
    assert len(found) == 1, graphs.keys()
    (query,) = found
    assert isinstance(query, Query)
    return not query.dynamic


REGISTRY = """\
TABLE = {}


def register(name):
    def decorator(cls):
        TABLE[name] = cls
        return cls

    return decorator
"""
HEADS = """\
import torch
from torch import nn
from registry import register

torch.manual_seed(0)


@register("linear")
class Head(nn.Linear):
    pass
"""


@pytest.mark.parametrize("home", ["registry", "heads"])
def test_a_table_that_modules_fill_has_what_the_run_itself_has_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    """One script meets the table through a module that takes it over, the other one by its heads."""
    heads = HEADS if home == "registry" else REGISTRY + HEADS.replace("from registry import register\n", "")
    model = f"from {home} import TABLE\ndef make(*args): return TABLE['linear'](*args)\ndef names(): return [*TABLE]\n"
    before = "import heads\nimport model\nfrom coreai_torch import TorchConverter\nprint(model.names())\n"
    uses = mutate("import model\nimport heads\n" + EXPORTER, ("nn.Linear(HIDDEN, VOCAB)", "model.make(HIDDEN, VOCAB)"))
    without = mutate("import model\n" + EXPORTER, ("nn.Linear(HIDDEN, VOCAB)", "model.make(HIDDEN, VOCAB)"))
    files = {"registry.py": REGISTRY, "heads.py": heads, "model.py": model, "a.py": before, "b.py": uses}
    graphs, _ = _in_any_order(write(tmp_path / "tree", files | {"c.py": without}), monkeypatch)
    assert graphs["b.py::main@model.aimodel"].facts.logits.value is Logits.ALL
    if home == "registry":
        assert graphs["c.py::main@model.aimodel"].facts.logits.value is None, "nothing is in the table there"


@pytest.mark.parametrize(
    "change",
    [
        "shared.SETTINGS['static'] = True",
        "shared.Settings.static = True",
        "shared.one.static = True",
        "shared.pick.static = True",
        "shared.STATES.append(True)",
        "shared.STATIC = True",
        "shared.pick = lambda: True",
    ],
)
@pytest.mark.parametrize("looked", ["", "print(shared.STATIC)\n"], ids=["", "looked"])
def test_what_a_run_changes_in_a_module_is_not_changed_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, looked: str
) -> None:
    shared = """\
SETTINGS = {"static": False}
STATES = []


class Settings:
    static = False


one = Settings()


def pick():
    return SETTINGS["static"] or Settings.static or one.static or bool(STATES) or pick.static


pick.static = False
STATIC = pick()
"""
    uses = mutate(
        "import shared\n" + EXPORTER, ("None if args.static else", "None if shared.STATIC or shared.pick() else")
    )
    changes = f"{FIRST}{looked}{change}\nprint(shared.STATIC)\n"
    files = {"shared.py": shared, "a.py": changes, "b.py": uses}
    graphs, _ = _in_any_order(write(tmp_path / "tree", files), monkeypatch)
    assert not _is_static(graphs)


def test_an_attribute_of_a_function_that_one_script_sets_is_not_there_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uses = mutate("import shared\n" + EXPORTER, ("None if args.static else", "None if shared.pick.static else"))
    changes = FIRST + "shared.pick.static = True\n"
    files = {"shared.py": "def pick():\n    pass\n", "a.py": changes, "b.py": uses}
    graphs, _ = _in_any_order(write(tmp_path / "tree", files), monkeypatch)
    assert {g.facts.query.value for g in graphs.values()} == {None}


@pytest.mark.parametrize(
    "change", ["base.helper = lambda: True", "base.Base.static = True", "base.TABLE['static'] = True"]
)
@pytest.mark.parametrize("early", [True, False])
def test_a_change_is_seen_by_the_modules_that_are_imported_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, early: bool
) -> None:
    """A module is made when it is imported, however late somebody looks for a name of it."""
    base = "TABLE = {'static': False}\n\n\nclass Base:\n    static = False\n\n\ndef helper():\n    return False\n"
    shared = "from base import TABLE, Base, helper\nSTATIC = helper() or Base.static or TABLE['static']\n"
    lines = ["import base", "import shared", change] if early else ["import base", change, "import shared"]
    uses = mutate("\n".join([*lines, EXPORTER]), USES_STATIC)
    files = {"base.py": base, "shared.py": shared, "a.py": FIRST + "print(shared.STATIC)\n", "b.py": uses}
    graphs, _ = _in_any_order(write(tmp_path / "tree", files), monkeypatch)
    assert _is_static(graphs) is not early


def test_a_function_of_a_library_that_one_script_replaces_is_what_it_was_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = "import outside\nSTATIC = outside.limit()\n"
    replaces = mutate("import outside\noutside.limit = lambda: False\nimport shared\n" + EXPORTER, USES_STATIC)
    uses = mutate("import shared\n" + EXPORTER, USES_STATIC)
    files = {"shared.py": shared, "a.py": uses, "b.py": replaces}
    graphs, _ = _in_any_order(write(tmp_path / "tree", files), monkeypatch)
    assert not _is_static(graphs)
    other = next(g.facts.query for g in graphs.values() if g.script == "a.py")
    assert "outside" in other.reason, other


def test_a_module_that_reads_the_command_line_does_so_in_each_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = "import sys\nSTATIC = '--static' in sys.argv\n"
    uses = mutate("from handed_on import shared\n" + EXPORTER, USES_STATIC)
    recipe = '[m]\nscript = "b.py"\nargs = ["--static"]\n'
    files = {"shared.py": shared, "handed_on.py": "import shared\n", "b.py": uses, "recipe.toml": recipe}
    graphs, _ = _in_any_order(write(tmp_path / "tree", files), monkeypatch)
    found = {g.invocation.argv: g.facts.query.value for g in graphs.values()}
    assert {argv: query.dynamic for argv, query in found.items() if query} == {(): True, ("--static",): False}


def test_a_module_that_is_replaced_before_its_import_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another script has imported the one of the tree."""
    fake = "import sys\nimport types\nsys.modules['shared'] = types.SimpleNamespace(STATIC=True)\nimport shared\n"
    shared = "STATIC = False\n"
    files = {
        "shared.py": shared,
        "a.py": FIRST + "print(shared.STATIC)\n",
        "b.py": mutate(fake + EXPORTER, USES_STATIC),
    }
    graphs, _ = _in_any_order(write(tmp_path / "tree", files), monkeypatch)
    judgements = [judge(g.facts) for g in graphs.values()]
    assert judgements
    assert all(j.verdict is not Verdict.ELIGIBLE for j in judgements), [j.says() for j in judgements]
