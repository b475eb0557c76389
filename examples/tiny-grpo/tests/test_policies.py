from __future__ import annotations

import pytest

from tiny_grpo.policies import MIN_WEIGHT, MAX_WEIGHT, acceptance_weights


def test_lengths_that_are_accepted_seldom_weigh_more() -> None:
    weights = acceptance_weights([1.25, 1.25, 0.5])
    assert weights[2] / weights[0] == pytest.approx(1.25 / 0.5)
    assert sum(weights) == pytest.approx(3)


def test_weights_are_bounded_and_unknown_lengths_weigh_one() -> None:
    rare, common, unknown = acceptance_weights([0.001, 1000.0, None])
    assert rare / unknown == pytest.approx(MAX_WEIGHT)
    assert common / unknown == pytest.approx(MIN_WEIGHT)
