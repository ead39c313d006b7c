"""What modules have beside what the sources give them: asking for it ends no run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.auditor.support import CORE_ML, judged, mutate, scan_text

MODEL = "model = Model().eval()\n"
CONVERT = "mlmodel = ct.convert(\n    traced,\n"
ATTEMPT = "try:\n    {}\nexcept Exception:\n    raise SystemExit(1)\n"
"""A step of a script that gives up when anything goes wrong."""


def attempted(line: str) -> str:
    return mutate(CORE_ML, (CONVERT, ATTEMPT.format(line) + CONVERT))


@pytest.mark.parametrize(
    "line",
    [
        'traced.save("model.pt")',
        'torch.jit.save(traced, "model.pt")',
        "print(traced.graph, traced.inlined_graph, traced.code)",
        "model.register_full_backward_hook(print)",
        "print(model._get_name(), model.dump_patches)",
        'print(model.get_buffer("keyCache").shape)',
        "nn.LSTM(8, 8, num_layers=2, bidirectional=True).flatten_parameters()",
        "nn.LSTM(8, 8, 2).weight_ih_l1.data.zero_()",
        "print(nn.GRU(8, hidden_size=16).hidden_size, nn.Upsample(scale_factor=2).scale_factor)",
    ],
)
def test_what_torch_gives_every_module_is_there(tmp_path: Path, line: str) -> None:
    assert judged(tmp_path, attempted(line)).says() == "eligible"


@pytest.mark.parametrize("line", ["model.graph", 'model.save("m")', "model.head.weight_ih_l0", "nn.LSTM(8, 8).weight"])
def test_what_no_such_module_has_is_not_there(tmp_path: Path, line: str) -> None:
    untraced = mutate(CORE_ML, (MODEL, MODEL + ATTEMPT.format(line)))
    assert not scan_text(tmp_path, {"export.py": untraced}).graphs


# -- a traced module goes through a file -------------------------------------------------------------------------------


def loaded(*lines: str) -> str:
    return mutate(CORE_ML, (CONVERT, "".join(f"{line}\n" for line in lines) + CONVERT))


@pytest.mark.parametrize("save", ["torch.jit.save(traced, path)", "traced.save(path)"])
@pytest.mark.parametrize("path", ['"out/model.pt"', 'input() + "/model.pt"'])
def test_a_traced_module_is_saved_and_loaded(tmp_path: Path, save: str, path: str) -> None:
    assert judged(tmp_path, loaded(f"path = {path}", save, "traced = torch.jit.load(path)")).says() == "eligible"


OTHER = [
    "class Last(Model):",
    "    def forward(self, input_ids, causal_mask):",
    "        return super().forward(input_ids, causal_mask)[:, -1:]",
    "ids, mask = torch.zeros(1, 4, dtype=torch.int32), torch.zeros(1, 1, 4, 8)",
    "last = torch.jit.trace(Last().eval(), (ids, mask))",
]


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (['traced = torch.jit.load("model.pt")'], "unresolved by unknown-logits"),
        (['traced.save("a.pt")', 'last.save("b.pt")', 'traced = torch.jit.load("b.pt")'], "out by last-token-only"),
        (
            ["traced.save(input())", "last.save(input())", "traced = torch.jit.load(input())"],
            "unresolved by unknown-logits",
        ),
    ],
)
def test_the_module_is_the_one_that_was_saved_there(tmp_path: Path, lines: list[str], says: str) -> None:
    assert judged(tmp_path, loaded(*OTHER, *lines)).says() == says
