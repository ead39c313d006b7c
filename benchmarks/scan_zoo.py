"""A whole scan of a public model zoo: its cost, whether it gives the same bytes again, and how often it is right.

    python benchmarks/scan_zoo.py <coreai-model-zoo checkout> <coreai-models checkout>

The zoo (MaTriXy/coreai-model-zoo) imports Apple's library (apple/coreai-models) with changes of its own; both commits
are named in the labels. Each scan is one cold process without a cache, with another seed of Python's hashes. The labels
(`labels/zoo.json`) were made by reading the scripts; each is about one run: a script without arguments, or a recipe.

Verdict: of the graphs of a run the best one is compared (eligible, unresolved, out, not a decoder); where a recipe
names its bundle, only graphs of that bundle. `accept` of a label lists every verdict that a reader could defend.
Facts (decoders only, where the label has them): the best graphs of the run, one of which must have it.

- reasons: the rules broken, exactly these; *and more* when the label's are all there but others too
- states: names and roles, in any order
- query: `dynamic` or the width, `static` for any width
- logits: `all`, `last` or `none`

A false eligible is a graph that is reported eligible in a run for which no label accepts it, or that a label names as
out. Exit status: 0 when the bytes agree, no eligible is false and `--min-right` of the verdicts are right, else 1; 2
when a scan fails.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import posixpath
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
OVERLAY = "conversion/overlay"
NOT_A_DECODER = "out:not-a-decoder"
MISSED = "missed"
ANSWERS = ("right", "and more", "unknown", "wrong")
FIELDS = ("reasons", "states", "query", "logits")


# -- the scan ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU and wall time in seconds, peak resident memory in MB."""

    user: float
    system: float
    wall: float
    memory: float

    def __str__(self) -> str:
        return f"{self.user:.1f} s user, {self.system:.1f} s system, {self.wall:.1f} s wall, {self.memory:.0f} MB peak"


def scan(zoo: Path, base: Path, output: Path, seed: int) -> Cost:
    """One scan in a process of its own. Raises `CalledProcessError` when it fails."""
    overlay = zoo / OVERLAY
    libraries = [base / "python/src", overlay / "patches/python-overlay.patch", overlay / "files/python/src"]
    command = [sys.executable, "-m", "auditor", "scan", str(zoo), "--no-cache", "--format", "json"]
    command += ["--output", str(output), *(word for path in libraries for word in ("--library", str(path)))]
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent), "PYTHONHASHSEED": str(seed)}
    begin = time.monotonic()
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    wall = time.monotonic() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise subprocess.CalledProcessError(process.returncode, command, stderr=said)
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return Cost(used.ru_utime, used.ru_stime, wall, used.ru_maxrss / unit)


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
    reasons: tuple[str, ...] = ()
    states: Mapping[str, str] | None = None
    query: str | None = None
    logits: str | None = None
    graphs: Mapping[str, str] = field(default_factory=dict)

    @property
    def path(self) -> str:
        return self.script or self.id

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
        and sorted(g["invocation"]["argv"]) == sorted(label.argv)
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
            return "right" if {s["name"]: s["role"] for s in facts["states"]} == label.states else "wrong"
        case "query":
            given = facts["query"]["value"]
            if given is None:
                return "unknown"
            return "right" if given == label.query or given.startswith(f"{label.query}:") else "wrong"
        case _:
            given = facts["logits"]["value"]
            return "unknown" if given is None else "right" if given == label.logits else "wrong"


def named_out(label: Label, graph: Graph) -> bool:
    """Whether the longest pattern of the label that names the graph says that it is out."""
    names = {stem(graph["bundle"]), graph["graph"]} - {""}
    fitting = [p for p in label.graphs if any(fnmatch.fnmatchcase(n, p) for n in names)]
    return bool(fitting) and label.graphs[max(fitting, key=len)] == "out"


@dataclass(slots=True)
class Score:
    """`verdicts` by wanted verdict: whether each was right. `facts` by name: the answer of each (see `ANSWERS`)."""

    verdicts: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))
    facts: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in FIELDS})
    false_eligible: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def right(self) -> int:
        return sum(sum(answers) for answers in self.verdicts.values())

    @property
    def total(self) -> int:
        return sum(len(answers) for answers in self.verdicts.values())

    def lines(self) -> Iterator[str]:
        for name, answers in sorted(self.verdicts.items()):
            yield f"{name:24} {sum(answers):4} of {len(answers)}"
        for name, found in self.facts.items():
            others = "".join(f", {found.count(a)} {a}" for a in ANSWERS[1:] if a in found)
            yield f"{name:24} {found.count('right'):4} of {len(found)}{others}"
        share = self.right / max(1, self.total)
        yield f"verdicts right {self.right} of {self.total} ({share:.1%}), false eligible {len(self.false_eligible)}"


def score(labels: Sequence[Label], report: Mapping[str, Any]) -> Score:
    """Compare a report with the labels."""
    out = Score()
    quiet = {f["path"] for f in report["files"] if f["status"] == "no-export"}
    for label in labels:
        graphs = graphs_of(label, report["graphs"])
        top = best(graphs)
        given = sorted({verdict(g) for g in top}) or [NOT_A_DECODER if label.path in quiet else MISSED]
        right = any(v in label.accept for v in given)
        out.verdicts[label.verdict].append(right)
        if not right:
            out.remarks.append(f"{label.id}: {label.verdict}, not {' or '.join(given)}")
        for graph in graphs:
            if graph["verdict"] == "eligible" and ("eligible" not in label.accept or named_out(label, graph)):
                out.false_eligible.append(f"{label.id}: {graph['id']}")
        for name in FIELDS:
            if label.knows(name):
                answers = {has(label, name, g) for g in top}
                answer = next((a for a in ANSWERS if a in answers), "wrong")
                out.facts[name].append(answer)
                if answer in ("unknown", "wrong"):
                    out.remarks.append(f"{label.id}: {name} {_shown(label, name)}, not {_found(name, top)}")
    return out


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


# -- the command -------------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Scan a model zoo: cost, determinism, and how often it is right.")
    parser.add_argument("zoo", type=Path, help="a checkout of MaTriXy/coreai-model-zoo")
    parser.add_argument("base", type=Path, help="a checkout of apple/coreai-models")
    parser.add_argument("--labels", type=Path, default=HERE / "labels/zoo.json")
    parser.add_argument("--runs", type=int, default=2, help="scans, of which all must give the same bytes (default 2)")
    parser.add_argument("--min-right", type=float, default=0.0, help="share of right verdicts for exit status 0")
    parser.add_argument("--verbose", action="store_true", help="every difference")
    args = parser.parse_args(arguments)
    reports: list[bytes] = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(max(1, args.runs)):
            path = Path(folder, f"{number}.json")
            try:
                cost = scan(args.zoo.resolve(), args.base.resolve(), path, number)
            except subprocess.CalledProcessError as error:
                print(f"the scan failed with status {error.returncode}:\n{error.stderr}", file=sys.stderr)
                return 2
            print(f"scan {number + 1}: {cost}")
            reports.append(path.read_bytes())
    same = len(set(reports)) == 1
    print(f"{len(reports)} scans, {len(reports[0]):,} bytes: {'the same bytes' if same else 'DIFFERENT BYTES'}")
    result = score(load(args.labels), json.loads(reports[0]))
    print("\n".join(result.lines()))
    for line in result.false_eligible:
        print(f"FALSE ELIGIBLE {line}")
    for line in result.remarks if args.verbose else ():
        print(line)
    return 0 if same and not result.false_eligible and result.right >= args.min_right * result.total else 1


if __name__ == "__main__":
    sys.exit(main())
