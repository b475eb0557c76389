"""The runs of the study that need no services: each differs from another one in one thing."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from .addition import MAX_TOKENS, Task
from .evaluation import RATE
from .simulated_rounds import Tail, auto_tail

#: Versions that the tokens of the positive control are late.
CONTROL_LATENESS = 20
#: Steps whose prompts are sorted together by their digits: the last ones have only long groups.
SORTED_STEPS = 4


@dataclass(frozen=True)
class Variant:
    """:param late: weight versions between the generation of a sample and its training
    :param has_ratios: False: tokens of older weights count as those of the present ones
    :param is_sorted: the prompts of each four steps are sorted, so that some steps have long groups only
    """

    tail: Tail = Tail("wait")
    is_auto: bool = False
    rate: float = RATE
    late: int = 0
    has_ratios: bool = True
    is_sorted: bool = False
    task: Task = field(default_factory=Task)

    def tail_at(self, step: int) -> Tail:
        return auto_tail(step) if self.is_auto else self.tail


WAIT = Variant()
RESUME = Variant(Tail("resume", 1.25))
REGENERATE = Variant(Tail("regenerate", 1.25, 1.25))
DROP = Variant(Tail("drop", 2.0, 2.0))
MAIN = {
    "wait": WAIT,
    "resume": RESUME,
    "regenerate": REGENERATE,
    "auto-replayed": Variant(is_auto=True),
    # The positive control: all that is known to hurt.
    "control": replace(DROP, late=CONTROL_LATENESS, has_ratios=False),
}
#: Parts of the control.
CONTROLS = {
    "drop": DROP,
    "late": replace(WAIT, late=CONTROL_LATENESS),
    "late-no-ratios": replace(WAIT, late=CONTROL_LATENESS, has_ratios=False),
    "resume-no-ratios": replace(RESUME, has_ratios=False),
}
RATES = {
    f"{name}-rate-{rate:g}": replace(variant, rate=rate)
    for rate in (1e-4, 1e-3, 3e-3)
    for name, variant in (("wait", WAIT), ("resume", RESUME), ("regenerate", REGENERATE), ("auto-replayed", MAIN["auto-replayed"]))
}
#: One change at a time: over-provision of a policy, and policies with one over-provision.
OVER = {
    "drip": Variant(Tail("drip", 1.25)),
    "resume-over-2": Variant(Tail("resume", 2.0)),
    "drip-over-2": Variant(Tail("drip", 2.0)),
    "regenerate-groups": Variant(Tail("regenerate", 1.25)),
    "regenerate-samples": Variant(Tail("regenerate", 1.0, 1.25)),
}
#: On-policy, with the same prompts: only the order differs.
ORDER = {"wait-sorted": replace(WAIT, is_sorted=True)}
#: A response that shows the work of four digits has 34 tokens.
SHORT = Task(budget=30, penalty=0.2)
TRUNCATED = {
    f"{name}-truncated": replace(variant, task=SHORT)
    for name, variant in (("wait", WAIT), ("resume", RESUME), ("regenerate", REGENERATE), ("auto-replayed", MAIN["auto-replayed"]))
}
VARIANTS = {**MAIN, **CONTROLS, **RATES, **OVER, **ORDER, **TRUNCATED}
assert SHORT.budget < MAX_TOKENS
