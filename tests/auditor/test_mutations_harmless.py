"""Edits that break no property must not cost `eligible`: a tool that says `unresolved` to all of them is of no use."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.auditor.edits import (
    HEAD,
    LAYER,
    ROWS,
    SIGNATURE,
    WRITE_KEYS,
    Edit,
    after_head,
    after_norm,
    before,
    check_harmless,
    ids,
    returned,
    third_state,
)
from tests.auditor.test_mutations_rows import in_the_head

FORWARD: dict[str, tuple[Edit, ...]] = {
    "nothing": (),
    "a full slice": (after_norm("x = x[:, :, :]"),),
    "the last rows, all of them": (after_norm("x = x[:, -rows:]"),),
    "a slice of the vocabulary": (after_head("logits = logits[..., : VOCAB - 4]"),),
    "the vocabulary in two chunks": (
        (HEAD, "        a, b = self.head.weight.chunk(2)\n        logits = torch.cat([x @ a.T, x @ b.T], dim=-1)\n"),
    ),
    "a slice of the positions": (after_norm("last = position_ids[:, -1:]"),),
    "a slice that nothing uses": (after_norm("unused = x[:, -1:]"),),
    "a last row beside the logits": (
        returned("logits, x[:, -1]"),
        ('output_names=["logits"]', 'output_names=["logits", "pooled"]'),
    ),
    "a dict of outputs": (returned('{"logits": logits}'),),
    "a tuple of one": (returned("(logits,)"),),
    "a branch that is not taken": (after_norm("x = x[:, -1:] if LAYERS > 2 else x"),),
    "a row count of zero to keep": (
        (HEAD, "        logits = self.project(x)\n"),
        before(
            SIGNATURE, "    def project(self, x, keep=0):\n        return self.head(x[:, -keep:] if keep else x)\n\n"
        ),
    ),
    "soft-capping": (after_head("logits = torch.tanh(logits / 30.0) * 30.0"),),
    "softmax": (after_head("logits = logits.log_softmax(-1)"),),
    "a cast": (after_head("logits = logits.float().to(torch.float16)"),),
    "a window mask over a linear cache": (
        before(
            "        y = nn.functional",
            "        near = position_ids[:, None, None, :] > position_ids[:, None, start:, None] - 64\n",
            "        mask = mask & near\n",
        ),
    ),
    "index_copy_ at plain positions": ((WRITE_KEYS, "        key_cache.index_copy_(2, position_ids[0, start:], k)\n"),),
    "a slice_scatter that is copied back": (
        (WRITE_KEYS, "        key_cache.copy_(torch.slice_scatter(key_cache, k, 2, start, end))\n"),
    ),
    "narrow and copy_": ((WRITE_KEYS, "        key_cache.narrow(2, start, rows).copy_(k)\n"),),
    "a modulo that is no position": (after_norm("x = x * (1 + LAYERS % 2)"),),
    "a kernel that follows the query": in_the_head(
        "matvec(x, self.head.weight, result_shapes=[[1, rows, VOCAB]], **GRID)"
    ),
    "a kernel over the flattened rows": in_the_head(
        "matvec(x.reshape(-1, HIDDEN), self.head.weight, result_shapes=[[rows, VOCAB]], **GRID).reshape(1, rows, VOCAB)"
    ),
    "reshaped to rows and back": (after_norm("x = x.reshape(-1, HIDDEN).view(1, rows, HIDDEN)"),),
    "one dimension left open": (after_norm("x = x.view(1, -1, HIDDEN)"),),
    "a residual": (after_norm("x = x + self.norm(x)"),),
    "a counter as third state": third_state("cacheOffset", "offset", "1", "offset.add_(rows)"),
    "a mean over the width": (after_norm("x = x - x.mean(-1, keepdim=True)"),),
    "a flip there and back": (after_norm("x = x.flip(1).flip(1)"),),
    "the rows by size": ((ROWS, "        rows = input_ids.size(1)\n"),),
    "the rows by unpacking": ((ROWS, "        _, rows = input_ids.shape\n"),),
    "einsum": ((HEAD, '        logits = torch.einsum("brh,vh->brv", x, self.head.weight)\n'),),
    "a functional head": ((HEAD, "        logits = nn.functional.linear(x, self.head.weight)\n"),),
    "the embedding as head": ((HEAD, "        logits = x @ self.embed.weight.T\n"),),
    "keywords": (
        (
            "layer(x, position_ids, key_cache[i], value_cache[i])",
            "layer(x, position_ids, value_cache=value_cache[i], key_cache=key_cache[i])",
        ),
    ),
    "zip over the caches": (
        (
            "for i, layer in enumerate(self.layers):",
            "for layer, keys, values in zip(self.layers, key_cache, value_cache):",
        ),
        ("layer(x, position_ids, key_cache[i], value_cache[i])", "layer(x, position_ids, keys, values)"),
    ),
    "unbound caches": (
        (
            "for i, layer in enumerate(self.layers):",
            "keys, values = key_cache.unbind(0), value_cache.unbind(0)\n"
            "        for i, layer in enumerate(self.layers):",
        ),
        ("layer(x, position_ids, key_cache[i], value_cache[i])", "layer(x, position_ids, keys[i], values[i])"),
    ),
    "a print": (after_norm("print(x.shape)"),),
    "an assertion": (after_norm("assert x.shape[1] == rows"),),
    "torch._check": (after_norm("torch._check(rows <= CONTEXT)"),),
    "a decorator": (before(SIGNATURE, "    @torch.no_grad()\n"),),
    "a decorator of our own": (
        before(LAYER, "def timed(f):\n    def run(*args, **kw):\n        return f(*args, **kw)\n    return run\n\n\n"),
        before(SIGNATURE, "    @timed\n"),
    ),
}

CALLS: dict[str, tuple[Edit, ...]] = {
    "decomposed": (("dynamic_shapes=dynamic)", "dynamic_shapes=dynamic).run_decompositions({})"),),
    "states by default": ((", state_names=STATES", ""),),
    "Dim.AUTO": (ids("{1: Dim.AUTO}"),),
    "Dim.DYNAMIC": (ids("{1: Dim.DYNAMIC}"),),
    "a tuple entry": (ids('(None, Dim("tokens"))'),),
    "a list entry": (ids('[None, Dim("tokens")]'),),
    "a derived dimension": (ids('{1: 2 * Dim("half")}'),),
    "dims": (ids('{1: torch.export.dims("tokens", "other")[0]}'),),
    "no gradients": (("    program =", "    torch.set_grad_enabled(False)\n    program ="),),
    "a with block": (
        (
            "    program = torch.export.export(model, (), inputs, dynamic_shapes=dynamic)\n",
            "    with torch.no_grad():\n"
            "        program = torch.export.export(model, (), inputs, dynamic_shapes=dynamic)\n",
        ),
    ),
    "a try that reports": (
        (
            "    program = torch.export.export(model, (), inputs, dynamic_shapes=dynamic)\n",
            "    try:\n        program = torch.export.export(model, (), inputs, dynamic_shapes=dynamic)\n"
            "    except Exception as error:\n        raise SystemExit(f'export failed: {error}')\n",
        ),
    ),
    "positional inputs": (("(), inputs, dynamic", "tuple(inputs.values()), dynamic"),),
    "keywords in a dict": (
        ("(), inputs, dynamic_shapes=dynamic)", '**{"args": (), "kwargs": inputs, "dynamic_shapes": dynamic})'),
    ),
    "an unknown folder": (('"out/model.aimodel"', '__import__("os").environ["OUT"]'),),
    "an async function": (
        ("def export(args):", "async def export(args):"),
        ("    export(args)\n", "    import asyncio\n    asyncio.run(export(args))\n"),
    ),
}


@pytest.mark.parametrize("name", sorted(FORWARD))
def test_in_forward(tmp_path: Path, name: str) -> None:
    check_harmless(tmp_path, FORWARD[name])


@pytest.mark.parametrize("name", sorted(CALLS))
def test_around_the_export_call(tmp_path: Path, name: str) -> None:
    check_harmless(tmp_path, CALLS[name])
