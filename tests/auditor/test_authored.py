"""Programs that no converter makes, and code without a source that may run the script's own functions."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.verdict import judge
from tests.auditor.support import EXPORTER, default_graphs, graph_of, judged, line_of, mutate, scan_text

AUTHORED = """\
import coreai.authoring as ca
from coreai.authoring import AIProgram


def build():
    module = ca.Context().module()
    return MAKE  # made here


if __name__ == "__main__":
    build().save_asset("out/decoder.aimodel")
"""
MAKERS = ("ca.AIProgram(module)", "AIProgram(module=module)", "AIProgram._from_mlir_module(module)")


@pytest.mark.parametrize("make", MAKERS)
def test_an_authored_program_is_unresolved_with_its_line(tmp_path: Path, make: str) -> None:
    text = AUTHORED.replace("MAKE", make)
    graph = graph_of(scan_text(tmp_path, {"export.py": text}))
    result = judge(graph.facts)
    assert result.verdict == "unresolved"
    assert "authored" in result.reasons[0].message
    assert [(p.path, p.line) for p in result.reasons[0].evidence] == [("export.py", line_of(text, "# made here"))]
    assert graph.bundle == "out/decoder.aimodel"


def test_two_programs_are_two_graphs(tmp_path: Path) -> None:
    text = AUTHORED.replace("MAKE", MAKERS[0]) + '    build().save_asset("out/other.aimodel")\n'
    graphs = default_graphs(scan_text(tmp_path, {"export.py": text}))
    assert sorted(g.bundle for g in graphs) == ["out/decoder.aimodel", "out/other.aimodel"]


def test_a_program_that_is_only_loaded_is_no_export(tmp_path: Path) -> None:
    text = "from coreai.authoring import AIModelAsset, AIProgram\n\nAIModelAsset.load('x.aimodel').program()\n"
    assert not scan_text(tmp_path, {"export.py": text}).graphs


def test_a_capture_that_calls_back(tmp_path: Path) -> None:
    """What the callback collects is not known; the script goes on with it, to the program that it makes."""
    text = mutate(
        AUTHORED.replace("MAKE", MAKERS[0]),
        (
            "    module = ca.Context().module()\n",
            "    import mlx.core as mx\n\n    events = []\n"
            "    mx.export_function(lambda event: events.append(event), step)\n"
            "    if not events:\n        raise ValueError('nothing was captured')\n    module = lower(events)\n",
        ),
        (
            "def build():\n",
            "def step(x):\n    return x\n\n\ndef lower(events):\n    return [e for e in events]\n\n\ndef build():\n",
        ),
    )
    assert judge(graph_of(scan_text(tmp_path, {"export.py": text})).facts).verdict == "unresolved"


CONVERTER = "    converter = TorchConverter()\n"
LIBRARY = ("import argparse\n", "import argparse\nimport unread\n")
NAMES = ('output_names=["logits"], state_names=STATES\n', 'output_names=["logits"], state_names=names\n')
FILLED = {
    "a list": "    more = []\n    unread.fill(more)\n    names = STATES + more\n",
    "a list that a function fills": "    more = []\n\n    def take(name):\n        more.append(name)\n\n"
    "    unread.walk(take)\n    names = STATES + more\n",
    "a dict that a lambda fills": "    more = {}\n    unread.walk(lambda k: more.setdefault(k, k))\n"
    "    names = STATES + list(more)\n",
}


@pytest.mark.parametrize("name", FILLED)
def test_what_unread_code_may_fill_is_not_known(tmp_path: Path, name: str) -> None:
    script = mutate(EXPORTER, LIBRARY, (CONVERTER, FILLED[name] + CONVERTER), NAMES)
    assert judged(tmp_path, script).verdict == "unresolved"


def test_what_unread_code_cannot_reach_stays(tmp_path: Path) -> None:
    code = "    more = []\n    other = []\n    unread.fill(other)\n    names = STATES + more\n"
    assert judged(tmp_path, mutate(EXPORTER, LIBRARY, (CONVERTER, code + CONVERTER), NAMES)).verdict == "eligible"
