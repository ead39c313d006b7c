# ruff: noqa: E501  (a line of a generated script is not folded)
"""Small export scripts of both frameworks, each with one known defect or none, written in roundabout ways."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from tests.auditor.generator import classes, containers, flow, functions, typed
from tests.auditor.generator.writer import OPEN, Writer

WAYS = (classes, containers, flow, functions, typed)
"""Imported for the ways that they register."""

CORE_AI, CORE_ML = "coreai", "coreml"
NONE = ""
DEFECTS = {
    CORE_AI: ("static-query", "fixed-window", "last-token-only", "no-logits", "hybrid-state", "kv-as-io", "ring-cache"),
    CORE_ML: (
        "static-query",
        "fixed-window",
        "last-token-only",
        "no-logits",
        "hybrid-state",
        "ring-cache",
        "baked-length",
    ),
}


@dataclass(frozen=True, slots=True)
class Script:
    """A script, the framework that it exports to, the rule that its graph breaks (empty: none), and its roundabouts.

    `open` when the environment decides whether it breaks the rule.
    """

    text: str
    style: str
    defect: str
    open: bool
    used: tuple[str, ...]


def generate(seed: int) -> Script:
    """The script of a seed: always the same."""
    rng = random.Random(seed)
    style = rng.choice((CORE_AI, CORE_ML))
    defect = NONE if rng.random() < 0.4 else rng.choice(DEFECTS[style])
    w = Writer(rng)
    by_environment = defect in ("static-query", "last-token-only") and rng.random() < 0.25
    text = _core_ai(w, defect, by_environment) if style == CORE_AI else _core_ml(w, defect, by_environment)
    return Script("import os\n" + text, style, defect, by_environment, tuple(w.used))


def indented(lines: list[str], by: int) -> str:
    return "".join(f"{' ' * by}{line}\n" if line else "\n" for text in lines for line in text.splitlines())


def _depth(w: Writer) -> int:
    return w.rng.choice((0, 1, 1, 2, 2, 3))


# -- parts ------------------------------------------------------------------------------------------------------


def _rows(w: Writer, cut: Any) -> list[str]:
    """Code of `forward` that leaves all rows of `x`, or the last one; `self.last` says which."""
    attribute = w.rng.random() < 0.6
    test = "self.last" if attribute else w.write(cut, _depth(w), False)
    last = w.rng.choice(
        (
            "x = x[:, -1:]",
            "x = x[:, -1:, :]",
            "x = x[:, -1].unsqueeze(1)",
            "x = x[..., -1:, :]",
            "x = x.index_select(1, torch.tensor([7]))",
            "x = x.narrow(1, 0, 1)",
            "x = x[:, [-1]]",
            "x = x.mean(1, keepdim=True)",
            "x = x.select(1, -1)[:, None]",
        )
    )
    whole = w.rng.choice(("x = x", "pass", "x = x[:, :]", "x = x[:, 0:]", "x = x.contiguous()"))
    if not cut and w.rng.random() < 0.3:
        return [w.rng.choice((whole, "x = x[:, -0:]", "x = x.view(x.shape[0], -1, x.shape[-1])"))]
    return w.rng.choice(
        (
            [f"if {test}:\n    {last}"],
            [f"if not {test}:\n    {whole}\nelse:\n    {last}"],
            [f"start = -1 if {test} else 0", "x = x[:, start:]"],
            [f"keep = 1 if {test} else x.shape[1]", "x = x[:, x.shape[1] - keep :]"],
            [f"keep = slice(-1, None) if {test} else slice(None)", "x = x[:, keep]"],
            ["x = self.pick(x)"],
        )
    )


def _pick(w: Writer, cut: Any) -> str:
    """A method that keeps the rows or one of them."""
    body = f"x[:, -1:] if {cut!r} else x" if cut is OPEN else "x[:, -1:]" if cut else "x"
    return f"    def pick(self, x):\n        return {body}\n"


def _head(w: Writer, defect: str) -> list[str]:
    if defect != "no-logits":
        return w.rng.choice((["return self.head(x)"], ["logits = self.head(x)", "return logits"]))
    return w.rng.choice(
        (
            ["return self.head(x).argmax(-1)"],
            ["return x"],
            ["logits = self.head(x)", "return torch.argmax(logits, dim=-1)"],
            ["return self.head(x).argmax(dim=-1, keepdim=True)"],
        )
    )


def _decoys(w: Writer) -> None:
    """Code that does nothing to the export."""
    for _ in range(w.rng.randrange(3)):
        name = w.name("decoy")
        w.lines(
            w.rng.choice(
                (
                    f"def {name}(x):\n    return x[:, -1:]",
                    f"class {name}:\n    def forward(self, x):\n        return x.argmax(-1)",
                    f"{name} = [i for i in range(3)]",
                    f"def {name}(dynamic):\n    dynamic['input_ids'] = None\n    return dynamic",
                    f"{name} = lambda x: x[:, -1]",
                    f"if {w.write(False, 1, False)}:\n    {name} = {{'input_ids': None}}",
                    f"try:\n    {name} = 1\nexcept Exception:\n    raise SystemExit(2)",
                    f"print('convert', '{name}')",
                )
            )
        )


def _sizes(w: Writer) -> None:
    w.lines("VOCAB, HIDDEN, HEADS, LAYERS, CONTEXT = 128, 32, 4, 2, 512")


def _static(w: Writer, pinned: Any, dim: str) -> list[str]:
    """Code that makes `dynamic` with the entry of the query pinned, or not."""
    test = w.write(pinned, _depth(w), True)
    full = f'{{"input_ids": {{1: {dim}}}, **rest}}'
    name = w.name("spec")
    if w.rng.random() < 0.2:
        w.lines(
            f"def {name}(pinned, entry, rest):\n    if pinned:\n        entry = None\n    return dict(input_ids=entry, **rest)"
        )
        return [f"dynamic = {name}({test}, {{1: {dim}}}, rest)"]
    return w.rng.choice(
        (
            [f'dynamic = {{"input_ids": None if {test} else {{1: {dim}}}, **rest}}'],
            [f"dynamic = {full}", f'if {test}:\n    dynamic["input_ids"] = None'],
            ["dynamic = dict(rest, input_ids=None)", f'if not {test}:\n    dynamic["input_ids"] = {{1: {dim}}}'],
            [f"dynamic = {full}", f"if {test}:\n    dynamic.update(input_ids=None)"],
            [f"dynamic = {full}", f'if {test}:\n    del dynamic["input_ids"]'],
            [f"dynamic = {full}", f'if {test}:\n    dynamic.pop("input_ids")'],
            [
                f"pinned = {test}",
                f'dynamic = {{k: (None if pinned and k == "input_ids" else v) for k, v in {full}.items()}}',
            ],
            [
                "entry = {}",
                f"if not {test}:\n    entry[1] = {dim}",
                'dynamic = {"input_ids": entry or None, **rest}',
            ],
            [f"pinned = {test}", f'dynamic = {{**{full}, **({{"input_ids": None}} if pinned else {{}})}}'],
        )
    )


# -- coreai -----------------------------------------------------------------------------------------------------


def _core_ai(w: Writer, defect: str, by_environment: bool) -> str:
    rng = w.rng
    _sizes(w)
    cut = defect == "last-token-only" and (OPEN if by_environment else True)
    pinned = defect in ("static-query", "fixed-window") and (OPEN if by_environment else True)
    hybrid = defect == "hybrid-state"
    io = defect == "kv-as-io"
    rows = _rows(w, cut)
    head = _head(w, defect)
    last = w.write(cut, _depth(w), False)
    width = 1 if defect == "static-query" else rng.choice((4, 8)) if pinned else rng.choice((2, 4, 8))
    states = ["keyCache", "valueCache"] + (["convState"] if hybrid else [])
    state_list = w.write(states, _depth(w), False)
    names = w.write(["input_ids", "position_ids"], _depth(w), True)
    tokens = w.write(width, _depth(w), True)
    dim = rng.choice(('Dim("tokens", min=1, max=64)', 'Dim("tokens", max=64)'))
    static = _static(w, pinned, dim)
    ring = " % CONTEXT" if defect == "ring-cache" else ""
    returned = ", k, v" if io else ""
    if io:
        head = [*head[:-1], f"{head[-1]}, torch.stack(keys), torch.stack(values)"]
    _decoys(w)
    more = ", conv_state" if hybrid else ""
    conv = "    conv_state[:, :, :] = x[:, -1:].transpose(1, 2)" if hybrid else ""
    keywords = f"input_names=input_names, output_names=['logits'], state_names={state_list}"
    keywords = (
        keywords
        if not io
        else ("input_names=[*input_names, 'key_cache', 'value_cache'], output_names=['logits', 'key_out', 'value_out']")
    )
    call = rng.choice(
        (
            f"TorchConverter().add_exported_program(program, {keywords}).to_coreai().save_asset('m.aimodel')",
            f"options = dict({keywords})\nconverter = TorchConverter()\nconverter.add_exported_program(program, **options)\n"
            "converter.to_coreai().save_asset('m.aimodel')",
        )
    )
    exporting = rng.choice(
        (
            ["program = torch.export.export(model, (), inputs, dynamic_shapes=dynamic)"],
            [
                "with torch.no_grad():\n    program = torch.export.export(model, args=(), kwargs=inputs, dynamic_shapes=dynamic)"
            ],
            ["kwargs = {'dynamic_shapes': dynamic}", "program = torch.export.export(model, (), inputs, **kwargs)"],
        )
    )
    extra_input = "inputs['conv_state'] = torch.zeros(1, HIDDEN, 3)\nrest['conv_state'] = None" if hybrid else ""
    body = [
        "model = Model().eval()",
        "cache = torch.zeros(LAYERS, 1, HEADS, 64, HIDDEN // HEADS)",
        f"tokens = {tokens}",
        "inputs = {'input_ids': torch.zeros((1, tokens), dtype=torch.int32), 'position_ids': torch.zeros(1, 16),"
        " 'key_cache': cache, 'value_cache': cache.clone()}",
        "rest = {'position_ids': {1: Dim('seen', max=CONTEXT)}, 'key_cache': {3: Dim('capacity', max=CONTEXT)},"
        " 'value_cache': {3: Dim('capacity', max=CONTEXT)}}",
        extra_input,
        *static,
        f"input_names = {names}",
        *exporting,
        call,
    ]
    return "".join(
        (
            "import argparse\nimport torch\nfrom torch import nn\nfrom torch.export import Dim\n"
            "from coreai_torch import TorchConverter\n\n",
            indented(w.top, 0),
            f"""

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(HIDDEN, 3 * HIDDEN)
        self.out = nn.Linear(HIDDEN, HIDDEN)

    def forward(self, x, position_ids, key_cache, value_cache):
        batch, rows, _ = x.shape
        q, k, v = self.qkv(x).view(batch, rows, 3, HEADS, HIDDEN // HEADS).permute(2, 0, 3, 1, 4)
        end = position_ids.shape[1]
        start = (end - rows){ring}
{_write(io)}        return x + self.out(y.transpose(1, 2).reshape(batch, rows, HIDDEN)){returned}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = {last}
        self.embed = nn.Embedding(VOCAB, HIDDEN)
        self.layers = nn.ModuleList([Layer() for _ in range(LAYERS)])
        self.norm = nn.LayerNorm(HIDDEN)
        self.head = nn.Linear(HIDDEN, VOCAB)

{_pick(w, cut)}
    def forward(self, input_ids, position_ids, key_cache, value_cache{more}):
        x = self.embed(input_ids)
        keys, values = [], []
        for i, layer in enumerate(self.layers):
{_layers(io)}    {conv}
        x = self.norm(x)
""",
            indented(rows, 8),
            indented(head, 8),
            "\n\ndef export(args):\n",
            indented(body, 4),
            _main(w),
        )
    )


def _write(io: bool) -> str:
    """Code of a layer that adds the new keys and values to the cache: in place, or as something to give back."""
    if io:
        return (
            "        k = torch.cat([key_cache[:, :, :start], k], dim=2)\n"
            "        v = torch.cat([value_cache[:, :, :start], v], dim=2)\n"
            "        y = nn.functional.scaled_dot_product_attention(q, k, v)\n"
        )
    return (
        "        key_cache[:, :, start : start + rows] = k\n        value_cache[:, :, start : start + rows] = v\n"
        "        mask = torch.ones(rows, end, dtype=torch.bool).tril(start)\n"
        "        y = nn.functional.scaled_dot_product_attention(q, key_cache[:, :, :end], value_cache[:, :, :end], mask)\n"
    )


def _layers(io: bool) -> str:
    if io:
        return (
            "            x, k, v = layer(x, position_ids, key_cache[i], value_cache[i])\n"
            "            keys.append(k)\n            values.append(v)\n"
        )
    return "            x = layer(x, position_ids, key_cache[i], value_cache[i])\n"


def _main(w: Writer) -> str:
    return "\n\nif __name__ == '__main__':\n    parser = argparse.ArgumentParser()\n" + indented(
        [*w.flags, "export(parser.parse_args())"], 4
    )


# -- coreml -----------------------------------------------------------------------------------------------------


def _core_ml(w: Writer, defect: str, by_environment: bool) -> str:
    rng = w.rng
    _sizes(w)
    cut = defect == "last-token-only" and (OPEN if by_environment else True)
    pinned = defect in ("static-query", "fixed-window") and (OPEN if by_environment else True)
    rows = _rows(w, cut)
    head = _head(w, defect)
    last = w.write(cut, _depth(w), False)
    width = 1 if defect == "static-query" else rng.choice((4, 8))
    states = ["keyCache", "valueCache"] + (["convState"] if defect == "hybrid-state" else [])
    ring = " % CONTEXT" if defect == "ring-cache" else ""
    baked = defect == "baked-length"
    end, reshaped = "causal_mask.shape[-1]", "rows"
    if baked:
        end, reshaped = rng.choice(
            (
                ("int(causal_mask.shape[-1])", "rows"),
                ("causal_mask.shape[-1]", "int(rows)"),
                ("causal_mask.shape[-1]", "len(input_ids[0])"),
                ("causal_mask.size(-1).item()", "rows"),
                ("causal_mask.shape[-1]", "int(x.size(1))"),
            )
        )
    query = _query_shape(w, pinned, width)
    state_code = _state_types(w, states)
    trace_width = w.write(width if pinned is True else rng.choice((2, 4)), _depth(w), True)
    _decoys(w)
    conv = '        self.register_buffer("convState", torch.zeros(1, HIDDEN, 3))' if "convState" in states else ""
    write_conv = "        self.convState[:, :, :] = x[:, -1:].transpose(1, 2)" if conv else ""
    converting = rng.choice(
        (
            ["mlmodel = ct.convert(traced, inputs=inputs, outputs=[ct.TensorType(name='logits')], states=states)"],
            [
                "kwargs = {'inputs': inputs, 'outputs': [ct.TensorType(name='logits', dtype=np.float16)]}",
                "if states:\n    kwargs['states'] = states",
                "mlmodel = ct.convert(traced, **kwargs)",
            ],
            [
                "options = dict(minimum_deployment_target=ct.target.iOS18)",
                "options.update(inputs=inputs, states=states, outputs=[ct.TensorType(name='logits')])",
                "mlmodel = ct.convert(model=traced, **options)",
            ],
        )
    )
    body = [
        "model = Model().eval()",
        f"width = {trace_width}",
        "example = (torch.zeros(1, width, dtype=torch.int32), torch.zeros(1, 1, width, width + 4))",
        "traced = torch.jit.trace(model, example)",
        *query,
        *state_code,
        *converting,
        "mlmodel.save('m.mlpackage')",
    ]
    return "".join(
        (
            "import argparse\nimport coremltools as ct\nimport numpy as np\nimport torch\nfrom torch import nn\n\n",
            indented(w.top, 0),
            f"""

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = {last}
        self.embed = nn.Embedding(VOCAB, HIDDEN)
        self.qkv = nn.Linear(HIDDEN, 3 * HIDDEN)
        self.norm = nn.LayerNorm(HIDDEN)
        self.head = nn.Linear(HIDDEN, VOCAB)
        self.register_buffer("keyCache", torch.zeros(1, HEADS, CONTEXT, HIDDEN // HEADS))
        self.register_buffer("valueCache", torch.zeros(1, HEADS, CONTEXT, HIDDEN // HEADS))
{conv}

{_pick(w, cut)}
    def forward(self, input_ids, causal_mask):
        x = self.embed(input_ids)
        batch, rows, _ = x.shape
        q, k, v = self.qkv(x).view(batch, rows, 3, HEADS, HIDDEN // HEADS).permute(2, 0, 3, 1, 4)
        end = {end}
        start = (end - rows){ring}
        self.keyCache[:, :, start : start + rows, :] = k
        self.valueCache[:, :, start : start + rows, :] = v
{write_conv}
        keys, values = self.keyCache[:, :, :end], self.valueCache[:, :, :end]
        y = nn.functional.scaled_dot_product_attention(q, keys, values, causal_mask)
        x = x + y.transpose(1, 2).reshape(1, {reshaped}, HIDDEN)
        x = self.norm(x)
""",
            indented(rows, 8),
            indented(head, 8),
            "\n\ndef export(args):\n",
            indented(body, 4),
            _main(w),
        )
    )


def _query_shape(w: Writer, pinned: Any, width: int) -> list[str]:
    """Code that makes `inputs`."""
    test = w.write(pinned, _depth(w), True)
    again = w.write(pinned, 1, True)
    fixed = w.write(width, _depth(w), True)
    types = (
        "inputs = [ct.TensorType(name='input_ids', shape=(1, rows), dtype=np.int32),"
        " ct.TensorType(name='causal_mask', shape=(1, 1, rows, seen), dtype=np.float16)]"
    )
    listed = ["inputs = []", "inputs.append(ct.TensorType(name='input_ids', shape=(1, rows), dtype=np.int32))"]
    listed += [
        "shape = [1, 1]",
        "shape += [rows, seen]",
        "inputs.append(ct.TensorType(name='causal_mask', shape=tuple(shape)))",
    ]
    tail = w.rng.choice(([types], listed))
    seen = w.rng.choice(("ct.RangeDim(1, CONTEXT)", "ct.RangeDim(lower_bound=1, upper_bound=CONTEXT, default=1)"))
    ranged = w.rng.choice(("ct.RangeDim(1, 64)", "ct.RangeDim(lower_bound=1, upper_bound=64, default=4)"))
    made = w.rng.choice(
        (
            [f"rows = {fixed} if {test} else {ranged}"],
            [f"rows = {ranged}", f"if {test}:\n    rows = {fixed}"],
            [f"sizes = {{'rows': {ranged}}}", f"if {test}:\n    sizes['rows'] = {fixed}", "rows = sizes['rows']"],
            [f"bounds = ({fixed}, {fixed}) if {test} else (1, 64)", "rows = ct.RangeDim(*bounds)"],
            [f"rows = ct.RangeDim(lower_bound={fixed} if {test} else 1, upper_bound={width} if {again} else 64)"],
        )
    )
    return [f"seen = {seen}", *made, *tail]


def _state_types(w: Writer, states: list[str]) -> list[str]:
    """Code that makes `states`."""
    names = w.write(states, _depth(w), True)
    one = "ct.StateType(wrapped_type=ct.TensorType(shape=getattr(model, {n}).shape, dtype=np.float16), name={n})"
    factory = w.name("state")
    w.lines(f"def {factory}(model, name):\n    return {one.format(n='name')}")
    return w.rng.choice(
        (
            [f"states = [{one.format(n='n')} for n in {names}]"],
            ["states = []", f"for n in {names}:\n    states.append({one.format(n='n')})"],
            [f"states = [{factory}(model, n) for n in {names}]"],
            [f"states = list(map(lambda n: {factory}(model, n), {names}))"],
            ["states = [" + ", ".join(one.format(n=repr(s)) for s in states) + "]"],
            [f"states = {{n: {factory}(model, n) for n in {names}}}", "states = list(states.values())"],
        )
    )
