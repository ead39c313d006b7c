"""A script that runs to its end without exporting, with unread imports, and leaves its own exporter uncalled."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.facts import FileStatus, Graph
from rules.verdict import judge
from tests.auditor.support import CORE_ML, default_graphs, file_of, indented, mutate, scan_text

UNREAD = "from missing_package import *\nimport missing_package\n"
MODEL, TAIL = CORE_ML.split("model = Model().eval()\n")
MAIN = 'if __name__ == "__main__":\n'


def _graphs(root: Path, *edits: tuple[str, str], body: str = "    print('done')\n") -> list[Graph]:
    script = UNREAD + MODEL + "def main():\n    model = Model().eval()\n" + indented(TAIL, 4)
    script = mutate(script, *edits) + f"\n\n{MAIN}{body}"
    return default_graphs(scan_text(root, {"export.py": script}))


@pytest.mark.parametrize(
    "body",
    ["    # main()\n    print('done')\n", "    missing_package.check('out.aimodel')\n", "    check(1)\n"],
    ids=["left out", "something unread is called", "something of the star import is called"],
)
def test_the_exporter_is_audited_all_the_same(tmp_path: Path, body: str) -> None:
    (graph,) = _graphs(tmp_path, body=body)
    assert (graph.graph, judge(graph.facts).verdict) == ("main", "eligible")


def test_what_it_does_counts(tmp_path: Path) -> None:
    (graph,) = _graphs(tmp_path, (".reshape(batch, rows, HIDDEN))\n", ".reshape(batch, rows, HIDDEN))[:, -1:]\n"))
    assert judge(graph.facts).says() == "out by last-token-only"


def test_one_whose_model_is_unread_is_no_decoder_that_is_known(tmp_path: Path) -> None:
    (graph,) = _graphs(tmp_path, ("    model = Model().eval()\n", "    model = missing_package.load().eval()\n"))
    assert judge(graph.facts).verdict == "unresolved"


def test_without_an_exporter_the_run_stays_unresolved(tmp_path: Path) -> None:
    script = f"import missing_package\nfrom coreai_torch import TorchConverter\n\n{MAIN}    missing_package.run()\n"
    script += "    # TorchConverter().add_exported_program(...)\n"
    (graph,) = default_graphs(scan_text(tmp_path, {"export.py": script}))
    (reason, *_) = judge(graph.facts).reasons
    assert "no export call is reached; imports without a source: `missing_package`" in reason.message


def test_a_run_that_ends_with_an_error_stays_unresolved(tmp_path: Path) -> None:
    graphs = _graphs(tmp_path, body="    raise ValueError(missing_package.reason())\n")
    assert {judge(g.facts).verdict for g in graphs} == {"unresolved"}


def test_how_the_run_ended_is_told_beside_what_was_not_read(tmp_path: Path) -> None:
    script = (
        "import sys\nimport missing_package\nfrom coreai_torch import TorchConverter\n\n\n"
        "class Loaded:\n    pass\n\n\n"
        "try:\n    model = Loaded().weights\n    TorchConverter().add_exported_program(model).to_coreai()\n"
        "except Exception as error:\n    print(error)\n    sys.exit(1)\n"
    )
    (graph,) = default_graphs(scan_text(tmp_path, {"export.py": script}))
    (reason, *_) = judge(graph.facts).reasons
    assert "the run ends before any export call (SystemExit); imports without a source: `miss" in reason.message


DEFINES = "import coremltools as ct\nimport missing_package\n\n\ndef make(model, path):\n"
SPEC = "    return ct.TensorType(shape=model.shape), missing_package.name(path)\n"


@pytest.mark.parametrize(
    "line",
    [
        "    missing_package.convert(model, path)\n",
        "    missing_package.run(model, path, by=missing_package.convert)\n",
        "    missing_package.export_to_phone(model, path)\n",
        "    missing_package.tools.as_coreml(model)\n",
        "    missing_package.write_bundle(model, path)\n",
    ],
)
def test_a_file_that_only_defines_what_may_export_stays_unresolved(tmp_path: Path, line: str) -> None:
    (graph,) = default_graphs(scan_text(tmp_path, {"export.py": DEFINES + line + SPEC}))
    assert judge(graph.facts).verdict == "unresolved"


@pytest.mark.parametrize("line", ["", "    # missing_package.convert(model)\n", "    missing_package.check(model)\n"])
def test_a_file_that_defines_what_converts_nothing_is_listed_with_the_reason(tmp_path: Path, line: str) -> None:
    result = scan_text(tmp_path, {"export.py": DEFINES + line + SPEC})
    assert not result.graphs
    told = file_of(result, "export.py")
    assert told.status is FileStatus.NO_EXPORT
    assert "`missing_package` (export.py:2)" in told.reason
