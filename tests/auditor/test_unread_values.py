# ruff: noqa: E501  (one case a line reads better than a folded one)
"""What stands in place of a name whose module nobody gave: nobody knows it, however it is used in a graph."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.verdict import judge
from tests.auditor.support import CORE_ML, EXPORTER, graph_of, scan_text

IMPORT = "import elsewhere\n"
FORMS = ("elsewhere.VALUE", "elsewhere.value()", "elsewhere.Value(HIDDEN)")
"""A name of an unread module, what a function of it gives, an object of a class of it."""


def _says(root: Path, text: str, old: str, new: str) -> str:
    assert text.count(old) == 1, old
    return judge(graph_of(scan_text(root, {"export.py": IMPORT + text.replace(old, new)})).facts).says()


DECIDES = {
    "where rows are written": (EXPORTER, "key_cache[:, :, start:end] = k", "key_cache[:, :, {}:end] = k"),
    "what is written": (EXPORTER, "value_cache[:, :, start:end] = v", "value_cache[:, :, start:end] = {}"),
    "the keys that attention reads": (EXPORTER, "q, key_cache[:, :, :end]", "q, {}"),
    "the cache that attention reads": (EXPORTER, "q, key_cache[:, :, :end]", "q, {}[:, :, :end]"),
    "the cache of a layer": (EXPORTER, "position_ids, key_cache[i], value_cache[i]", "position_ids, {}, value_cache[i]"),
    "what a layer adds": (EXPORTER, "return x + self.out(y)", "return x + {}"),
    "what a model returns": (EXPORTER, "return logits", "return {}"),
    "the dimension of the query": (EXPORTER, 'Dim("tokens", min=1, max=64)', "{}"),
    "the dynamic shapes": (EXPORTER, "dynamic_shapes=dynamic", "dynamic_shapes={}"),
    "the names of the states": (EXPORTER, "state_names=STATES", "state_names={}"),
    "the example of a state": (EXPORTER, '"key_cache": cache,', '"key_cache": {},'),
    "where rows of a buffer are written": (CORE_ML, "self.keyCache[:, :, start:end, :] = k", "self.keyCache[:, :, {}:end, :] = k"),
    "what is written to a buffer": (CORE_ML, "end, :] = v", "end, :] = {}"),
    "the buffer that attention reads": (CORE_ML, "q, self.keyCache[:, :, :end]", "q, {}[:, :, :end]"),
    "the range of the query": (CORE_ML, "rows = ct.RangeDim(1, 64)", "rows = {}"),
    "the inputs of a conversion": (CORE_ML, "shape=ids_shape", "shape={}"),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", sorted(DECIDES))
def test_what_decides_is_not_known(tmp_path: Path, name: str, form: str) -> None:
    text, old, new = DECIDES[name]
    assert _says(tmp_path, text, old, new.format(form)).startswith("unresolved by ")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (EXPORTER, ('Dim("tokens", min=1, max=64)', 'Dim("tokens", max={})')),
        (CORE_ML, ("RangeDim(1, 64)", "RangeDim(1, {})")),
    ],
    ids=["Core AI", "Core ML"],
)
def test_a_bound_that_a_function_gives_may_be_1_and_a_constant_is_not(
    tmp_path: Path, old: str, new: tuple[str, str]
) -> None:
    assert _says(tmp_path, old, new[0], new[1].format("elsewhere.longest()")).startswith("unresolved by ")
    assert _says(tmp_path, old, new[0], new[1].format("elsewhere.LONGEST")) == "eligible"


HARMLESS = {
    "the width of the model": (EXPORTER, "VOCAB, HIDDEN, HEADS, LAYERS, CONTEXT = 128, 32,", "VOCAB, HIDDEN, HEADS, LAYERS, CONTEXT = 128, {},"),
    "the words": (EXPORTER, "VOCAB, HIDDEN, HEADS, LAYERS, CONTEXT = 128,", "VOCAB, HIDDEN, HEADS, LAYERS, CONTEXT = {},"),
    "the length of the example": (EXPORTER, "1 if args.static else 8", "1 if args.static else {}"),
    "the name of a dimension": (EXPORTER, 'Dim("tokens",', "Dim({},"),
    "the place of the bundle": (EXPORTER, '"out/model.aimodel"', "{}"),
    "the type of the inputs": (CORE_ML, "shape=ids_shape, dtype=np.int32", "shape=ids_shape, dtype={}"),
    "the example of a trace": (CORE_ML, "(torch.zeros(1, 4, dtype=torch.int32), torch.zeros(1, 1, 4, 8))", "{}"),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS[:2])
@pytest.mark.parametrize("name", sorted(HARMLESS))
def test_what_decides_nothing_need_not_be_known(tmp_path: Path, name: str, form: str) -> None:
    text, old, new = HARMLESS[name]
    assert _says(tmp_path, text, old, new.format(form)) == "eligible"


def test_a_name_that_is_called_or_asked_for_an_attribute_stays_a_name(tmp_path: Path) -> None:
    text = "from elsewhere import block\n" + EXPORTER.replace("self.out(y)", "block.inner.project(self.out(y))")
    reason = graph_of(scan_text(tmp_path, {"export.py": text})).facts.logits.reason
    assert "`elsewhere`" in reason
    assert "`elsewhere.block.inner.project` is needed" in reason


def test_constants_of_known_libraries_are_numbers(tmp_path: Path) -> None:
    text = "import math\nimport numpy as np\n" + EXPORTER.replace(
        "x + self.out(y)", "x + self.out(y) * math.pi / np.pi"
    )
    assert judge(graph_of(scan_text(tmp_path, {"export.py": text})).facts).says() == "eligible"
