"""The words of the page: decisions, sentences and numbers, from plain data."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from reports.ab_text import EFFECTS, shipped_lines
from reports.wording import NOT_KNOWN
from rules.costs import Cost, DraftLength
from rules.decision import Decision
from rules.review import Probed, Reviewed

Data = Mapping[str, Any]


SCOPES = {
    "device": "on a device",
    "interpreter": "on the interpreter, which has no device's costs",
    "program": "by the program's semantics, without a device",
    "unstated": "somewhere that is not stated",
    "": "somewhere that is not stated",
}
SCOPE = {
    "device": "device",
    "interpreter": "interpreter",
    "program": "program",
    "unstated": "not stated",
    "": "not stated",
}


def name(identifier: str) -> str:
    """What a model is called among people: the table of its recipe, or its script."""
    head, mark, table = identifier.rpartition("#")
    return table if mark and table else identifier.rpartition("/")[2] or head or identifier


def command(graph: Data) -> str:
    """The invocation as one would type it."""
    return shlex.join([graph["script"], *graph["invocation"]["argv"]])


def place(item: Data) -> str:
    return f"{item['path']}:{item['line']}" if item["line"] else str(item["path"])


def shared(places: Sequence[Data], before: Sequence[Data]) -> int:
    """How many places two paths begin with alike; none where that is a single one, which is said as quickly."""
    count = 0
    for one, other in zip(places, before, strict=False):
        if one != other:
            break
        count += 1
    return count if count > 1 or count == len(places) else 0


def states(facts: Data) -> str:
    """The states in a few words: `2 kv`, `2 kv + 1 conv`, `none`, `?`."""
    if facts["states"] is None:
        return NOT_KNOWN
    counts: dict[str, int] = {}
    for state in facts["states"]:
        role = "kv" if state["role"].startswith("kv-") or state["role"] == "mla-latent" else str(state["role"])
        counts[role] = counts.get(role, 0) + 1
    return " + ".join(f"{count} {role}" for role, count in counts.items()) or "none"


def value(facts: Data, key: str) -> str:
    """A fact as the tables say it."""
    return NOT_KNOWN if facts[key]["value"] is None else str(facts[key]["value"])


def rules(graph: Data) -> tuple[str, ...]:
    """The rules that led to the verdict, the primary one first."""
    return tuple(dict.fromkeys(reason["rule"] for reason in graph["reasons"]))


def advice(graph: Data) -> tuple[str, ...]:
    """The advice on a graph, which decides nothing."""
    return tuple(dict.fromkeys(item["rule"] for item in graph["advice"]))


def probe(item: Reviewed) -> str:
    """What the probes of the shipped bundle said, in the table's words."""
    if not item.deciding:
        return "other bundle only" if item.probes else "unprobed"
    said = (f"{_outcome(one)} ({SCOPE.get(one.data['scope'], one.data['scope'])})" for one in item.deciding)
    return ", ".join(dict.fromkeys(said))


def _outcome(one: Probed) -> str:
    return "refused" if not one.says else one.verdict


def drafts(items: Sequence[DraftLength]) -> str:
    """The draft lengths, marked where they are no device's; `-` where none is known."""
    if not items:
        return "-"
    ks = ", ".join(str(k) for k in sorted({draft.k for draft in items}))
    scope = items[0].scope
    return ks if scope == "device" else f"{ks} ({SCOPE.get(scope, scope)})"


def sentence(item: Reviewed) -> str:
    """The verdict of a model in one sentence or two."""
    primary = item.primary["reasons"][0]["message"] if item.primary["reasons"] else ""
    if item.decision is Decision.CONFIRMED:
        return f"Can verify drafts: the source says so and a probe on a device confirms it. {_draft(item.drafts)}"
    if item.decision is Decision.CONFIRMED_ELSEWHERE:
        where = SCOPES.get(str(_confirming(item).data["scope"]), "")
        return f"Can verify drafts: the source says so, and a probe confirms it {where}."
    if item.decision is Decision.SETTLED:
        where = SCOPES.get(str(_confirming(item).data["scope"]), "")
        return f"The bundle can verify drafts, confirmed {where}; the source left it open: {primary}."
    if item.decision is Decision.PARTLY:
        return "Should verify drafts: the source has all three properties, and a probe did not check everything."
    if item.decision is Decision.UNPROBED:
        return "Should verify drafts: the source has all three properties. No bundle was probed."
    if item.decision is Decision.REFUTED:
        why = next((line for one in item.deciding if one.verdict == "refuted" for line in _why(one)), "see its gates")
        said = (
            "The source has all three properties" if item.model["verdict"] == "eligible" else "The source is unresolved"
        )
        return f"Cannot verify drafts as shipped. {said}, and the probe refutes it: {why}."
    if item.decision is Decision.CONTRADICTED:
        return f"Out in the source ({primary}), yet a probe confirms the bundle: one is stale or was misread."
    if item.decision is Decision.UNRESOLVED:
        return f"Not known: {primary}."
    if item.decision is Decision.NO_DECODER:
        return f"Drafting does not apply: {primary}."
    return f"Cannot verify drafts as exported: {primary}."


def _why(one: Probed) -> Iterator[str]:
    for graph in one.data["graphs"]:
        if graph["verdict"] == "refuted":
            yield from graph["why"]


