"""Where CI shows a finding: a file of the repository and a line in it."""

from __future__ import annotations

from collections.abc import Sequence

from rules.audit import Audit
from rules.facts import Graph, Place


def shown_at(audit: Audit, evidence: Sequence[Place], graph: Graph) -> Place:
    """The place nearest to the decision that lies in the audited tree; the export call where none does.

    Evidence in a library is cited under the library's name, which is no path of the repository.
    """
    own = {file.path for file in audit.scan.files}
    inside = [place for place in evidence if place.path in own and place.line]
    return inside[-1] if inside else Place(graph.script, max(graph.line, 1), "export call")


def in_repository(audit: Audit, path: str) -> str:
    """A path of the audited tree as the repository knows it."""
    return f"{audit.policy.prefix}/{path}" if audit.policy.prefix else path
