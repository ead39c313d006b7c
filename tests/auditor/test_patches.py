"""The diff parser and applier: what it refuses first, then what it applies."""

from __future__ import annotations

import difflib
import random
import time

import pytest

from auditor.patches import FilePatch, PatchError, apply, parse

SIX = b"one\ntwo\nthree\nfour\nfive\nsix\n"
CHANGE = b"""--- a/pkg/m.py
+++ b/pkg/m.py
@@ -2,3 +2,3 @@
 two
-three
+THREE
 four
"""


def _only(diff: bytes) -> FilePatch:
    (patch,) = parse(diff)
    return patch


@pytest.mark.parametrize(
    ("name", "before"),
    [
        ("context differs", SIX.replace(b"two", b"2")),
        ("removed line differs", SIX.replace(b"three", b"3")),
        ("trailing space", SIX.replace(b"four\n", b"four \n")),
        ("carriage returns", SIX.replace(b"\n", b"\r\n")),
        ("empty file", b""),
        ("cut off before the hunk ends", b"one\ntwo\nthree\n"),
    ],
)
def test_hunk_that_does_not_match_is_refused_by_name(name: str, before: bytes) -> None:
    with pytest.raises(PatchError, match=r"hunk 1 \(line 3 of the diff, old line 2\) does not apply"):
        apply(_only(CHANGE).hunks, before)


def test_second_hunk_is_named() -> None:
    diff = CHANGE + b"@@ -5,2 +5,2 @@\n five\n-SIX\n+seven\n"
    with pytest.raises(PatchError, match=r"hunk 2 \(line 8"):
        apply(_only(diff).hunks, SIX)


def test_applied_already_is_said() -> None:
    with pytest.raises(PatchError, match="its new lines are there already"):
        apply(_only(CHANGE).hunks, SIX.replace(b"three", b"THREE"))


def test_hunks_do_not_overlap_or_go_back() -> None:
    """The second hunk's lines stand only before the first one's."""
    diff = b"--- a/m\n+++ b/m\n@@ -5,1 +5,1 @@\n-five\n+FIVE\n@@ -6,1 +6,1 @@\n-one\n+ONE\n"
    with pytest.raises(PatchError, match="hunk 2"):
        apply(_only(diff).hunks, SIX)
    ends = b"--- a/m\n+++ b/m\n@@ -1,3 +1,3 @@\n-a\n-b\n-c\n+x\n+y\n+z\n@@ -9,2 +9,1 @@\n b\n-c\n"
    with pytest.raises(PatchError, match="hunk 2"):
        apply(_only(ends).hunks, b"a\nb\nc\n")


@pytest.mark.parametrize(
    ("name", "diff"),
    [
        ("ends in a hunk", b"--- a/m\n+++ b/m\n@@ -1,3 +1,3 @@\n one\n-two\n"),
        ("another file in a hunk", b"--- a/m\n+++ b/m\n@@ -1,3 +1,3 @@\n one\ndiff --git a/n b/n\n"),
        ("more lines than it says", b"--- a/m\n+++ b/m\n@@ -1,2 +1,1 @@\n one\n two\n"),
    ],
)
def test_malformed_hunk_is_an_error_of_its_file_and_the_rest_goes_on(name: str, diff: bytes) -> None:
    broken, good = parse(diff + CHANGE) if name != "ends in a hunk" else (*parse(diff), _only(CHANGE))
    assert broken.error.startswith("hunk 1 (line 3 of the diff)")
    assert not broken.hunks
    assert (good.name, good.error) == ("b/pkg/m.py", "")
    assert apply(good.hunks, SIX) == SIX.replace(b"three", b"THREE")


@pytest.mark.parametrize("text", [b"", b"hello\n", b"--- a/m\n", b"@@ -1 +1 @@\n-a\n+b\n", b"\0\1\2\n" * 9])
def test_no_diff_gives_no_files(text: bytes) -> None:
    assert parse(text) == ()


def test_insertion_without_context_stays_where_it_says() -> None:
    diff = b"--- a/m\n+++ b/m\n@@ -2,0 +3,1 @@\n+new\n"
    assert apply(_only(diff).hunks, SIX) == b"one\ntwo\nnew\n" + SIX[8:]
    with pytest.raises(PatchError):
        apply(_only(diff.replace(b"-2,0", b"-9,0")).hunks, SIX)


@pytest.mark.parametrize("moved", [1, 7, 400])
def test_hunk_is_found_where_its_lines_moved(moved: int) -> None:
    added = b"# x\n" * moved
    assert apply(_only(CHANGE).hunks, added + SIX) == added + SIX.replace(b"three", b"THREE")


def test_nearest_match_wins() -> None:
    text = SIX * 9
    diff = CHANGE.replace(b"-2,3 +2,3", b"-21,3 +21,3")
    changed = apply(_only(diff).hunks, text)
    assert changed == SIX * 3 + SIX.replace(b"three", b"THREE") + SIX * 5


def test_offset_carries_to_the_next_hunk() -> None:
    """Both moved down by eight lines; from where it says, the second would find the copy that is nearer."""
    old = b"start\n0\npass\n" + b"0\n" * 6 + b"pass\n"
    diff = b"--- a/m\n+++ b/m\n@@ -1,1 +1,1 @@\n-start\n+START\n@@ -10,1 +10,1 @@\n-pass\n+PASS\n"
    moved = b"1\n" * 8 + old
    assert apply(_only(diff).hunks, moved) == b"1\n" * 8 + b"START\n0\npass\n" + b"0\n" * 6 + b"PASS\n"


