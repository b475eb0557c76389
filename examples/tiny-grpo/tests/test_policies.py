from __future__ import annotations

import pytest

from tiny_grpo.policies import LEAST_WEIGHT, MOST_WEIGHT, acceptance_weights


def test_lengths_that_are_accepted_seldom_weigh_more() -> None:
    acceptance = [
        {"fromTokens": 0.0, "toTokens": 8.0, "ratio": 1.25},
        {"fromTokens": 8.0, "toTokens": 16.0, "ratio": 0.5},
    ]
    weights = acceptance_weights([4, 4, 8], acceptance)  # type: ignore[arg-type]
    assert weights[2] / weights[0] == pytest.approx(1.25 / 0.5)
    assert sum(weights) == pytest.approx(3)


def test_weights_are_bounded_and_unknown_lengths_weigh_one() -> None:
    acceptance = [
        {"fromTokens": 0.0, "toTokens": 8.0, "ratio": 0.001},
        {"fromTokens": 8.0, "toTokens": 16.0, "ratio": 1000.0},
    ]
    rare, common, unknown = acceptance_weights([4, 8, 99], acceptance)  # type: ignore[arg-type]
    assert rare / unknown == pytest.approx(MOST_WEIGHT)
    assert common / unknown == pytest.approx(LEAST_WEIGHT)
