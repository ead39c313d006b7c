"""Further spellings: of the last row, of a vocabulary in parts, of a cache that slides."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.auditor.support import CORE_ML, judged, mutate

HEAD = "        return self.head(x + y.transpose(1, 2).reshape(batch, rows, HIDDEN))\n"
BEFORE = HEAD.replace("return self.head(", "x = (")
LAST = "out by last-token-only"


@pytest.mark.parametrize(
    ("head", "says"),
    [
        ("torch.tensor_split(x, (-1,), dim=1)[1]", LAST),
        ("x.tensor_split([rows - 1], 1)[-1]", LAST),
        ("torch.tensor_split(x, (-1,), dim=1)[0]", "unresolved by unknown-logits"),
        ("torch.cat(torch.tensor_split(x, 4, dim=-1), -1)", "eligible"),
        ("torch.cat(x.tensor_split((8, -8), -1), -1)", "eligible"),
        ("torch.take_along_dim(x, torch.full((1, 1, 1), rows - 1), dim=1)", LAST),
        ("torch.take_along_dim(x, torch.arange(rows).view(1, rows, 1), dim=1)", "unresolved by unknown-logits"),
        ("torch.take_along_dim(x, torch.arange(HIDDEN).view(1, 1, HIDDEN), 2)", "eligible"),
        ("torch.addmm(x[0], x[0], self.head.weight.T[:, :HIDDEN])[None]", "eligible"),
        ("torch.addmm(x[0, -1:], x[0, -1:], self.head.weight.T[:, :HIDDEN])[None]", LAST),
    ],
)
def test_rows_that_are_left(tmp_path: Path, head: str, says: str) -> None:
    found = judged(tmp_path, mutate(CORE_ML, (HEAD, f"{BEFORE}        return self.head({head})\n")))
    assert found.says() == says, [f.message for f in found.reasons]


PARTS = (
    "        x = x + y.transpose(1, 2).reshape(batch, rows, HIDDEN)\n"
    "        return tuple(getattr(self, f'head_{n}')(CUT) for n in range(COUNT))\n"
)


@pytest.mark.parametrize("count", [4, 16])
@pytest.mark.parametrize(("cut", "says"), [("x", "eligible"), ("x[:, -1:]", LAST)])
def test_a_vocabulary_in_parts(tmp_path: Path, count: int, cut: str, says: str) -> None:
    """More parts than are told apart one by one: a name with a number stands for them."""
    text = mutate(
        CORE_ML,
        (HEAD, PARTS.replace("CUT", cut).replace("COUNT", str(count))),
        (
            "        self.head = nn.Linear(HIDDEN, VOCAB)\n",
            f"        for n in range({count}):\n"
            f"            setattr(self, f'head_{{n}}', nn.Linear(HIDDEN, 2000 // {count}))\n",
        ),
        (
            '[ct.TensorType(name="logits", dtype=np.float16)]',
            f"[ct.TensorType(name=f'logits{{n + 1}}') for n in range({count})]",
        ),
    )
    assert judged(tmp_path, text).says() == says


SLIDING = mutate(
    CORE_ML,
    (
        'torch.zeros(1, HEADS, CONTEXT, HIDDEN // HEADS))\n        self.register_buffer("valueCache", ',
        'torch.zeros(2, HEADS, CONTEXT, HIDDEN // HEADS))\n        self.register_buffer("valueCache", ',
    ),
)


@pytest.mark.parametrize(
    "write",
    [
        "self.keyCache[0:1] = torch.cat((self.keyCache[0:1, :, rows:], k), 2)",
        "self.keyCache[0:1, :, :, :] = torch.cat((self.keyCache[0:1, :, rows:], k), 2)",
        "self.keyCache[0] = torch.cat((self.keyCache[0, :, rows:], k[0]), 1)",
    ],
)
def test_one_layer_that_slides(tmp_path: Path, write: str) -> None:
    text = mutate(
        SLIDING,
        ("        self.keyCache[:, :, start:end, :] = k\n", f"        {write}\n"),
        ("q, self.keyCache[:, :, :end],", "q, self.keyCache[0:1, :, :end],"),
    )
    assert judged(tmp_path, text).says() == "out by ring-cache"


def test_one_layer_that_is_written_in_place(tmp_path: Path) -> None:
    text = mutate(
        SLIDING,
        ("        self.keyCache[:, :, start:end, :] = k\n", "        self.keyCache[0:1, :, start:end] = k\n"),
        ("q, self.keyCache[:, :, :end],", "q, self.keyCache[0:1, :, :end],"),
    )
    assert judged(tmp_path, text).says() == "eligible"


@pytest.mark.parametrize(("rows", "says"), [("64", "eligible"), ("512", "unresolved by unknown-logits")])
def test_an_output_whose_name_says_nothing(tmp_path: Path, rows: str, says: str) -> None:
    """As wide as a table of embeddings: the vocabulary, unless another table has more rows."""
    text = mutate(
        CORE_ML,
        ('name="logits"', 'name="linear_0"'),
        (
            "        self.head = nn.Linear(HIDDEN, VOCAB)\n",
            f"        self.head = nn.Linear(HIDDEN, VOCAB)\n        self.places = nn.Embedding({rows}, HIDDEN)\n",
        ),
    )
    assert judged(tmp_path, text).says() == says
