"""The protobuf of a converted model that goes into code that nobody reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.auditor.support import CORE_ML, judged, line_of, mutate

SAVE = 'mlmodel.save("out/model.mlpackage")\n'
AGAIN = "ct.models.MLModel(spec, weights_dir=mlmodel.weights_dir).save('m.mlpackage')\n"
FLEXIBLE = "from coremltools.models.neural_network import flexible_shape_utils as shapes\n"


@pytest.mark.parametrize(
    "edit",
    [
        f"{FLEXIBLE}shapes.set_multiarray_ndshape_range(spec, 'input_ids', [1, 1], [1, 1])  # here\n",
        "import elsewhere\nelsewhere.pin(spec)  # here\n",
        "import elsewhere\nelsewhere.pin(spec.description)  # here\n",
    ],
)
def test_what_was_declared_may_hold_no_more(tmp_path: Path, edit: str) -> None:
    text = mutate(CORE_ML, (SAVE, f"spec = mlmodel.get_spec()\n{edit}{AGAIN}"))
    judgement = judged(tmp_path, text)
    assert judgement.says() == "unresolved by unknown-query"
    places = [str(p) for f in judgement.unresolved for p in f.evidence]
    assert f"export.py:{line_of(text, '# here') - 1}" in places  # the import that is missing


@pytest.mark.parametrize(
    "edit",
    [
        "ct.utils.rename_feature(spec, 'logits', 'scores')\n",
        "print(len(spec.description.input))\n",
        "import elsewhere\nelsewhere.note(str(mlmodel))\n",
        f"{SAVE}import elsewhere\nelsewhere.print_ops(spec)\nelsewhere.get_op_types(mlmodel._mil_program)\n",
    ],
)
def test_what_changes_no_shape(tmp_path: Path, edit: str) -> None:
    text = mutate(CORE_ML, (SAVE, f"spec = mlmodel.get_spec()\n{edit}{AGAIN}"))
    assert judged(tmp_path, text).says() == "eligible"
