"""Zip archives as trees: names that leave the archive first."""

from __future__ import annotations

import stat
import zipfile
from pathlib import Path

import pytest

from auditor import trees
from auditor.archives import ZipTree, member_path
from auditor.trees import Listing, Unreadable, is_file


@pytest.mark.parametrize(
    "name", ["../m.py", "a/../../m.py", "/etc/m.py", "C:/m.py", "a\\..\\m.py", "a//m.py", "./m.py", "", "/"]
)
def test_names_that_leave(tmp_path: Path, name: str) -> None:
    assert member_path(name) is None
    with zipfile.ZipFile(tmp_path / "lib.zip", "w") as archive:
        archive.writestr(name or "/", "outside")
        archive.writestr("kit/m.py", "inside")
    tree = ZipTree(tmp_path / "lib.zip", "lib.zip")
    assert tree.listing("") == Listing(folders=frozenset({"kit"}))
    assert tree.read("kit/m.py") == b"inside"


def test_links_are_not_members(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("kit/passwd.py")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "lib.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    assert not is_file(ZipTree(tmp_path / "lib.zip", "lib.zip"), "kit/passwd.py")


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"not a zip" * 100])
def test_not_an_archive(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "lib.whl").write_bytes(data)
    with pytest.raises(Unreadable, match=r"^lib\.whl: not a readable zip archive"):
        ZipTree(tmp_path / "lib.whl", "lib.whl")


def test_member_larger_than_the_limit(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "lib.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.py", b"\n" * (trees.LIMIT + 1))
    with pytest.raises(Unreadable, match="larger than 4 MiB"):
        ZipTree(tmp_path / "lib.zip", "lib.zip").read("bomb.py")


def test_member_whose_bytes_are_damaged(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "lib.zip", "w") as archive:
        archive.writestr("m.py", "original")
    data = (tmp_path / "lib.zip").read_bytes()
    (tmp_path / "lib.zip").write_bytes(data.replace(b"original", b"changed!"))
    with pytest.raises(Unreadable, match=r"m\.py: cannot be read from the archive"):
        ZipTree(tmp_path / "lib.zip", "lib.zip").read("m.py")


def test_listing_with_and_without_folder_entries(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "lib.zip", "w") as archive:
        archive.writestr("kit/deep/m.py", "")
        archive.writestr("empty/", "")
        archive.writestr("kit/", "")
        archive.writestr("top.py", "")
    tree = ZipTree(tmp_path / "lib.zip", "lib.zip")
    assert tree.listing("") == Listing(frozenset({"top.py"}), frozenset({"kit", "empty"}))
    assert tree.listing("kit").folders == {"deep"}
    assert tree.listing("kit/deep").files == {"m.py"}
    with pytest.raises(Unreadable, match="no such file"):
        tree.read("kit")
