"""The tail policies of the study, by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broomwagon.protocol import TailPolicy

#: Launched prompts / needed prompts of each policy but `wait`; samples too with `regenerate`, as RollPacker does.
OVER_PROVISION = 1.25
#: Bounds of the weight of a sample, since the acceptance of a length with few samples is noisy.
MIN_WEIGHT, MAX_WEIGHT = 0.25, 4.0


@dataclass(frozen=True)
class Policy:
    """:param is_weighted: samples count by the inverse of the acceptance of their length"""

    tail: dict[str, Any]
    is_weighted: bool = False

    @property
    def wire(self) -> TailPolicy:
        return {"shortfall": "accept-fewer", **self.tail}  # type: ignore[typeddict-item]


_REGENERATE = {"name": "regenerate", "overProvision": OVER_PROVISION, "sampleOverProvision": OVER_PROVISION}
POLICIES = {
    "wait": Policy({"name": "wait", "overProvision": 1.0}),
    "resume": Policy({"name": "resume", "overProvision": OVER_PROVISION}),
    "drip": Policy({"name": "drip", "overProvision": OVER_PROVISION}),
    "regenerate": Policy(_REGENERATE),
    "regenerate-weighted": Policy(_REGENERATE, is_weighted=True),
    # The coordinator chooses for each round, within the default bounds.
    "auto": Policy({"name": "auto"}),
}


def acceptance_weights(acceptances: Sequence[float | None]) -> list[float]:
    """Weight of each sample: the inverse of its acceptance, with mean 1 over the batch. 1 for a sample of a length that
    earlier steps have not trained."""
    weights = [min(MAX_WEIGHT, max(MIN_WEIGHT, 1 / (acceptance or 1.0))) for acceptance in acceptances]
    mean = sum(weights) / max(1, len(weights))
    return [weight / mean for weight in weights]