def _confirming(item: Reviewed) -> Probed:
    return next(one for one in item.deciding if one.verdict == "confirmed")


def _draft(items: Sequence[DraftLength]) -> str:
    if not items:
        return "No draft length is known to pay."
    pays = {draft.k: draft.bar for draft in items}
    listed = (
        f"K={k}" + ("" if bar is None else f" if a round brings more than {bar:.2f} tokens") for k, bar in pays.items()
    )
    return f"Draft {', or '.join(listed)}."


def staircase(cost: Cost) -> str:
    """A plot in words, for those who do not see it."""
    tops = [f"K={plateau['k']}" for plateau in cost.plateaus if plateau["k"]]
    parts = [f"Cost of a verify pass relative to one decode, measured at {len(cost.drawable)} widths."]
    parts += [_plateau(plateau) for plateau in cost.plateaus]
    parts.append(f"Plateau tops: {', '.join(tops)}." if tops else "No plateau top.")
    if cost.avoid:
        parts.append(f"Avoid K={', '.join(map(str, cost.avoid))}, just over a step.")
    return " ".join(parts)


def _plateau(plateau: Data) -> str:
    span = f"S={plateau['first']}" + (f" to {plateau['last']}" if plateau["last"] != plateau["first"] else "")
    return f"Flat at {number(plateau['c_v'])} from {span}." if plateau["c_v"] is not None else f"Flat from {span}."


def number(value: object, digits: int = 2) -> str:
    """A number with so many decimals; `-` where there is none, and text as it is."""
    if value is None:
        return "-"
    return f"{value:.{digits}f}" if isinstance(value, float) else str(value)


def figure(value: object) -> str:
    """A number as short as it stays exact enough to compare: 3 significant digits."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "0" if value == 0 else f"{value:.3g}"
    return "-" if value is None else str(value)


_QUIET = {"argmax"}


def figures(numbers: Data) -> tuple[tuple[str, str], ...]:
    """The single numbers of a gate; what it counts by width or state is shown elsewhere."""
    flat = [(key.replace("_", " "), figure(value)) for key, value in numbers.items() if not _nested(value)]
    for key, inner in numbers.items():
        if isinstance(inner, Mapping) and key not in ("widths", "rows") and len(inner) <= 6:
            flat += [(f"{key}, {sub}".replace("_", " "), figure(v)) for sub, v in inner.items() if not _nested(v)]
    return tuple((key, value) for key, value in flat if key not in _QUIET)


def _nested(value: object) -> bool:
    return isinstance(value, Mapping) or (isinstance(value, Sequence) and not isinstance(value, str))


def listed(data: Data, prefix: str = "") -> tuple[tuple[str, str], ...]:
    """Nested settings as names and values, in their order; what says nothing is left out."""
    found: list[tuple[str, str]] = []
    for key, value in data.items():
        word = f"{prefix}{key}".replace("_", " ")
        if isinstance(value, Mapping):
            found += listed(value, f"{prefix}{key} ")
        elif _nested(value):
            found += [(word, _run(value))] if value else []
        elif value not in (None, ""):
            found.append((word, figure(value)))
    return tuple(found)


def _run(values: Iterable[object]) -> str:
    """A list of numbers as ranges: 1..16."""
    items = list(values)
    if len(items) > 2 and all(isinstance(item, int) for item in items):
        numbers = [int(str(item)) for item in items]
        if numbers == list(range(numbers[0], numbers[-1] + 1)):
            return f"{numbers[0]}..{numbers[-1]}"
    return ", ".join(map(figure, items))


def sentence_case(text: str) -> str:
    """With a capital first; the rest stays, S is not s."""
    return text[:1].upper() + text[1:]


AB = {"ok": "done", "refused": "refused", "interrupted": "interrupted, this is what there was until then"}


def bed(held: Data) -> str:
    """One workload of an A/B record and what made its rows valid."""
    said = f"{held['name']}: a prompt of {held['prompt_tokens']} tokens, budget {held['budget']}"
    if held["baseline_tok_s"] is not None:
        said += f"; without drafts {held['baseline_tok_s']:.1f} tokens/s"
    band = held["band"]
    if band["reason"]:
        return f"{said}; {band['reason']}."
    how = "given" if band["given"] else "from anchors"
    return f"{said}; a baseline is valid from {number(band['low'], 1)} to {number(band['high'], 1)} ({how})."


def shipped(held: Data) -> tuple[str, ...]:
    """How a workload's runs without drafts stand to the runner that ships."""
    return tuple(shipped_lines(held.get("shipped")))


def effect(word: str) -> str:
    """What the interval of a speed-up says."""
    return EFFECTS.get(word, word)


def percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


def lossless(value: bool | None, alone: bool | None) -> str:
    """Whether the text stayed the same; one that did not is run again alone before it is believed."""
    if value is None:
        return "not stated"
    return "yes" if value else "yes, when run again alone" if alone else "NO"


def slugs(identifiers: Iterable[str]) -> dict[str, str]:
    """An anchor for each identifier: letters, digits and hyphens, the same for the same report."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for identifier in identifiers:
        stem = re.sub(r"[^a-z0-9]+", "-", identifier.lower()).strip("-")[:80] or "model"
        slug, count = stem, 1
        while slug in taken:
            count += 1
            slug = f"{stem}-{count}"
        taken.add(slug)
        found[identifier] = f"m-{slug}"
    return found
