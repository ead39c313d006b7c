"""Single edits of the eligible script in `support.EXPORTER`, and what is printed after them."""

from __future__ import annotations

from pathlib import Path

from rules.facts import State
from rules.verdict import Verdict
from tests.auditor.support import EXPORTER, graph_of, indented, judged, mutate, scan_text

Edit = tuple[str, str]
Mutation = tuple[tuple[Edit, ...], frozenset[str]]
"""The edits, and what may be printed: where a reader may give up, `unresolved` stands beside `out`."""

LAST = "out by last-token-only"
STATIC = "out by static-query"
WINDOW = "unresolved by fixed-window"
HYBRID = "out by hybrid-state"
IO = "out by kv-as-io"
NO_LOGITS = "out by no-logits"
RING = "out by ring-cache"
KERNEL = "out by row-kernel"
BAKED = "out by baked-length"
NOT_A_DECODER = "out by not-a-decoder"
UNKNOWN_LOGITS = "unresolved by unknown-logits"
UNKNOWN_QUERY = "unresolved by unknown-query"
UNKNOWN_STATES = "unresolved by unknown-states"
UNKNOWN_KIND = "unresolved by unknown-kind"
UNKNOWN_ROLE = "unresolved by unknown-state-role"

NORM = "        x = self.norm(x)\n"
HEAD = "        logits = self.head(x)\n"
RETURN = "        return logits\n"
ROWS = "        rows = input_ids.shape[1]\n"
START = "        start = end - rows\n"
WRITE_KEYS = "        key_cache[:, :, start:end] = k\n"
STATE_LIST = 'STATES = ["keyCache", "valueCache"]'
SIGNATURE = "    def forward(self, input_ids, position_ids, key_cache, value_cache):\n"
BUILD = "    model = Model().eval()\n"
PROGRAM = "    program ="
CONVERTER = "    converter = TorchConverter()\n"
PARSE = "    args = parser.parse_args()\n"
IDS = '        "input_ids": None if args.static else {1: Dim("tokens", min=1, max=64)},\n'
ONE_TOKEN = ("1 if args.static else 8", "1")
LAST_INPUT = '        "value_cache": cache.clone(),\n'
LAST_DIM = '        "value_cache": {3: Dim("capacity", min=64, max=CONTEXT)},\n'
EXPORT = "def export(args):\n"
LAYER = "class Layer(nn.Module):\n"


def may(*says: str) -> frozenset[str]:
    return frozenset(says)


def before(anchor: str, *code: str) -> Edit:
    return anchor, "".join(code) + anchor


def after(anchor: str, *code: str) -> Edit:
    return anchor, anchor + "".join(code)


def instead(anchor: str, *lines: str) -> Edit:
    """Lines of a method in place of the anchor."""
    return anchor, indented(lines)


def keys(*lines: str) -> Edit:
    """The keys written by these lines instead."""
    return instead(WRITE_KEYS, *lines)


def after_norm(code: str) -> Edit:
    return after(NORM, f"        {code}\n")


def after_head(code: str) -> Edit:
    return after(HEAD, f"        {code}\n")


def built(code: str) -> Edit:
    """`code` after the model was built."""
    return after(BUILD, indented(code, 4))


def top(code: str) -> Edit:
    """Module-level code before the exporting function."""
    return before(EXPORT, code.rstrip("\n"), "\n\n\n")


def returned(code: str) -> Edit:
    return RETURN, f"        return {code}\n"


def ids(code: str) -> Edit:
    """The query's entry in the dynamic shapes."""
    return IDS, f'        "input_ids": {code},\n' if code else ""


def third_input(parameter: str, shape: str) -> tuple[Edit, ...]:
    return (
        (SIGNATURE, SIGNATURE.replace("value_cache)", f"value_cache, {parameter})")),
        after(LAST_INPUT, f'        "{parameter}": torch.zeros({shape}),\n'),
        after(LAST_DIM, f'        "{parameter}": None,\n'),
    )


def third_state(name: str, parameter: str, shape: str, body: str) -> tuple[Edit, ...]:
    """A third state, declared under `name` and written by `body`."""
    declared = (STATE_LIST, f'STATES = ["keyCache", "valueCache", "{name}"]')
    return (declared, after_norm(body), *third_input(parameter, shape))


def eligible(root: Path, *edits: Edit) -> bool:
    return judged(root, mutate(EXPORTER, *edits)).verdict is Verdict.ELIGIBLE


def state_of_keys(root: Path, *edits: Edit) -> State:
    """What is found of the state that holds the keys."""
    facts = graph_of(scan_text(root, {"export.py": mutate(EXPORTER, *edits)})).facts
    return next(s for s in facts.states.value or () if s.name == "keyCache")


def check_broken(root: Path, mutation: Mutation) -> None:
    """A broken property costs `eligible`, and what is printed is in the table."""
    edits, expected = mutation
    judgement = judged(root, mutate(EXPORTER, *edits))
    reasons = [f.message for f in judgement.reasons]
    assert judgement.verdict is not Verdict.ELIGIBLE
    assert judgement.says() in expected, reasons


def check_harmless(root: Path, edits: tuple[Edit, ...]) -> None:
    judgement = judged(root, mutate(EXPORTER, *edits))
    assert judgement.verdict is Verdict.ELIGIBLE, [f.message for f in judgement.reasons]
