"""States whose names say nothing: what `forward` does with them says what they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.facts import Role
from rules.verdict import judge
from tests.auditor import decoder_project as project
from tests.auditor.edits import HYBRID, NOT_A_DECODER, RING, UNKNOWN_ROLE
from tests.auditor.support import CORE_ML, EXPORTER, graph_of, indented, mutate, scan_text

KEYS = "        self.keyCache[:, :, start:end, :] = k\n"
SEEN = "            q, self.keyCache[:, :, :end], self.valueCache[:, :, :end], causal_mask\n"
ATTENDED = "        y = nn.functional.scaled_dot_product_attention(\n" + SEEN + "        )\n"
BY_PRODUCTS = """\
        w = self.keyCache[:, :, :end] @ q.transpose(2, 3) + causal_mask.transpose(2, 3)
        y = torch.softmax(w, 2).transpose(2, 3) @ self.valueCache[:, :, :end]
"""
BY_EINSUM = """\
        w = torch.einsum("bhqd,bhkd->bhqk", q, self.keyCache[:, :, :end]) + causal_mask
        y = torch.einsum("bhqk,bhkd->bhqd", torch.softmax(w, -1), self.valueCache[:, :, :end])
"""
NAMES = [("kc_0", "vc_0"), ("state_0_a", "state_0_b"), ("S0", "S1")]


def renamed(script: str, keys: str, values: str) -> str:
    for old, new in (("keyCache", keys), ("valueCache", values), ("k_cache", keys), ("v_cache", values)):
        script = script.replace(old, new)
    return script


def said(root: Path, script: str, **more: str) -> tuple[str, dict[str, Role]]:
    facts = graph_of(scan_text(root, {"export.py": script, **more})).facts
    return judge(facts).says(), {s.name: s.role for s in facts.states.value or ()}


@pytest.mark.parametrize("names", NAMES)
@pytest.mark.parametrize(
    "edits",
    [
        [],
        [(KEYS, "        self.keyCache.index_copy_(2, torch.arange(start, end), k)\n")],
        [(KEYS, KEYS + "        self.keyCache[:, :, end:] = 0\n")],
        [(ATTENDED, BY_PRODUCTS)],
        [(ATTENDED, BY_EINSUM)],
        [(SEEN, SEEN.replace("[:, :, :end], self", "[:, :, :end].float(), self"))],
    ],
)
def test_rows_that_attention_reads_are_a_cache(
    tmp_path: Path, edits: list[tuple[str, str]], names: tuple[str, str]
) -> None:
    verdict, roles = said(tmp_path, renamed(mutate(CORE_ML, *edits), *names))
    assert (verdict, roles) == ("eligible", dict.fromkeys(names, Role.KV_UNIFIED))


@pytest.mark.parametrize("names", NAMES)
@pytest.mark.parametrize("framework", [project.CORE_AI, project.CORE_ML, project.EXECUTORCH])
def test_so_they_are_for_each_framework(tmp_path: Path, framework: str, names: tuple[str, str]) -> None:
    model = renamed(project.MODEL, *names) if framework is project.CORE_AI else project.MODEL
    verdict, roles = said(tmp_path, renamed(framework, *names), **{"config.py": project.CONFIG, "model.py": model})
    assert (verdict, set(roles.values())) == ("eligible", {Role.KV_UNIFIED})


def test_so_are_inputs_that_are_written_and_declared_as_nothing(tmp_path: Path) -> None:
    script = mutate(EXPORTER, (", state_names=STATES", ""))
    for old, new in (("key_cache", "mem_a"), ("value_cache", "mem_b")):
        script = script.replace(old, new)
    assert said(tmp_path, script)[0] == "eligible"


@pytest.mark.parametrize(
    ("edits", "says"),
    [
        # what is asked of a cache by its name is asked of these
        ([(KEYS, KEYS.replace("start:end", ":rows"))], UNKNOWN_ROLE),
        ([(KEYS, KEYS.replace("start:end", "start % 64 : start % 64 + rows"))], RING),
        ([(KEYS, KEYS.replace("= k\n", "= k.flip(2)\n"))], UNKNOWN_ROLE),
        ([(KEYS, KEYS.replace("= k\n", "= k.mean(2, keepdim=True).expand_as(k)\n"))], UNKNOWN_ROLE),
        ([(SEEN, SEEN.replace("[:, :, :end], self", "[:, :, : end - rows], self"))], "unresolved by unknown-logits"),
        # and these are no caches
        ([(KEYS, "        self.keyCache.mul_(0.5).add_(k.mean(2, keepdim=True))\n")], HYBRID),
        ([(SEEN, SEEN.replace("self.keyCache[:, :, :end], ", "k, ")), (KEYS, KEYS)], UNKNOWN_ROLE),
    ],
)
def test_what_is_none_is_not_taken_for_one(tmp_path: Path, edits: list[tuple[str, str]], says: str) -> None:
    assert said(tmp_path, renamed(mutate(CORE_ML, *edits), "mem_0", "mem_1"))[0] == says


def test_a_buffer_that_is_read_alone_makes_no_decoder(tmp_path: Path) -> None:
    script = renamed(project.EXECUTORCH, "table", "other")
    model = project.MODEL
    for name in ("k", "v"):
        model = mutate(model, (f"        {name}_cache[self.idx, :, :, start : start + s] = {name}\n", ""))
    verdict, _ = said(tmp_path, script, **{"config.py": project.CONFIG, "model.py": model})
    assert verdict == NOT_A_DECODER


BUFFER = '        self.register_buffer("valueCache", '
STATE = '        ct.StateType(ct.TensorType(shape=model.valueCache.shape, dtype=np.float16), name="valueCache"),\n'


def with_state(shape: str, *lines: str) -> str:
    """The decoder with one more state, which has rows of another kind."""
    return mutate(
        CORE_ML,
        (KEYS, KEYS + indented(lines)),
        (BUFFER, BUFFER.replace("valueCache", "state_0_a") + f"torch.zeros({shape}))\n" + BUFFER),
        ("        self.head =", "        self.w = nn.Parameter(torch.zeros(HIDDEN, 1, 4))\n        self.head ="),
        (STATE, STATE + STATE.replace("valueCache", "state_0_a")),
    )


@pytest.mark.parametrize(
    ("shape", "lines", "says", "role"),
    [
        (
            "1, HIDDEN",
            [
                "seen = torch.cat([self.state_0_a[:, None], x[:, :-1]], 1)",
                "self.state_0_a[:] = x[:, -1]",
                "x = x + seen",
            ],
            HYBRID,
            Role.RECURRENT,
        ),
        ("1, HIDDEN", ["self.state_0_a[:] = x[:, -1]"], UNKNOWN_ROLE, Role.UNKNOWN),  # nobody reads it
        ("1, HIDDEN", ["self.state_0_a[:] = x[:, -1]", "x = x + self.state_0_a[:, None]"], UNKNOWN_ROLE, Role.UNKNOWN),
        (
            "1, HIDDEN, 3",
            [
                "seen = torch.cat([self.state_0_a, x.transpose(1, 2)], 2)",
                "self.state_0_a.copy_(seen[:, :, -3:])",
                "x = nn.functional.conv1d(seen, self.w, groups=HIDDEN).transpose(1, 2)",
            ],
            HYBRID,
            Role.CONV,
        ),
        (
            "1, HEADS, 64, HIDDEN // HEADS",
            [
                "seen = torch.cat([self.state_0_a, k], 2)[:, :, -64:]",
                "self.state_0_a.copy_(seen)",
                "x = x + (torch.softmax(q @ seen.transpose(2, 3), -1) @ seen).transpose(1, 2).reshape(x.shape)",
            ],
            RING,
            Role.UNKNOWN,
        ),
    ],
)
def test_what_each_call_replaces(tmp_path: Path, shape: str, lines: list[str], says: str, role: Role) -> None:
    verdict, roles = said(tmp_path, with_state(shape, *lines))
    assert (verdict, roles["state_0_a"]) == (says, role)
