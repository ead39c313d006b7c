"""The simulator of the loop against a published A/B table: fitted on K=1 and K=2, everything else predicted.

    python benchmarks/ab_published.py

The table is of a 30B model on an M4 Max: three workloads, 256 tokens, speed-up over each row's own baseline. Four
probabilities make the acceptance of a workload (`probes/ab/simulator.py`). They are fitted on the K=1 and K=2 rows, and
on the counts that were published beside the table; K=3, K=4, K=8 and the adaptive caps are predictions, but for what
the counts tell of code. The counts, and what they are taken for:

- chat: tokens per forward, rising with K to 1.57 (which K is not said): the largest is taken for the longest draft, 8;
- code: forwards and seconds at K=8; forwards, seconds and mean draft of the adaptive run, by its seconds that of cap 8.

How often a draft is there cannot be seen at K=1 and K=2, whose forwards are as good as free; it is taken from code for
all three. For tool calls there are no counts, and two rows do not fix three probabilities: the rate of a copying run is
taken from code as well, for an echoed result is copied like code. Chat's is its own.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from probes.ab.policies import Adaptive, Fixed, Policy
from probes.ab.simulator import Acceptance, simulate

MS = {1: 36.9, 2: 37.1, 3: 37.7, 4: 53.6, 5: 54.0, 6: 54.4, 7: 54.7, 8: 54.9, 9: 84.6, 12: 84.7, 16: 81.0}
COSTS = {s: ms / MS[1] for s, ms in MS.items()}
WORKLOADS = ("free chat", "code rewrite", "tool calling")
SPEEDUPS: dict[str, tuple[float, float, float]] = {
    "K=1": (1.26, 1.44, 1.53),
    "K=2": (1.34, 1.69, 1.84),
    "K=3": (1.15, 1.48, 1.55),
    "K=4": (1.17, 1.63, 1.63),
    "K=8": (0.95, 1.40, 1.39),
    "adaptive:5": (1.25, 1.75, 1.82),
    "adaptive:7": (1.25, 1.96, 1.83),
    "adaptive:8": (1.28, 1.81, 1.73),
}
POLICIES: dict[str, Policy] = {
    **{f"K={k}": Fixed(k) for k in (1, 2, 3, 4, 8)},
    **{f"adaptive:{k}": Adaptive(k) for k in (5, 7, 8)},
}
FITTED = ("K=1", "K=2")
TOKENS = 256
STARTS = 2
CHAT_LARGEST = 1.57
CODE_K8_FORWARDS, CODE_K8_SECONDS = 104, 6.71
CODE_ADAPTIVE_FORWARDS, CODE_ADAPTIVE_SECONDS, CODE_ADAPTIVE_DRAFT = 107, 5.21, 3.1


def errors(workload: str, guess: Acceptance) -> list[float]:
    """Relative errors (logarithms) of what is fitted."""
    index = WORKLOADS.index(workload)
    found = [math.log(simulate(POLICIES[name], guess, COSTS).speedup / SPEEDUPS[name][index]) for name in FITTED]
    if workload == "free chat":
        found.append(math.log(simulate(Fixed(8), guess, COSTS).tokens / CHAT_LARGEST))
    elif workload == "code rewrite":
        fixed, adaptive = (simulate(policy, guess, COSTS) for policy in (Fixed(8), Adaptive(8)))
        found += [
            math.log(fixed.tokens * CODE_K8_FORWARDS / TOKENS),
            math.log(fixed.cost * MS[1] * CODE_K8_FORWARDS / 1e3 / CODE_K8_SECONDS),
            math.log(adaptive.tokens * CODE_ADAPTIVE_FORWARDS / TOKENS),
            math.log(adaptive.cost * MS[1] * CODE_ADAPTIVE_FORWARDS / 1e3 / CODE_ADAPTIVE_SECONDS),
            math.log(adaptive.draft / CODE_ADAPTIVE_DRAFT),
        ]
    return found


def fit(workload: str, code: Acceptance | None = None) -> Acceptance:
    """The acceptance with the least squared errors; what `code` lends is not fitted again."""
    lent = [] if code is None else [code.available] if workload == "free chat" else [code.available, code.long]

    def made(logits: Sequence[float]) -> Acceptance:
        rates = [1 / (1 + math.exp(-x)) for x in logits]
        if not lent:
            return Acceptance(rates[0], rates[1], max(rates[2:]), min(rates[2:]))
        if len(lent) == 1:
            return Acceptance(lent[0], rates[0], max(rates[1:]), min(rates[1:]))
        return Acceptance(lent[0], rates[0], lent[1], rates[1])

    best = search(lambda logits: sum(error**2 for error in errors(workload, made(logits))), 4 - len(lent))
    return made(best)


def search(loss: Callable[[Sequence[float]], float], count: int) -> list[float]:
    """A random search from several starts, whose steps shrink: few unknowns, smooth, and no library for it."""
    found = []
    for seed in range(STARTS):
        dice = random.Random(seed)
        best = [dice.uniform(-2, 3) for _ in range(count)]
        value, step = loss(best), 1.0
        while step > 0.01:
            improved = False
            for _ in range(16):
                tried = [min(max(x + dice.gauss(0, step), -6.0), 6.0) for x in best]
                new = loss(tried)
                if new < value:
                    best, value, improved = tried, new, True
            step *= 1.0 if improved else 0.5
        found.append((value, best))
    return min(found)[1]


def fits() -> dict[str, Acceptance]:
    code = fit("code rewrite")
    return {workload: code if workload == "code rewrite" else fit(workload, code) for workload in WORKLOADS}


def predictions(found: Mapping[str, Acceptance]) -> dict[str, dict[str, float]]:
    """Speed-up by workload and policy."""
    return {
        workload: {name: simulate(policy, guess, COSTS).speedup for name, policy in POLICIES.items()}
        for workload, guess in found.items()
    }


def main() -> None:
    found = fits()
    missed = []
    for index, workload in enumerate(WORKLOADS):
        guess = found[workload]
        rates = f"available {guess.available:.2f}, copies {guess.copies:.2f}"
        rates += f", long {guess.long:.2f}, short {guess.short:.2f}"
        print(f"{workload}: {rates}")
        for name, policy in POLICIES.items():
            outcome, published = simulate(policy, guess, COSTS), SPEEDUPS[name][index]
            error = outcome.speedup / published - 1
            if name not in FITTED:
                missed.append(abs(error))
            how = "fitted" if name in FITTED else "predicted"
            print(
                f"  {name:10} published {published:.2f}  {how:9} {outcome.speedup:.2f}  {error:+6.1%}   "
                f"{outcome.tokens:.2f} tokens per forward, mean c_v {outcome.cost:.2f}, mean draft {outcome.draft:.2f}"
            )
        print()
    print(f"predicted: mean |error| {sum(missed) / len(missed):.1%}, largest {max(missed):.1%}")


if __name__ == "__main__":
    main()
