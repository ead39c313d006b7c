"""Which rows leave the graph: slices in all spellings, heads that give no logits, baked lengths, one-row kernels."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.auditor.edits import (
    BAKED,
    EXPORT,
    HEAD,
    KERNEL,
    LAST,
    LAYER,
    NO_LOGITS,
    NORM,
    ROWS,
    SIGNATURE,
    UNKNOWN_LOGITS,
    Edit,
    Mutation,
    after,
    after_head,
    after_norm,
    before,
    built,
    check_broken,
    may,
    returned,
    top,
)
from tests.auditor.support import EXPORTER, judged, mutate

SLICES: dict[str, tuple[Edit, ...]] = {
    "before the norm": ((NORM, "        x = self.norm(x[:, -1:, :])\n"),),
    "after the norm": (after_norm("x = x[:, -1:, :]"),),
    "after the head": (after_head("logits = logits[:, -1:, :]"),),
    "an integer, after the head": (after_head("logits = logits[:, -1]"),),
    "an integer, before the head": (after_norm("x = x[:, -1]"),),
    "two indices": (after_norm("x = x[:, -1:]"),),
    "an ellipsis": (after_norm("x = x[..., -1:, :]"),),
    "index_select": (after_norm("x = x.index_select(1, torch.tensor([rows - 1]))"),),
    "torch.index_select by a tensor of one": (after_norm("x = torch.index_select(x, 1, position_ids[0, -1:])"),),
    "gather by length": (after_norm("x = x.gather(1, (position_ids[:, -1:] - 1)[..., None].expand(-1, -1, HIDDEN))"),),
    "torch.gather": (after_norm("x = torch.gather(x, 1, torch.full((1, 1, HIDDEN), rows - 1))"),),
    "mask and sum": (after_norm("x = (x * (torch.arange(rows) == rows - 1)[None, :, None]).sum(1, keepdim=True)"),),
    "a weighted sum by einsum": (after_norm('x = torch.einsum("brh,r->bh", x, (torch.arange(rows) == 0).float())'),),
    "a matrix product with a selector": (after_norm("x = (torch.arange(rows) == rows - 1).float()[None, None] @ x"),),
    "narrow": (after_norm("x = x.narrow(1, rows - 1, 1)"),),
    "select": (after_norm("x = x.select(1, -1)"),),
    "torch.select, kept": (after_norm("x = torch.select(x, 1, rows - 1).unsqueeze(1)"),),
    "split": (after_norm("x = x.split([rows - 1, 1], dim=1)[1]"),),
    "unbind": (after_norm("x = x.unbind(1)[-1]"),),
    "flip and take the first": (after_norm("x = x.flip(1)[:, :1]"),),
    "an index list": (after_norm("x = x[:, [-1]]"),),
    "an index tensor": (after_norm("x = x[:, torch.tensor([-1])]"),),
    "advanced indices": (after_norm("x = x[torch.arange(1), position_ids[:, -1]]"),),
    "a slice object": (after_norm("x = x[:, slice(-1, None)]"),),
    "bounds in variables": (after_norm("last = rows - 1; x = x[:, last:rows]"),),
    "the transposed tensor": (after_norm("x = x.transpose(1, 2)[..., -1:].transpose(1, 2)"),),
    "a mean": (after_norm("x = x.mean(dim=1)"),),
    "a maximum": (after_head("logits = logits.max(dim=1).values"),),
    "in a helper": (before(LAYER, "def last(x, n=1):\n    return x[:, -n:]\n\n\n"), after_norm("x = last(x)")),
    "in a lambda of the class": (
        after("        self.norm = nn.LayerNorm(HIDDEN)\n", "        self.pick = lambda x: x[:, -1:]\n"),
        after_norm("x = self.pick(x)"),
    ),
    "in a branch that is taken": (after_norm("x = x[:, -1:] if LAYERS == 2 else x"),),
    "a branch on the row count": (after_norm("if rows > 1:\n            x = x[:, -1:]"),),
    "a keyword of the head": (
        (HEAD, "        logits = self.project(x, logits_to_keep=1)\n"),
        before(
            SIGNATURE,
            "    def project(self, x, logits_to_keep=0):\n        return self.head(x[:, -logits_to_keep:])\n\n",
        ),
    ),
    "a default of the head": (
        (HEAD, "        logits = self.project(x)\n"),
        before(SIGNATURE, "    def project(self, x, keep=1):\n        return self.head(x[:, -keep:])\n\n"),
    ),
}

# Where the rows are kept in number and lost in content, or the selection is beyond a reader.
LOOSE: dict[str, Mutation] = {
    "take_along_dim": (
        (after_norm("x = torch.take_along_dim(x, torch.full((1, 1, 1), rows - 1), dim=1)"),),
        may(LAST, UNKNOWN_LOGITS),
    ),
    "tensor_split": ((after_norm("x = torch.tensor_split(x, [rows - 1], dim=1)[-1]"),), may(LAST, UNKNOWN_LOGITS)),
    "chunk": ((after_norm("x = x.chunk(rows, dim=1)[-1]"),), may(LAST, UNKNOWN_LOGITS)),
    "adaptive pooling": (
        (after_norm("x = nn.functional.adaptive_avg_pool1d(x.transpose(1, 2), 1).transpose(1, 2)"),),
        may(LAST, UNKNOWN_LOGITS),
    ),
    "of the embedding": (
        (("        x = self.embed(input_ids)\n", "        x = self.embed(input_ids[:, -1:])\n"),),
        may(LAST, UNKNOWN_LOGITS, BAKED),
    ),
    "between the layers": (
        (after("value_cache[i])\n", "            if i == len(self.layers) - 1:\n                x = x[:, -1:]\n"),),
        may(LAST, UNKNOWN_LOGITS),
    ),
    "repeated over the rows": (
        (after_head("logits = logits[:, -1:].expand(-1, rows, -1)"),),
        may(LAST, UNKNOWN_LOGITS, BAKED),
    ),
    "added back over the rows": ((after_norm("x = x + self.norm(x[:, -1:])"),), may(LAST, UNKNOWN_LOGITS, BAKED)),
    "multiplied back over the rows": (
        (after_norm("x = x * torch.sigmoid(x[:, -1].unsqueeze(1))"),),
        may(LAST, UNKNOWN_LOGITS, BAKED),
    ),
}

HEADS: dict[str, Mutation] = {
    "an entropy of each row": ((returned("(logits.softmax(-1) * logits.log_softmax(-1)).sum(-1)"),), may(NO_LOGITS)),
    "the logarithm of each row's sum": ((returned("torch.logsumexp(logits, -1)"),), may(NO_LOGITS)),
    "argmax of the tensor": ((returned("logits.argmax(-1)"),), may(NO_LOGITS)),
    "torch.argmax": ((returned("torch.argmax(logits, dim=-1)"),), may(NO_LOGITS)),
    "argmax of the last row": ((returned("logits[:, -1].argmax(-1)"),), may(NO_LOGITS, LAST)),
    "top-k": ((returned("torch.topk(logits, 40)"),), may(NO_LOGITS)),
    "top-k values": ((returned("logits.topk(40, dim=-1).values"),), may(NO_LOGITS)),
    "max over the vocabulary": ((returned("logits.max(-1).indices"),), may(NO_LOGITS)),
    "its value": ((returned("logits.max(-1, keepdim=True).values"),), may(NO_LOGITS)),
    "sampled": ((returned("torch.multinomial(logits[0].softmax(-1), 1)"),), may(NO_LOGITS, UNKNOWN_LOGITS)),
    "hidden states": ((returned("x"), ('output_names=["logits"]', 'output_names=["hidden_states"]')), may(NO_LOGITS)),
    "features": ((returned("x"), ('output_names=["logits"]', 'output_names=["features"]')), may(NO_LOGITS)),
    "an identity as head": (
        (built("model.head = nn.Identity()"), ('output_names=["logits"]', 'output_names=["hidden"]')),
        may(NO_LOGITS),
    ),
}

BAKES: dict[str, Mutation] = {
    "a reshape to the example's length": ((after_norm("x = x.reshape(1, 8, HIDDEN)"),), may(BAKED)),
    "a slice to the example's length": ((after_norm("x = x[:, :8]"),), may(BAKED, LAST, UNKNOWN_LOGITS)),
    "an expand to the example's length": (
        (after_norm("x = x[:, :1].expand(1, 8, HIDDEN)"),),
        may(BAKED, LAST, UNKNOWN_LOGITS),
    ),
    "a view over all": ((after_head("logits = logits.view(8, VOCAB)"),), may(BAKED)),
    "rows written as a number": (((ROWS, "        rows = 8\n"), after_norm("x = x.view(1, rows, HIDDEN)")), may(BAKED)),
    "rows of the module": (
        (built("model.rows = 8"), after_norm("x = x.view(1, self.rows, HIDDEN)")),
        may(BAKED),
    ),
}

_MATVEC = """\
from coreai_torch import TorchMetalKernel


