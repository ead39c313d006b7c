"""A whole scan of a public model zoo: its cost, whether it gives the same bytes again, and how often it is right.

    python benchmarks/scan_zoo.py <coreai-model-zoo checkout> <coreai-models checkout>

The zoo (MaTriXy/coreai-model-zoo) imports Apple's library (apple/coreai-models) with changes of its own; both commits
are named in the labels. Each scan is one cold process without a cache, with another seed of Python's hashes. The labels
(`labels/zoo.json`) were made by reading the scripts; each is about one run: a script without arguments, or a recipe.

How a report is compared with the labels is said in `scoring.py`. Exit status: 0 when the bytes agree, no eligible is
false and `--min-right` of the verdicts are right, else 1; 2 when a scan fails.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scoring import load, score

HERE = Path(__file__).resolve().parent
OVERLAY = "conversion/overlay"


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU and wall time in seconds, peak resident memory in MB."""

    user: float
    system: float
    wall: float
    memory: float

    def __str__(self) -> str:
        return f"{self.user:.1f} s user, {self.system:.1f} s system, {self.wall:.1f} s wall, {self.memory:.0f} MB peak"


def scan(root: Path, libraries: Sequence[Path], output: Path, seed: int) -> Cost:
    """One scan in a process of its own. Raises `CalledProcessError` when it fails."""
    command = [sys.executable, "-m", "auditor", "scan", str(root), "--no-cache", "--format", "json"]
    command += ["--output", str(output), *(word for path in libraries for word in ("--library", str(path)))]
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent), "PYTHONHASHSEED": str(seed)}
    begin = time.monotonic()
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    wall = time.monotonic() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1, 3):  # 3: nothing to audit, which is an answer
        raise subprocess.CalledProcessError(process.returncode, command, stderr=said)
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return Cost(used.ru_utime, used.ru_stime, wall, used.ru_maxrss / unit)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Scan a model zoo: cost, determinism, and how often it is right.")
    parser.add_argument("zoo", type=Path, help="a checkout of MaTriXy/coreai-model-zoo")
    parser.add_argument("base", type=Path, help="a checkout of apple/coreai-models")
    parser.add_argument("--labels", type=Path, default=HERE / "labels/zoo.json")
    parser.add_argument("--runs", type=int, default=2, help="scans, of which all must give the same bytes (default 2)")
    parser.add_argument("--min-right", type=float, default=0.0, help="share of right verdicts for exit status 0")
    parser.add_argument("--verbose", action="store_true", help="every difference")
    args = parser.parse_args(arguments)
    overlay = args.zoo.resolve() / OVERLAY
    libraries = [
        args.base.resolve() / "python/src",
        overlay / "patches/python-overlay.patch",
        overlay / "files/python/src",
    ]
    reports: list[bytes] = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(max(1, args.runs)):
            path = Path(folder, f"{number}.json")
            try:
                cost = scan(args.zoo.resolve(), libraries, path, number)
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
