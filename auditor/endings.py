"""Why a run exported nothing, and whether that is so because the script does not or because knowledge ended."""

from __future__ import annotations

from auditor.frameworks.tables import tables
from auditor.launches import launches
from auditor.run import Result
from auditor.values import Unknown
from rules.facts import Place


def exporter(result: Result, chosen: bool) -> tuple[str, Place] | None:
    """Why a run that starts an exporting console script is unresolved; with `chosen` also one that may be any."""
    for started in result.started:
        names = [what.name for what in launches(started.words)]
        if started.site is None:
            continue
        place = started.site.place("the program is started here")
        for name in names:
            if name in tables().exporters:
                return f"`{name}` exports, and its source is not among those read: give it with --library", place
        if chosen and (not started.words or any("*" in name for name in names)):
            return "which program is started (an exporter, by the names in the file) is known at run time only", place
    return None


def cut_short(result: Result) -> bool:
    """Whether a run without exports ended because knowledge did, and not because the script exports nothing."""
    return bool(result.exhausted or result.unread or result.failed)


def where_cut(result: Result) -> Place | None:
    """Where an error ended the run; else the first import that was not read, or where the script leaves."""
    failed = result.ended_at if result.failed else None
    return failed or (result.unread[0][1] if result.unread else result.ended_at)


def cut_after(exhausted: Unknown) -> tuple[str, Place | None]:
    """What became of a run that ended early, and exported before that: further export calls may stand behind."""
    place = exhausted.places[0].place() if exhausted.places else None
    return f"the evaluation ended early, and what stands behind is not seen: {exhausted.reason}", place


def why_nothing(result: Result) -> str:
    if result.problems:
        return result.problems[0]
    if result.unread:
        names = ", ".join(f"{name} ({place})" for name, place in result.unread[:3])
        end = f"the run ends before any export call ({result.ended})" if result.ended else "no export call is reached"
        return f"{end}; imports without a source: {names}: give it with --library"
    if result.exhausted is not None:
        return f"the evaluation ended early: {result.exhausted.reason}"
    if result.ended:
        return f"the run ends before any export call ({result.ended})"
    return "no export call is reached in this run"
