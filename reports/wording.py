"""Words and safe characters that the formats share."""

from __future__ import annotations

import shlex
import unicodedata
from collections.abc import Iterable

from rules.audit import Audit
from rules.facts import Graph, GraphFacts
from rules.fixes import Judged
from rules.verdict import Verdict

NOT_KNOWN = "?"


def plain(text: str) -> str:
    """`text` on one line; characters that steer a terminal or reorder text appear as `\\x1b`, `\\u202e`."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escaped(char) if unicodedata.category(char) in _STEERING else char for char in text)


_STEERING = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def _escaped(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def command(graph: Graph) -> str:
    """The invocation as one would type it."""
    return shlex.join([graph.by or graph.script, *graph.invocation.argv])


def states_word(facts: GraphFacts) -> str:
    """The states in a few words: `2 kv`, `2 kv + 1 conv`, `none`, `?`."""
    if facts.states.value is None:
        return NOT_KNOWN
    counts: dict[str, int] = {}
    for state in facts.states.value:
        role = "kv" if state.role.is_kv else str(state.role)
        counts[role] = counts.get(role, 0) + 1
    return " + ".join(f"{count} {role}" for role, count in counts.items()) or "none"


def query_word(facts: GraphFacts) -> str:
    return str(facts.query.value) if facts.query.value is not None else NOT_KNOWN


def logits_word(facts: GraphFacts) -> str:
    return str(facts.logits.value) if facts.logits.value is not None else NOT_KNOWN


def kv_word(facts: GraphFacts) -> str:
    return str(facts.kv.value) if facts.kv.value is not None else NOT_KNOWN


def kind_word(facts: GraphFacts) -> str:
    return str(facts.kind.value) if facts.kind.value is not None else NOT_KNOWN


def why(item: Judged) -> str:
    """The rules that led to the verdict, the primary one first."""
    return ", ".join(dict.fromkeys(reason.rule for reason in item.judgement.reasons)) or "-"


def ranges(numbers: Iterable[int]) -> str:
    """Ascending numbers as `1, 2, 5..9`: three or more that follow on each other are a range."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]}..{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)


def plural(count: int, noun: str) -> str:
    """`1 model`, `2 models`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def summary(audit: Audit) -> str:
    """One line that counts files, graphs and models by verdict."""
    graphs = sum(not item.graph.by for item in audit.graphs)
    counted = f"{plural(len(audit.scan.files), 'file')}, {plural(graphs, 'graph')}"
    if not audit.graphs:
        return f"{counted}: nothing to audit; give the folder that holds the export scripts"
    verdicts = ", ".join(f"{audit.count(verdict)} {verdict}" for verdict in Verdict)
    return f"{counted}, {plural(len(audit.models), 'model')}: {verdicts}"