def test_hunk_at_the_end_of_the_file_is_not_matched_in_the_middle() -> None:
    diff = b"--- a/m\n+++ b/m\n@@ -2,3 +2,2 @@\n two\n three\n-four\n"
    assert apply(_only(diff).hunks, b"one\ntwo\nthree\nfour\n") == b"one\ntwo\nthree\n"
    with pytest.raises(PatchError):
        apply(_only(diff).hunks, b"0\n0\n0\ntwo\nthree\nfour\nfive\n")


def test_hunk_at_the_start_of_the_file_is_not_matched_in_the_middle() -> None:
    diff = b"--- a/m\n+++ b/m\n@@ -1,2 +1,3 @@\n+zero\n one\n two\n"
    assert apply(_only(diff).hunks, SIX) == b"zero\n" + SIX
    with pytest.raises(PatchError):
        apply(_only(diff).hunks, b"0\n" + SIX)


@pytest.mark.parametrize(
    ("diff", "old", "new"),
    [
        (b"--- /dev/null\n+++ b/m.py\n@@ -0,0 +1 @@\n+x\n", None, "b/m.py"),
        (b"--- a/m.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n", "a/m.py", None),
        (b"--- old/m.py\t2026-01-01 00:00:00\n+++ new/m.py\t2026-01-02\n@@ -1 +1 @@\n-x\n+y\n", "old/m.py", "new/m.py"),
        (b"--- old/m.py\t1970-01-01\n+++ new/m.py\t2026-01-02\n@@ -0,0 +1 @@\n+y\n", None, "new/m.py"),
        (b'--- "a/\\303\\251 \\"x\\".py"\n+++ "b/\\303\\251.py"\n@@ -1 +1 @@\n-x\n+y\n', 'a/é "x".py', "b/é.py"),
        (b"--- a/m.py\r\n+++ b/m.py\r\n@@ -1 +1 @@\r\n-x\r\n+y\r\n", "a/m.py", "b/m.py"),
        (b"diff --git a/m.py b/n.py\nsimilarity index 100%\nrename from m.py\nrename to n.py\n", "a/m.py", "b/n.py"),
        (b"diff --git a/m.py b/m.py\ndeleted file mode 100644\nindex 1..0\n", "a/m.py", None),
        (b"diff --git a/m.py b/m.py\nnew file mode 100644\nindex 0..1\n", None, "b/m.py"),
    ],
)
def test_names(diff: bytes, old: str | None, new: str | None) -> None:
    patch = _only(diff)
    assert (patch.old, patch.new) == (old, new)


def test_mode_change_alone_is_no_file() -> None:
    assert parse(b"diff --git a/m.py b/m.py\nold mode 100644\nnew mode 100755\n") == ()


def test_lines_that_look_like_headers_are_content() -> None:
    diff = b"--- a/m\n+++ b/m\n@@ -1,2 +1,2 @@\n--- a/x\n+++ b/x\n same\n"
    assert apply(_only(diff).hunks, b"-- a/x\nsame\n") == b"++ b/x\nsame\n"


def test_blank_context_may_have_lost_its_space() -> None:
    diff = b"--- a/m\n+++ b/m\n@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n"
    assert apply(_only(diff).hunks, b"a\n\nb\n") == b"a\n\nc\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a\nb", b"a\nc"),
        (b"a\nb", b"a\nb\n"),
        (b"a\nb\n", b"a\nb"),
        (b"a", b""),
        (b"", b"a"),
        (b"a\r\nb\n", b"a\r\nc\n"),
    ],
)
def test_last_line_without_newline(before: bytes, after: bytes) -> None:
    assert apply(_only(_diff(before, after)).hunks, before) == after


def _diff(before: bytes, after: bytes, context: int = 3) -> bytes:
    """A unified diff as the usual tools write it, final lines without newline included."""
    out = []
    split = [text.decode("latin-1").split("\n") for text in (before, after)]
    old, new = ([f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else []) for lines in split)
    for line in difflib.unified_diff(old, new, "a/m.py", "b/m.py", n=context):
        out.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    return "".join(out).encode("latin-1")


def test_applying_a_diff_gives_its_new_side() -> None:
    """The law of a diff, over random edits of files with many equal lines, every amount of context."""
    chance = random.Random(2)
    for _ in range(400):
        before = [chance.choice(["a\n", "b\n", "\n", "    return x\n", "-- x\n"]) for _ in range(chance.randrange(30))]
        after = list(before)
        for _ in range(chance.randrange(1, 6)):
            at = chance.randrange(len(after) + 1)
            after[at : at + chance.randrange(3)] = [chance.choice(["a\n", "new\n", "\n"])] * chance.randrange(3)
        old, new = "".join(before).encode(), "".join(after).encode()
        old = old.removesuffix(b"\n") if chance.random() < 0.2 else old
        if old == new:
            continue
        (patch,) = parse(_diff(old, new, chance.randrange(4)))
        assert apply(patch.hunks, old) == new


def test_large_diff_is_parsed_quickly() -> None:
    files = (
        b"diff --git a/p/m%d.py b/p/m%d.py\nnew file mode 100644\n--- /dev/null\n+++ b/p/m%d.py\n@@ -0,0 +1,300 @@\n"
        % (n, n, n)
        + b"+    value = [1, 2, 3]\n" * 300
        for n in range(100)
    )
    start = time.process_time()
    assert len(parse(b"".join(files))) == 100
    assert time.process_time() - start < 0.3
