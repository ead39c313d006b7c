"""Labels of export scripts, and how often a scan report agrees with them.

Verdict: of the graphs of a run the best one is compared (eligible, unresolved, out, not a decoder); where a recipe
names its bundle, only graphs of that bundle. `accept` of a label lists every verdict that a reader could defend. Labels
of one run (one a graph) are taken together: the best of them says what is wanted.

Facts (of decoders with the right verdict, where the label has them): the graphs with the verdict of the label, of which
one must have it; the best graphs of the run where the verdict is another that the label accepts.

- reasons: the rules broken, exactly these; *and more* when the label's are all there but others too
- states: names and roles, in any order; `*` in a name of either side stands for a layer, `kv` for keys or values
- query: `dynamic` or the width, `static` for any width
- logits: `all`, `last` or `none`

A false eligible is a graph that is reported eligible in a run for which no label accepts it, or that a label names as
out.
"""

from __future__ import annotations

import fnmatch
import json
import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NOT_A_DECODER = "out:not-a-decoder"
MISSED = "missed"
ANSWERS = ("right", "and more", "unknown", "wrong")
FIELDS = ("reasons", "states", "query", "logits")


# -- labels ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Label:
    """What a reader found of one run; see the module's description."""

    id: str
    type: str
    verdict: str
    accept: tuple[str, ...]
    script: str = ""
    bundle: str = ""
    argv: tuple[str, ...] = ()
    repository: str = ""
    reasons: tuple[str, ...] = ()
    states: Mapping[str, str] | None = None
    query: str | None = None
    logits: str | None = None
    graphs: Mapping[str, str] = field(default_factory=dict)
    corrected: str = ""

    @property
    def path(self) -> str:
        return self.script or self.id

    @property
    def run(self) -> tuple[object, ...]:
        """What labels of one run share."""
        return (self.repository, self.id) if self.type == "recipe" else (self.repository, self.path, self.argv)

    def knows(self, name: str) -> bool:
        """Whether the label says something of this fact; none of what is no decoder is compared."""
        if self.verdict == NOT_A_DECODER:
            return False
        return name == "reasons" or getattr(self, name) is not None


def load(path: Path) -> list[Label]:
    """The labels of a file. Raises `OSError`, `ValueError` or `TypeError` when it is not one."""

    def entry(fields: dict[str, Any]) -> Label:
        frozen: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()}
        return Label(**frozen)

    return [entry(fields) for fields in json.loads(path.read_text("utf-8"))["labels"]]


# -- scoring -----------------------------------------------------------------------------------------------------------

Graph = Mapping[str, Any]


def verdict(graph: Graph) -> str:
    """`eligible`, `unresolved` or `out:<rule>`."""
    given: str = graph["verdict"]
    return f"out:{graph['reasons'][0]['rule']}" if given == "out" else given


def rank(answer: str) -> int:
    return {"eligible": 3, "unresolved": 2, NOT_A_DECODER: 0}.get(answer, 1)


def best(graphs: Sequence[Graph]) -> list[Graph]:
    top = max((rank(verdict(g)) for g in graphs), default=0)
    return [g for g in graphs if rank(verdict(g)) == top]


def stem(bundle: str | None) -> str:
    return re.sub(r"\.(aimodelc?|mlpackage|mlmodelc)$", "", posixpath.basename(bundle or ""))


def graphs_of(label: Label, graphs: Iterable[Graph]) -> list[Graph]:
    """The graphs of the run that the label is about."""
    if label.type == "recipe":
        mine = [g for g in graphs if g["invocation"]["recipe"] == label.id]
        return [g for g in mine if label.bundle and stem(g["bundle"]) == stem(label.bundle)] or mine
    kinds = {"default", "variant"} if label.argv else {"default"}
    return [
        g
        for g in graphs
        if g["script"] == label.path
        and g["invocation"]["kind"] in kinds
        and (not label.argv or sorted(g["invocation"]["argv"]) == sorted(label.argv))
    ]


def has(label: Label, name: str, graph: Graph) -> str:
    """`right`, `and more`, `unknown` or `wrong`: the fact of a graph by the label."""
    facts = graph["facts"]
    match name:
        case "reasons":
            broken, wanted = {r["rule"] for r in graph["reasons"]}, set(label.reasons)
            if label.verdict == "unresolved":
                broken = {r for r in broken if not r.startswith("unknown-")}
            return "right" if broken == wanted else "and more" if wanted and broken > wanted else "wrong"
        case "states":
            if facts["states"] is None:
                return "unknown"
            return (
                "right" if same_states({s["name"]: s["role"] for s in facts["states"]}, label.states or {}) else "wrong"
            )
        case "query":
            given = facts["query"]["value"]
            if given is None:
                return "unknown"
            return "right" if given == label.query or given.startswith(f"{label.query}:") else "wrong"
        case _:
            given = facts["logits"]["value"]
            return "unknown" if given is None else "right" if given == label.logits else "wrong"


