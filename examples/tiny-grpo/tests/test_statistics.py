"""Statistics against known values."""

from __future__ import annotations

import numpy as np
import pytest

from tiny_grpo.learning import effective_share
from tiny_grpo.statistics import Paired, holm, mean_height

#: Differences of hours of sleep with two drugs (Student, 1908). R has t = -4.0621, p = 0.002833.
SLEEP = [-1.2, -2.4, -1.3, -1.3, 0.0, -1.0, -1.8, -0.8, -4.6, -1.4]


def test_a_paired_t_test_is_that_of_student() -> None:
    found = Paired.of(SLEEP)
    assert found.t == pytest.approx(-4.0621, abs=1e-4)
    assert found.p_different() == pytest.approx(0.002833, abs=1e-6)
    # R: t.test(extra ~ group, paired = TRUE) has -2.4598858 to -0.7001142.
    assert found.mean - found.half_interval(0.95) == pytest.approx(-2.4598858, abs=1e-6)
    assert found.mean + found.half_interval(0.95) == pytest.approx(-0.7001142, abs=1e-6)


def test_equivalence_is_that_of_the_90_percent_interval() -> None:
    found = Paired.of(SLEEP)
    farthest = abs(found.mean) + found.half_interval(0.9)
    assert found.p_equivalent(farthest) == pytest.approx(0.05)
    assert found.p_equivalent(farthest * 1.01) < 0.05 < found.p_equivalent(farthest * 0.99)
    # With the mean on the margin, one of the tests has p = 0.5.
    assert found.p_equivalent(abs(found.mean)) == pytest.approx(0.5)
    # Mean 0, error 1, 9 degrees of freedom: 1.833113 is the 95 % quantile of Student's t.
    assert Paired(10, 0.0, 10**0.5).p_equivalent(1.833113) == pytest.approx(0.05, abs=1e-6)


def test_equal_differences_are_certain() -> None:
    assert Paired.of([0.0, 0.0]).p_equivalent(0.03) == 0
    assert Paired.of([0.0, 0.0]).p_different() == 1
    assert Paired.of([0.5, 0.5]).p_equivalent(0.03) == 1


def test_values_of_p_are_corrected_for_their_number() -> None:
    # R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_the_mean_height_of_a_line_does_not_depend_on_its_points() -> None:
    assert mean_height([0, 2, 6], [0, 1, 3]) == pytest.approx(1.5)
    assert mean_height([0, 6], [0, 3]) == pytest.approx(1.5)


def test_the_effective_share_is_that_of_kish() -> None:
    assert effective_share(np.zeros(5)) == pytest.approx(1)
    assert effective_share(np.log([1, 2, 3])) == pytest.approx(36 / 14 / 3)
    # Far beyond the range of the exponential function.
    assert effective_share(np.array([0, -2_000.0, -2_000.0, -2_000.0])) == pytest.approx(1 / 4)
    assert effective_share(np.array([2_000.0, 2_000.0])) == pytest.approx(1)
