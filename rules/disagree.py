"""Where the source and the bundle disagree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rules.join import FACTS, roles


def disagreements(script: Mapping[str, Any], bundle: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Facts that both sides know and that differ. What one side does not know is no disagreement."""
    found = []
    for key in FACTS:
        said, is_ = script[key]["value"], bundle[key]["value"]
        if said is None or is_ is None or said == is_:
            continue
        found.append(
            {
                "fact": key,
                "script": said,
                "bundle": is_,
                "message": f"the script says {key} {said}, the bundle has {is_}",
                "evidence": script[key]["evidence"],
            }
        )
    if script["states"] is not None and bundle["states"] is not None:
        found.extend(_state_disagreements(script, bundle))
    return found


def _state_disagreements(script: Mapping[str, Any], bundle: Mapping[str, Any]) -> list[dict[str, Any]]:
    said, has = roles(script["states"]), roles(bundle["states"])
    messages = [
        f"the script declares state {name} ({said[name]}), the bundle has none" for name in sorted(said.keys() - has)
    ]
    messages += [
        f"the bundle has state {name} ({has[name]}), the script declares none" for name in sorted(has.keys() - said)
    ]
    messages += [
        f"state {name}: the script says {said[name]}, the bundle looks like {has[name]}"
        for name in sorted(said.keys() & has)
        if said[name] != has[name]
        and "unknown" not in (said[name], has[name])
        and not _both_cache(said[name], has[name])
    ]
    evidence = script.get("states_evidence", [])
    return [
        {"fact": "states", "script": said, "bundle": has, "message": message, "evidence": evidence}
        for message in messages
    ]


def _both_cache(left: str, right: str) -> bool:
    """Whether both roles are of a position-indexed cache: a name tells keys from latents no better than that."""
    return all(role.startswith("kv-") or role == "mla-latent" for role in (left, right))
