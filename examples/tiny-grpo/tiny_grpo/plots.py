"""Plots as SVG, with matplotlib."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .model import Floats

#: Colours that people with colour blindness can distinguish (Okabe and Ito).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
Result = dict[str, Any]


@dataclass
class Line:
    """Mean and standard deviation over seeds of a number.

    :param x: positions, the same for all seeds
    :param values: a row for each seed
    """

    x: Floats
    values: Floats

    @property
    def mean(self) -> Floats:
        return np.asarray(self.values.mean(axis=0))

    @property
    def spread(self) -> Floats:
        return deviation(self.values)


def deviation(values: Sequence[float] | Floats) -> Floats:
    """Standard deviation of a sample, over its first axis; 0 for one seed."""
    return np.asarray(np.std(values, axis=0, ddof=min(1, len(values) - 1)))


def by_step(results: Sequence[Result], number: Callable[[Result], float]) -> Line:
    """A number of each training step."""
    values = [[number(step) for step in result["steps"]] for result in results]
    return Line(np.array([step["step"] for step in results[0]["steps"]]), np.array(values))


def evaluated(results: Sequence[Result], number: str) -> Line:
    """A number of the evaluations: of the model's own responses to problems that are not trained."""
    values = [[evaluation[number] for evaluation in result["evaluations"]] for result in results]
    return Line(np.array([evaluation["step"] for evaluation in results[0]["evaluations"]]), np.array(values))


def plot(file: Path, title: str, labels: tuple[str, str], lines: dict[str, Line]) -> None:
    """One line with its spread for each policy, as SVG.

    :param labels: labels of the axes
    :raises ImportError: matplotlib is not installed
    """
    pyplot = _pyplot()
    figure, axes = pyplot.subplots(figsize=(8, 4.4), layout="constrained")
    for (policy, line), colour in zip(lines.items(), COLOURS, strict=False):
        _draw_line(axes, line, colour, policy)
    axes.set_title(title, loc="left")
    axes.set_xlabel(labels[0])
    axes.set_ylabel(labels[1])
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, metadata={"Date": None})
    pyplot.close(figure)


def plot_panels(
    file: Path, title: str, labels: tuple[str, str], solid: dict[str, Line], dashed: dict[str, Line]
) -> None:
    """Plots one panel per policy: a line with its spread, and a dashed line without."""
    pyplot = _pyplot()
    rows = -(-len(solid) // 3)
    figure, panels = pyplot.subplots(
        rows, 3, figsize=(8, 0.6 + 2.2 * rows), layout="constrained", sharex=True, sharey=True, squeeze=False
    )
    for axes in panels.flat[len(solid) :]:
        axes.set_visible(False)
    for axes, (policy, line), colour in zip(panels.flat, solid.items(), COLOURS, strict=False):
        _draw_line(axes, line, colour, policy)
        axes.plot(dashed[policy].x, dashed[policy].mean, color="black", linestyle="--", linewidth=1)
        axes.set_title(policy, fontsize="medium")
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(title, x=0, ha="left")
    figure.supxlabel(labels[0], fontsize="medium")
    figure.supylabel(labels[1], fontsize="medium")
    figure.savefig(file, metadata={"Date": None})
    pyplot.close(figure)


def _pyplot() -> Any:
    import matplotlib

    matplotlib.use("svg")
    # With a fixed salt, the same numbers give the same file.
    matplotlib.rcParams["svg.hashsalt"] = "tiny-grpo"
    from matplotlib import pyplot

    return pyplot


def _draw_line(axes: Any, line: Line, colour: str, label: str) -> None:
    axes.plot(line.x, line.mean, color=colour, label=label)
    # No number of the study is below 0.
    low = np.maximum(line.mean - line.spread, 0)
    axes.fill_between(line.x, low, line.mean + line.spread, color=colour, alpha=0.12)


def plot_intervals(file: Path, title: str, intervals: dict[str, tuple[float, float]], margin: float) -> None:
    """A point with its interval for each name, between two lines at the margin.

    :param intervals: mean, and half of the interval
    """
    pyplot = _pyplot()
    figure, axes = pyplot.subplots(figsize=(8, 0.9 + 0.45 * len(intervals)), layout="constrained")
    for row, (name, (mean, half)) in enumerate(intervals.items()):
        axes.errorbar(mean, -row, xerr=half, fmt="o", color=COLOURS[row % len(COLOURS)], capsize=4)
        axes.annotate(name, (0, -row), (-0.01, -row), xycoords=("axes fraction", "data"), ha="right", va="center")
    for place, style in ((-margin, "--"), (0, "-"), (margin, "--")):
        axes.axvline(place, color="black", linestyle=style, linewidth=1)
    axes.set_title(title, loc="left")
    axes.set_yticks([])
    axes.set_ylim(0.5 - len(intervals), 0.5)
    axes.spines[["top", "right", "left"]].set_visible(False)
    figure.savefig(file, metadata={"Date": None})
    pyplot.close(figure)