def product(x, w):
    return x @ w.T


matvec = TorchMetalKernel(name="matvec", input_names=["x", "w"], result_names=["y"], src="", torch_defn=product)
GRID = dict(threads_per_grid=(1, 1, 1), threads_per_thread_group=(1, 1, 1))


"""


def in_the_head(call: str) -> tuple[Edit, ...]:
    return before(LAYER, _MATVEC), (HEAD, HEAD.replace("self.head(x)", call))


def added(call: str) -> tuple[Edit, ...]:
    return before(LAYER, _MATVEC), after_norm(f"x = x + {call}")


KERNELS: dict[str, Mutation] = {
    "a result of one row": (
        in_the_head("matvec(x, self.head.weight, result_shapes=[[1, 1, VOCAB]], **GRID)"),
        may(KERNEL, LAST),
    ),
    "a result of one row, spread": (
        in_the_head("matvec(x, self.head.weight, result_shapes=[[1, 1, VOCAB]], **GRID).expand(1, rows, VOCAB)"),
        may(KERNEL, LAST),
    ),
    "the query as one row": (
        in_the_head("matvec(x.reshape(1, HIDDEN), self.head.weight, result_shapes=[[1, VOCAB]], **GRID)[None]"),
        may(KERNEL, LAST, BAKED),
    ),
    "the first row goes in": (
        in_the_head("matvec(x[:, 0], self.head.weight, result_shapes=[[1, VOCAB]], **GRID)[:, None]"),
        may(KERNEL, LAST),
    ),
    "one row, added back": (
        added("matvec(x, self.embed.weight, result_shapes=[[1, 1, HIDDEN]], **GRID)"),
        may(KERNEL),
    ),
    "the first row goes in, added back": (
        added("matvec(x[:, 0], self.embed.weight, result_shapes=[[1, HIDDEN]], **GRID)[:, None]"),
        may(KERNEL),
    ),
    "flattened, added back": (
        added("matvec(x.reshape(-1)[None], self.embed.weight, result_shapes=[[1, HIDDEN]], **GRID)"),
        may(KERNEL, UNKNOWN_LOGITS),
    ),
    "one row squeezed into a buffer": (
        in_the_head("matvec(x[:, 0], self.head.weight, result_shapes=[[1, 64, VOCAB]], **GRID)[:, :rows]"),
        may(KERNEL),
    ),
    "a buffer of which nothing is cut": (
        in_the_head("matvec(x, self.head.weight, result_shapes=[[1, 64, VOCAB]], **GRID)"),
        may(UNKNOWN_LOGITS),
    ),
    "other axes of the same size": (
        in_the_head("matvec(x[0], self.head.weight, result_shapes=[[HEADS, VOCAB]], **GRID)[None, :1]"),
        may(KERNEL, LAST),
    ),
    "a module that holds it": (
        (
            before(LAYER, _MATVEC),
            before(
                EXPORT,
                "class MatVec(nn.Module):\n    def __init__(self, inner):\n        super().__init__()\n"
                "        self.inner = inner\n        self.kernel = matvec\n\n    def forward(self, x):\n"
                "        shapes = [[1, 1, self.inner.weight.shape[0]]]\n"
                "        return self.kernel(x, self.inner.weight, result_shapes=shapes, **GRID)\n\n\n",
            ),
            built("for layer in model.layers:\n    layer.out = MatVec(layer.out)"),
        ),
        may(KERNEL),
    ),
}

WRAPPERS: dict[str, tuple[Edit, ...]] = {
    "a wrapper module": (
        top(
            "class Last(nn.Module):\n    def __init__(self, inner):\n        super().__init__()\n"
            "        self.inner = inner\n\n"
            "    def forward(self, input_ids, position_ids, key_cache, value_cache):\n"
            "        return self.inner(input_ids, position_ids, key_cache, value_cache)[:, -1]\n"
        ),
        ("    model = Model().eval()\n", "    model = Last(Model()).eval()\n"),
    ),
    "a subclass": (
        top(
            "class Last(Model):\n    def forward(self, *args, **kwargs):\n"
            "        return super().forward(*args, **kwargs)[:, -1:]\n"
        ),
        ("    model = Model().eval()\n", "    model = Last().eval()\n"),
    ),
    "a decorator": (
        before(
            LAYER,
            "def last(f):\n    def run(*args, **kw):\n        return f(*args, **kw)[:, -1:]\n    return run\n\n\n",
        ),
        before(SIGNATURE, "    @last\n"),
    ),
    "a property": (
        before(SIGNATURE, "    @property\n    def rows_kept(self):\n        return slice(-1, None)\n\n"),
        after_norm("x = x[:, self.rows_kept]"),
    ),
    "a static method": (
        before(SIGNATURE, "    @staticmethod\n    def pick(x):\n        return x[:, -1:]\n\n"),
        after_norm("x = Model.pick(x)"),
    ),
}


@pytest.mark.parametrize("name", sorted(SLICES))
def test_a_slice_of_the_last_row_costs_the_verdict(tmp_path: Path, name: str) -> None:
    check_broken(tmp_path, (SLICES[name], may(LAST)))


@pytest.mark.parametrize("name", sorted(WRAPPERS))
def test_a_slice_around_the_model_costs_the_verdict(tmp_path: Path, name: str) -> None:
    check_broken(tmp_path, (WRAPPERS[name], may(LAST)))


@pytest.mark.parametrize("name", sorted(LOOSE))
def test_rows_lost_in_other_ways(tmp_path: Path, name: str) -> None:
    check_broken(tmp_path, LOOSE[name])


@pytest.mark.parametrize("name", sorted(HEADS))
def test_a_head_that_gives_no_logits_costs_the_verdict(tmp_path: Path, name: str) -> None:
    check_broken(tmp_path, HEADS[name])


@pytest.mark.parametrize("name", sorted(BAKES))
def test_a_baked_length_costs_the_verdict(tmp_path: Path, name: str) -> None:
    check_broken(tmp_path, BAKES[name])


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_a_kernel_for_one_row_costs_the_verdict(tmp_path: Path, name: str) -> None:
    check_broken(tmp_path, KERNELS[name])


def test_a_kernel_with_a_buffer_of_which_the_rows_are_cut_is_neither_a_row_kernel_nor_trusted(tmp_path: Path) -> None:
    call = "matvec(x, self.head.weight, result_shapes=[[1, 64, VOCAB]], **GRID)[:, :rows]"
    assert judged(tmp_path, mutate(EXPORTER, *in_the_head(call))).says() == UNKNOWN_LOGITS
