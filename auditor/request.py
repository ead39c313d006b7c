"""What a scan is asked to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from auditor.recipes import RecipeSettings
from auditor.seen import Seen

Progress = Callable[[int, int, str], None]
"""Called with (done, total, path); both numbers count the files or runs of one stage."""


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """One scan.

    `root` is the audited folder: paths in the report are relative to it. `paths` are the files and folders below it to
    audit, `(root,)` for all of it. `libraries` are laid over each other in this order. `checkpoints` is a folder of
    `config.json` files. `jobs` counts processes; `cache` allows facts to be kept between scans, outside the tree.
    `seen` is told what the scan depends on.
    """

    root: Path
    paths: tuple[Path, ...]
    libraries: tuple[Path, ...] = ()
    recipes: RecipeSettings = field(default_factory=RecipeSettings)
    checkpoints: Path | None = None
    jobs: int = 1
    cache: bool = True
    progress: Progress | None = None
    seen: Seen = field(default_factory=Seen, compare=False)
