"""Operators that a script adds to PyTorch: `torch.ops` calls run the Python function that was registered."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.verdict import judge
from tests.auditor.support import EXPORTER, graph_of, judged, line_of, mutate, scan_text

CALL = ("        logits = self.head(x)\n", "        logits = torch.ops.mine.{name}(self.head(x))\n")
ABOVE = "VOCAB, HIDDEN, HEADS"

LIBRARY = """\
from torch.library import Library, impl

lib = Library("mine", "DEF")
lib.define("last.Tensor(Tensor x) -> Tensor")


@impl(lib, "last.Tensor", "KEY")
def last_row(x):
    return RESULT


"""
DECORATOR = """\
@torch.library.custom_op("mine::last", mutates_args=())
def last_row(x: torch.Tensor) -> torch.Tensor:
    return RESULT


@last_row.register_fake
def _(x):
    return torch.empty_like(x)


"""
CALLED = """\
from torch.library import Library

lib = Library("mine", "FRAGMENT")
lib.impl("last", lambda x: RESULT, "KEY")
"""

SPELLINGS = {"impl": LIBRARY, "custom_op": DECORATOR, "lib.impl": CALLED}


def script(above: str, *, name: str = "last", result: str = "x", key: str = "CompositeExplicitAutograd") -> str:
    above = above.replace("RESULT", result).replace("KEY", key)
    return mutate(EXPORTER, (CALL[0], CALL[1].format(name=name)), (f"{ABOVE}, ", f"{above}{ABOVE}, "))


@pytest.mark.parametrize("above", SPELLINGS.values(), ids=SPELLINGS)
@pytest.mark.parametrize("name", ["last", "last.default", "last.Tensor"])
def test_the_function_of_an_operator_is_followed(tmp_path: Path, above: str, name: str) -> None:
    known = ("Tensor" in name) == ("last.Tensor" in above) or name == "last"
    verdict = judged(tmp_path, script(above, name=name)).verdict
    assert verdict == ("eligible" if known else "unresolved")


@pytest.mark.parametrize("above", SPELLINGS.values(), ids=SPELLINGS)
def test_a_row_that_an_operator_cuts_is_seen(tmp_path: Path, above: str) -> None:
    text = script(above, result="x[:, -1:]")
    (finding,) = judged(tmp_path, text).findings
    assert finding.rule == "last-token-only"
    assert line_of(text, "x[:, -1:]") in [p.line for p in finding.evidence]


@pytest.mark.parametrize("key", ["Meta", "AutogradCPU"])
@pytest.mark.parametrize("above", [LIBRARY, CALLED])
def test_a_shape_function_says_nothing_of_the_result(tmp_path: Path, above: str, key: str) -> None:
    assert judged(tmp_path, script(above, key=key)).verdict == "unresolved"


def test_an_operator_without_a_function(tmp_path: Path) -> None:
    assert judged(tmp_path, script('torch.library.define("mine::last", "(Tensor x) -> Tensor")\n\n')).verdict == (
        "unresolved"
    )


def test_functions_of_two_devices_that_differ(tmp_path: Path) -> None:
    other = '\n\n@impl(lib, "last.Tensor", "MPS")\ndef last_row_mps(x):\n    return x[:, -1:]\n\n\n'
    assert judged(tmp_path, script(LIBRARY.rstrip() + other, key="CPU")).verdict == "unresolved"


def test_an_operator_of_pytorch_is_replaced(tmp_path: Path) -> None:
    """Every layer may compute something else then."""
    above = (
        CALLED.replace('"mine", "FRAGMENT"', '"aten", "IMPL"')
        .replace('"last"', '"linear"')
        .replace("RESULT", "x")
        .replace("KEY", "CPU")
    )
    result = judged(tmp_path, mutate(EXPORTER, (f"{ABOVE}, ", f"{above}{ABOVE}, ")))
    assert result.verdict == "unresolved"
    assert "aten::linear" in result.reasons[0].message


OPERATORS = "import torch\n\n\n" + DECORATOR


def test_an_operator_belongs_to_the_runs_that_import_it(tmp_path: Path) -> None:
    """In whatever order the scripts are evaluated, and whether the module is the repository's or a library's."""
    text = OPERATORS.replace("RESULT", "x").replace("KEY", "CPU")
    using = script("import operators_of_mine\n", name="last")
    library = tmp_path / "library"
    for n, path in enumerate(["operators_of_mine.py", "../library/operators_of_mine.py"]):
        root = tmp_path / f"repository{n}"
        files = {"a.py": script("", name="last"), "b.py": using, "c.py": script("", name="last"), "d.py": using}
        result = scan_text(root, {**files, path: text}, libraries=(library,) if n else ())
        verdicts = [judge(graph_of(result, name).facts).verdict for name in files]
        assert verdicts == ["unresolved", "eligible", "unresolved", "eligible"]
