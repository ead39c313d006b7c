"""Reading and decoding: what is refused, with the reason, then what is not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from auditor import trees
from auditor.trees import FolderTree, Listing, Unreadable, decode, is_file, is_folder, listings, merge


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"x = '\xff'\n", r"not UTF-8 \(line 1\)"),
        (b"x = 1\ny = '\xe9'\n", r"not UTF-8 \(line 2\)"),
        (b"# coding: utf-8\nx = '\xff'\n", r"not UTF-8 \(line 2\)"),
        (b"# coding: klingon\nx = 1\n", "unknown encoding klingon"),
        (b"# coding: rot13\nx = 1\n", "unknown encoding rot13"),
        (b"# coding: zlib\nx = 1\n", "unknown encoding zlib"),
        (b"# coding: undefined\nx = 1\n", "not UNDEFINED"),
        (b"\xef\xbb\xbf# coding: latin-1\nx = 1\n", "a UTF-8 byte-order mark and a coding comment that says latin-1"),
        (b"x = 1\0\n", "null bytes"),
        ("x = 1\n".encode("utf-16"), "null bytes"),
    ],
)
def test_what_is_no_text_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(Unreadable, match=f"^m.py: {reason}"):
        decode(data, "m.py")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        (b"x = '\xc3\xa9'\r\n", "x = 'é'\r\n"),
        (b"\xef\xbb\xbfx = 1\n", "x = 1\n"),
        (b"\xef\xbb\xbf# coding: utf8\nx = 1\n", "# coding: utf8\nx = 1\n"),
        (b"# -*- coding: latin-1 -*-\nx = '\xe9'\n", "# -*- coding: latin-1 -*-\nx = 'é'\n"),
        (b"#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\n'\x80'\n", None),
        (b"x = 1\n# coding: klingon\n", "x = 1\n# coding: klingon\n"),
        (b"\n\n# coding: klingon\n", "\n\n# coding: klingon\n"),
    ],
)
def test_text_is_decoded_as_it_declares(data: bytes, text: str | None) -> None:
    decoded = decode(data, "m.py")
    assert decoded == text if text is not None else "€" in decoded


def test_larger_than_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fits.py").write_bytes(b"#" * trees.LIMIT)
    (tmp_path / "huge.py").write_bytes(b"#" * (trees.LIMIT + 1))
    tree = FolderTree(tmp_path)
    assert len(tree.read("fits.py")) == trees.LIMIT
    with pytest.raises(Unreadable, match=r"huge\.py: larger than 4 MiB"):
        tree.read("huge.py")


@pytest.mark.parametrize(
    "path", ["../secret.py", "a/../../secret.py", "..", "a/./m.py", "a//m.py", "/etc/passwd", "a/" * 5000]
)
def test_paths_that_are_not_below_are_not_there(tmp_path: Path, path: str) -> None:
    (tmp_path / "secret.py").write_text("")
    (tmp_path / "root/a").mkdir(parents=True)
    (tmp_path / "root/a/m.py").write_text("")
    tree = FolderTree(tmp_path / "root")
    assert not is_file(tree, path)
    assert not is_folder(tree, path)
    assert tree.listing(path) == Listing()
    with pytest.raises(Unreadable, match="no such file"):
        tree.read(path)


def test_a_link_out_of_the_tree_is_not_followed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "pkg").mkdir(parents=True)
    (root / "pkg/m.py").write_text("inside")
    (tmp_path / "secret.py").write_text("outside")
    (root / "out.py").symlink_to(tmp_path / "secret.py")
    (root / "outer").symlink_to(tmp_path)
    (root / "loop.py").symlink_to("loop.py")
    (root / "nothing.py").symlink_to("gone.py")
    (root / "same.py").symlink_to("pkg/m.py")
    (root / "pkg/self").symlink_to(".")
    os.mkfifo(root / "pipe.py")
    tree = FolderTree(root)
    assert tree.read("same.py") == b"inside"
    assert tree.read("pkg/self/self/m.py") == b"inside"
    assert tree.listing("pkg").links == {"self"}
    for path, reason in [
        ("out.py", "a link that leaves the tree"),
        ("loop.py", "a link loop"),
        ("nothing.py", "a link to nothing"),
        ("pipe.py", "not a regular file"),
    ]:
        assert is_file(tree, path)
        with pytest.raises(Unreadable, match=f"^{path}: {reason}$"):
            tree.read(path)
    assert not is_file(tree, "outer/secret.py")
    assert tree.listing("outer") == Listing()


def test_root_may_be_reached_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/m.py").write_text("x")
    (tmp_path / "real/n.py").symlink_to(tmp_path / "real/m.py")
    (tmp_path / "link").symlink_to("real")
    assert FolderTree(tmp_path / "link").read("n.py") == b"x"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_no_permission(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("x")
    (tmp_path / "m.py").chmod(0)
    with pytest.raises(Unreadable, match="permission denied"):
        FolderTree(tmp_path).read("m.py")


def test_listings_and_merge() -> None:
    made = listings(["a/b/c.py", "a/d.py"])
    assert made[""] == Listing(folders=frozenset({"a"}))
    assert made["a"] == Listing(frozenset({"d.py"}), frozenset({"b"}))
    both = merge([made["a"], Listing(frozenset({"e.py"}), refused={"f.py": "why"})])
    assert both == Listing(frozenset({"d.py", "e.py"}), frozenset({"b"}), refused={"f.py": "why"})
    assert merge([]) == Listing()
