"""The statistics of the study: paired differences, equivalence, and areas under curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student


@dataclass(frozen=True)
class Paired:
    """Differences of pairs, at least two.

    :param deviation: standard deviation of the differences
    """

    count: int
    mean: float
    deviation: float

    @staticmethod
    def of(differences: Sequence[float]) -> Paired:
        return Paired(len(differences), float(np.mean(differences)), float(np.std(differences, ddof=1)))

    @property
    def error(self) -> float:
        """Standard error of the mean."""
        return float(self.deviation / self.count**0.5)

    @property
    def t(self) -> float:
        """Mean in standard errors; without a bound if all differences are equal."""
        return self._errors(self.mean)

    def half_interval(self, share: float) -> float:
        """Half of the interval that has the true mean with this probability (Student's t)."""
        return float(student.ppf((1 + share) / 2, self.count - 1)) * self.error

    def p_different(self) -> float:
        """Two-sided paired t test of a mean of 0."""
        return 2 * float(student.sf(abs(self.t), self.count - 1))

    def p_equivalent(self, margin: float) -> float:
        """TOST: the larger p of two one-sided t tests, that the mean is above `-margin` and that it is below `margin`.
        Below 0.05 just if the 90 % interval lies within the margin."""
        nearest = self._errors(min(self.mean + margin, margin - self.mean))
        return float(student.sf(nearest, self.count - 1))

    def _errors(self, distance: float) -> float:
        if self.error == 0:
            return float(np.sign(distance)) * np.inf if distance else 0.0
        return distance / self.error


def holm(values: Sequence[float]) -> list[float]:
    """Values of p, corrected for their number (Holm), in their order."""
    corrected, highest = [0.0] * len(values), 0.0
    for rank, index in enumerate(np.argsort(values)):
        highest = max(highest, min(1.0, (len(values) - rank) * values[index]))
        corrected[index] = highest
    return corrected


def mean_height(x: Sequence[float], y: Sequence[float]) -> float:
    """Area under the line through the points / its width."""
    return float(np.trapezoid(y, x) / (x[-1] - x[0]))
