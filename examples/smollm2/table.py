"""The tables of an A/B report as Markdown, and what they show: `python examples/smollm2/table.py smollm2.json`."""

from __future__ import annotations

import json
import sys
from typing import Any

WORDS = {"gains": "gains", "loses": "loses", "even": "not told apart from 1"}


def tables(report: dict[str, Any]) -> list[str]:
    """One table by workload and budget; spoiled rows are named below it."""
    (ab,) = (graph["ab"] for graph in report["graphs"] if graph["ab"])
    lines = [f"Scope: {report['scope']}; {report['environment']['machine']}; allocator pinned: {ab['allocator']['pinned']}."]
    for bed in ab["workloads"]:
        band = bed["band"]
        lines += ["", f"### {bed['name']}", ""]
        lines += [f"Prompt {bed['prompt_tokens']} tokens, budget {bed['budget']}, baselines {band['low']:.2f}-{band['high']:.2f} tok/s.", ""]
        lines += ["| drafter | policy | tokens per forward | accepted per round | tok/s | speed-up (95%) | predicted | host | |"]
        lines += ["| --- | --- | ---: | ---: | ---: | --- | ---: | ---: | --- |"]
        for row in bed["rows"]:
            if row["status"] == "valid":
                low, high = row["interval"]
                predicted = f"{row['predicted']:.2f}" if row["predicted"] else "-"
                lossless = "" if row["lossless"] else ", NOT lossless"
                lines.append(
                    f"| {row['drafter']} | {row['policy']} | {row['tokens_per_forward']:.2f} | {row['accepted_per_round']:.2f} "
                    f"| {row['tokens_per_second']:.2f} | {row['speedup']:.2f} ({low:.2f}-{high:.2f}) | {predicted} "
                    f"| {row['host']['share']:.2%} | {WORDS[row['effect']]}{lossless} |"
                )
        for row in bed["rows"]:
            if row["status"] == "spoiled":
                lines.append(f"\nLeft out: {row['drafter']} {row['policy']}: {'; '.join(row['spoiled'])}.")
    return [*lines, "", *summary(ab)]


def summary(ab: dict[str, Any]) -> list[str]:
    rows = [row for bed in ab["workloads"] for row in bed["rows"]]
    valid = [row for row in rows if row["status"] == "valid"]
    errors = [abs(row["predicted_error"]) for row in valid if row["predicted_error"] is not None]
    close = sum(error <= 0.10 for error in errors)
    return [
        f"Rows: {len(rows)}, valid {len(valid)}; lossless {sum(row['lossless'] for row in rows)} of {len(rows)}.",
        f"Predicted within 10% of measured: {close} of {len(errors)} valid rows, the largest error {max(errors, default=0):.1%}.",
        f"Largest host share: {max((row['host']['share'] for row in rows), default=0):.2%}.",
    ]


if __name__ == "__main__":
    print("\n".join(tables(json.load(open(sys.argv[1], encoding="utf-8")))))
