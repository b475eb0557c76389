"""The variants of a run without services. Each variant that is not in `MAIN` differs in one thing from another variant,
which `REFERENCES` names."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from .addition import Task
from .evaluation import RATE
from .simulated_rounds import Tail, auto_tail

#: Name of the positive control.
CONTROL = "control"
#: Weight versions by which tokens of the control are late.
CONTROL_LATENESS = 20
#: Steps whose prompts are sorted together by their digits: the last ones have only long groups.
SORTED_STEPS = 4


@dataclass(frozen=True)
class Variant:
    """:param late: weight versions between the generation of a sample and its training
    :param has_ratios: False: tokens of older weights count like tokens of the present weights
    :param is_sorted: the prompts of each four steps are sorted, so that some steps have long groups only
    """

    tail: Tail = field(default_factory=lambda: Tail("wait"))
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
    # The control has everything that is known to hurt.
    CONTROL: replace(DROP, late=CONTROL_LATENESS, has_ratios=False),
}
#: Variants with parts of the control.
CONTROLS = {
    "drop": DROP,
    "late": replace(WAIT, late=CONTROL_LATENESS),
    "late-no-ratios": replace(WAIT, late=CONTROL_LATENESS, has_ratios=False),
    "resume-no-ratios": replace(RESUME, has_ratios=False),
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
#: Settings of all policies: each policy is compared with `wait` in the same setting.
SETTINGS: dict[str, dict[str, Any]] = {
    **{f"rate-{rate:g}": {"rate": rate} for rate in (1e-4, 1e-3, 3e-3)},
    "truncated": {"task": SHORT},
}
POLICIES = {name: MAIN[name] for name in ("wait", "resume", "regenerate", "auto-replayed")}
SET = {
    f"{name}-{setting}": replace(variant, **changes)
    for setting, changes in SETTINGS.items()
    for name, variant in POLICIES.items()
}
VARIANTS = {**MAIN, **CONTROLS, **OVER, **ORDER, **SET}
#: Variant beside which a variant is shown, if not `wait`; both differ in one thing.
REFERENCES = {
    "late-no-ratios": "late",
    "resume-no-ratios": "resume",
    "resume-over-2": "resume",
    "drip-over-2": "drip",
    "regenerate-samples": "regenerate-groups",
    **{f"{name}-{setting}": f"wait-{setting}" for setting in SETTINGS for name in POLICIES if name != "wait"},
}
