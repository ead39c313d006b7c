"""Scans of other public repositories, each by itself and without a library: how often they are right.

    python benchmarks/scan_other.py <folder with a checkout owner+name of each>

Repositories and commits are named in the labels (`labels/other_repos.json`); one without a checkout is *not seen*, and
so are scripts of another commit. How a report is compared with the labels is said in `scoring.py`. Exit status: 0 when
no eligible is false and `--min-right` of the verdicts seen are right, else 1; 2 when there is no checkout at all.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from scan_zoo import scan
from scoring import Score, load, score

HERE = Path(__file__).resolve().parent


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Scan other repositories: how often the verdicts are right.")
    parser.add_argument("folder", type=Path, help="a folder with checkouts, each named owner+name")
    parser.add_argument("--labels", type=Path, default=HERE / "labels/other_repos.json")
    parser.add_argument("--only", default="", help="the repository to scan (owner/name)")
    parser.add_argument("--min-right", type=float, default=0.0, help="share of right verdicts for exit status 0")
    parser.add_argument("--verbose", action="store_true", help="every difference")
    args = parser.parse_args(arguments)
    labels = load(args.labels)
    total = Score()
    not_seen = 0
    for repository in sorted({label.repository for label in labels if args.only in ("", label.repository)}):
        root = args.folder.resolve() / repository.replace("/", "+")
        mine = [label for label in labels if label.repository == repository]
        seen = [label for label in mine if (root / label.path).is_file()]
        not_seen += len({label.run for label in mine} - {label.run for label in seen})
        if not seen:
            print(f"{repository}: not seen")
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "report.json")
            try:
                cost = scan(root, (), path, 0)
            except subprocess.CalledProcessError as error:
                print(f"{repository}: the scan failed with status {error.returncode}:\n{error.stderr}", file=sys.stderr)
                continue
            found = score(seen, json.loads(path.read_bytes()))
        print(f"{repository}: {found.right} of {found.total} right; {cost}")
        for line in found.remarks if args.verbose else ():
            print(f"  {line}")
        for line in found.false_eligible:
            print(f"  FALSE ELIGIBLE {line}")
        total.add(found)
    if not total.total:
        print("no checkout of a labelled repository", file=sys.stderr)
        return 2
    print("\n".join(total.lines()))
    print(f"runs not seen: {not_seen}")
    return 0 if not total.false_eligible and total.right >= args.min_right * total.total else 1


if __name__ == "__main__":
    sys.exit(main())