def same_states(given: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether each state has a counterpart: by name, of the same role."""

    def fits(a: str, role: str, b: str, other: str) -> bool:
        names = fnmatch.fnmatchcase(a, b) or fnmatch.fnmatchcase(b, a)
        return names and (role == other or (other == "kv" and role.startswith(("kv", "mla"))))

    return all(any(fits(n, r, m, o) for m, o in wanted.items()) for n, r in given.items()) and all(
        any(fits(n, r, m, o) for n, r in given.items()) for m, o in wanted.items()
    )


def named_out(label: Label, graph: Graph) -> bool:
    """Whether the longest pattern of the label that names the graph says that it is out."""
    names = {stem(graph["bundle"]), graph["graph"]} - {""}
    fitting = [p for p in label.graphs if any(fnmatch.fnmatchcase(n, p) for n in names)]
    return bool(fitting) and label.graphs[max(fitting, key=len)] == "out"


@dataclass(slots=True)
class Score:
    """`verdicts` by wanted verdict: whether each was right. `facts` by name: the answer of each (see `ANSWERS`).

    `corrected` counts the labels that a second reading has changed.
    """

    verdicts: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))
    facts: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in FIELDS})
    false_eligible: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    corrected: int = 0

    @property
    def right(self) -> int:
        return sum(sum(answers) for answers in self.verdicts.values())

    @property
    def total(self) -> int:
        return sum(len(answers) for answers in self.verdicts.values())

    def add(self, other: Score) -> None:
        """Take over the answers of another repository."""
        for name, answers in other.verdicts.items():
            self.verdicts[name] += answers
        for name, found in other.facts.items():
            self.facts[name] += found
        self.false_eligible += other.false_eligible
        self.remarks += other.remarks
        self.corrected += other.corrected

    def lines(self) -> Iterator[str]:
        for name, answers in sorted(self.verdicts.items()):
            yield f"{name:24} {sum(answers):4} of {len(answers)}"
        for name, found in self.facts.items():
            others = "".join(f", {found.count(a)} {a}" for a in ANSWERS[1:] if a in found)
            yield f"{name:24} {found.count('right'):4} of {len(found)}{others}"
        share = self.right / max(1, self.total)
        yield f"labels with a correction (see README): {self.corrected}"
        yield f"verdicts right {self.right} of {self.total} ({share:.1%}), false eligible {len(self.false_eligible)}"


def score(labels: Sequence[Label], report: Mapping[str, Any]) -> Score:
    """Compare a report with the labels of its repository."""
    out = Score(corrected=sum(bool(label.corrected) for label in labels))
    quiet = {f["path"] for f in report["files"] if f["status"] == "no-export"}
    runs: dict[tuple[object, ...], list[Label]] = {}
    for label in labels:
        runs.setdefault(label.run, []).append(label)
    for group in runs.values():
        wanted = max(rank(label.verdict) for label in group)
        first, *others = [label for label in group if rank(label.verdict) == wanted]
        accept = {v for label in (first, *others) for v in label.accept}
        graphs = graphs_of(first, report["graphs"])
        top = best(graphs)
        given = sorted({verdict(g) for g in top}) or [NOT_A_DECODER if first.path in quiet else MISSED]
        right = any(v in accept for v in given)
        out.verdicts[first.verdict].append(right)
        if not right:
            out.remarks.append(f"{_name(first)}: {first.verdict}, not {' or '.join(given)}")
        allowed = any("eligible" in label.accept for label in group)
        for graph in graphs:
            if graph["verdict"] == "eligible" and (not allowed or any(named_out(label, graph) for label in group)):
                out.false_eligible.append(f"{_name(first)}: {graph['id']}")
        told = [g for g in graphs if verdict(g) in {label.verdict for label in (first, *others)}] or top
        for name in FIELDS if right else ():
            if first.knows(name):
                answers = {has(label, name, g) for label in (first, *others) if label.knows(name) for g in told}
                answer = next((a for a in ANSWERS if a in answers), "wrong")
                out.facts[name].append(answer)
                if answer != "right":
                    out.remarks.append(f"{_name(first)}: {name} {_shown(first, name)}, not {_found(name, told)}")
    return out


def _name(label: Label) -> str:
    return " ".join([label.id, *(label.argv if label.type != "recipe" else ())])


def _shown(label: Label, name: str) -> str:
    value = getattr(label, name)
    return " ".join(f"{k}={v}" for k, v in value.items()) if isinstance(value, Mapping) else str(value)


def _found(name: str, graphs: Sequence[Graph]) -> str:
    def one(graph: Graph) -> str:
        facts = graph["facts"]
        match name:
            case "reasons":
                return str(tuple(r["rule"] for r in graph["reasons"]))
            case "states":
                return " ".join(f"{s['name']}={s['role']}" for s in facts["states"] or ()) or "none"
        return str(facts[name]["value"])

    return " or ".join(sorted({one(g) for g in graphs})) or "found"
