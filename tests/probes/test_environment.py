"""What is said of the machine, and what is not."""

from __future__ import annotations

import getpass
import socket

import pytest

from probes.environment import bandwidth, environment
from probes.options import ProbeOptions, parse_widths


def test_neither_host_nor_user_is_named() -> None:
    text = repr(environment())
    assert socket.gethostname() not in text
    assert "'" + getpass.getuser() + "'" not in text


@pytest.mark.parametrize(
    ("name", "gb"), [("Apple M4 Max", 546), ("Apple M1", 68), ("Apple M4 Pro (virtual)", 273), ("AMD EPYC", None)]
)
def test_bandwidth_by_chip(name: str, gb: int | None) -> None:
    assert bandwidth(name) == (gb * 1e9 if gb else None)


@pytest.mark.parametrize(("text", "widths"), [("1..4", (1, 2, 3, 4)), ("4,1,2", (1, 2, 4)), ("1..3,8", (1, 2, 3, 8))])
def test_widths(text: str, widths: tuple[int, ...]) -> None:
    assert parse_widths(text) == widths


def test_caches_are_whole_blocks_and_one_length_for_all_contexts() -> None:
    options = ProbeOptions(contexts=(128, 848))
    assert options.sweep_capacity() == 864
    assert options.gate_capacity() % 32 == 0
    assert options.gate_capacity(window=512) > 512 + 2 * 16
    assert ProbeOptions(capacity=512).sweep_capacity() == 512
