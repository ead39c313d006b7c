from __future__ import annotations

from pathlib import Path

import pytest

from auditor.origin import commit

A, B = "a" * 40, "b" * 40
PACKED = f"# pack-refs\n{B} refs/heads/other\n{A} refs/heads/main\n"


def repository(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / ".git" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (root / "below").mkdir()
    return root / "below"


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"HEAD": "ref: refs/heads/main\n", "refs/heads/main": f"{A}\n"}, A),
        (
            {
                "HEAD": "ref: refs/heads/main\n",
                "packed-refs": f"# pack-refs\n{B} refs/heads/other\n{A} refs/heads/main\n",
            },
            A,
        ),
        ({"HEAD": f"{A}\n"}, A),
        ({"HEAD": "ref: refs/heads/feature/x-1\n", "refs/heads/feature/x-1": A}, A),
        ({"HEAD": "ref: refs/heads/main\n"}, ""),
        ({"HEAD": "ref: refs/../../secret\n", "secret": A}, ""),
        ({"HEAD": "ref: /etc/passwd\n"}, ""),
        ({"HEAD": "<script>\n"}, ""),
        ({"HEAD": "ref: refs/heads/main\n", "refs/heads/main": "<script>\n"}, ""),
        ({"description": "no head"}, ""),
    ],
)
def test_the_commit_of_a_work_tree(tmp_path: Path, files: dict[str, str], found: str) -> None:
    assert commit(repository(tmp_path, files)) == found


def test_a_work_tree_elsewhere_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: /somewhere/else\n")
    assert commit(tmp_path) == ""
