"""Where a scan of the export script and the shipped bundle disagree.

The graph of the scan is found by the bundle's base name (an unknown part of it is `*`) and the entry point; the
identifier of a graph or a model after `#` chooses one. Where several graphs fit and their facts differ, none is chosen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rules.disagree import disagreements
from rules.document_shapes import SCAN, DocumentError
from rules.documents import read
from rules.join import JoinError, bundle_names, candidates, same_facts

__all__ = ["JoinError", "compare", "disagreements", "load"]


def load(text: str) -> tuple[dict[str, Any], str]:
    """A scan report and the identifier after `#` (empty without); `JoinError` before anything is run."""
    name, _, identifier = text.partition("#") if not Path(text).is_file() else (text, "", "")
    path = Path(name)
    try:
        data = read(path, SCAN)
    except OSError as error:
        raise JoinError(f"{path}: {error.strerror}") from None
    except DocumentError as error:
        raise JoinError(f"{path}: {error}") from None
    if identifier and identifier not in {item["id"] for item in (*data["graphs"], *data["models"])}:
        raise JoinError(f"{path}: the scan has no graph or model {identifier!r}")
    return data, identifier


def compare(report: Mapping[str, Any], scan: Mapping[str, Any], identifier: str = "") -> dict[str, Any]:
    """The disagreements of every entry point that the scan knows; JoinError when nothing or too much fits."""
    names = bundle_names(report)
    pairs = []
    unmatched = []
    for graph in report["graphs"]:
        found = candidates(scan, names, str(graph["name"]), identifier)
        if not found:
            unmatched.append(graph["name"])
            continue
        pairs.append((graph, _one(found, str(graph["name"]))))
    if not pairs:
        what = f"identifier {identifier!r}" if identifier else f"bundle {' or '.join(sorted(names))}"
        raise JoinError(f"the scan has no graph for {what}; name one with --against FILE#GRAPH-ID")
    return {
        "root": scan.get("root"),
        "graphs": [
            {
                "graph": graph["name"],
                "scan_graph": found["id"],
                "script": found.get("script"),
                "scan_verdict": found.get("verdict"),
                "disagreements": disagreements(found["facts"], graph["facts"]),
            }
            for graph, found in pairs
        ],
        "unmatched": unmatched,
    }


def _one(fitting: Sequence[Mapping[str, Any]], entry_point: str) -> Mapping[str, Any]:
    """The only candidate, or the first of several whose facts are the same."""
    if not same_facts(fitting):
        listed = ", ".join(str(graph["id"]) for graph in fitting[:6])
        raise JoinError(
            f"{entry_point}: several graphs of the scan fit ({listed}); choose one with --against FILE#GRAPH-ID"
        )
    return fitting[0]
