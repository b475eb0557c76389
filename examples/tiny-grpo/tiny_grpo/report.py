"""Plots and tables of a study."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .model import Floats
from .policies import POLICIES

#: Told apart by people who do not see all colours (Okabe and Ito).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
#: 97.5 % quantiles of Student's t, by degrees of freedom.
STUDENT = {2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365}
Result = dict[str, Any]


@dataclass
class Line:
    """Mean and standard deviation over seeds of a number.

    :param x: the same for all seeds
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


def read_study(folder: Path) -> dict[str, list[Result]]:
    """Results by policy, in the order of `POLICIES`."""
    found: dict[str, list[Result]] = {}
    for policy in POLICIES:
        results = [json.loads(file.read_text()) for file in sorted(folder.glob(f"{policy}-[0-9]*.json"))]
        if results:
            found[policy] = results
    return found


def by_step(results: Sequence[Result], number: Callable[[Result], float]) -> Line:
    """A number of each training step."""
    values = [[number(step) for step in result["steps"]] for result in results]
    return Line(np.array([step["step"] for step in results[0]["steps"]]), np.array(values))


def evaluated(results: Sequence[Result], number: str) -> Line:
    """A number of the evaluations: of the model's own responses to problems that are not trained."""
    values = [[evaluation[number] for evaluation in result["evaluations"]] for result in results]
    return Line(np.array([evaluation["step"] for evaluation in results[0]["evaluations"]]), np.array(values))


def by_time(results: Sequence[Result]) -> Line:
    """Reward of the evaluations by simulated seconds of rollout, up to the end of the shortest run."""
    times, rewards = [], []
    for result in results:
        seconds = np.cumsum([0.0, *(step["simulated_seconds"] for step in result["steps"])])
        times.append([seconds[evaluation["step"]] for evaluation in result["evaluations"]])
        rewards.append([evaluation["reward"] for evaluation in result["evaluations"]])
    grid = np.linspace(0, min(time[-1] for time in times), 50)
    lines = [np.interp(grid, time, reward) for time, reward in zip(times, rewards, strict=True)]
    return Line(grid, np.array(lines))


def generated_length(step: Result) -> float:
    """Mean length of all samples that the round has started, as the ledger estimates it: trained length / length
    bias. A group that was cut and is generated again is started once more."""
    return float(step["round"]["response_length/mean"] / step["round"]["rollout/length_bias"])


def plot(file: Path, title: str, labels: tuple[str, str], lines: dict[str, Line]) -> None:
    """One line with its spread for each policy, as SVG.

    :param labels: of the axes
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
    """As `plot`, with a panel for each policy, and a dashed line without a spread."""
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
    # The same numbers give the same file.
    matplotlib.rcParams["svg.hashsalt"] = "tiny-grpo"
    from matplotlib import pyplot

    return pyplot


def _draw_line(axes: Any, line: Line, colour: str, label: str) -> None:
    axes.plot(line.x, line.mean, color=colour, label=label)
    # No number of the study is below 0.
    low = np.maximum(line.mean - line.spread, 0)
    axes.fill_between(line.x, low, line.mean + line.spread, color=colour, alpha=0.12)


def draw(studied: dict[str, list[Result]], output: Path) -> None:
    """Writes the plots of the page, and the numbers of each run."""
    output.mkdir(parents=True, exist_ok=True)
    (output / "tiny-grpo-runs.csv").write_text(runs(studied))

    def each(line: Callable[[list[Result]], Line]) -> dict[str, Line]:
        return {policy: line(results) for policy, results in studied.items()}

    def off_policy(step: Result) -> float:
        return float(step["off_policy_share"])

    def trained(step: Result) -> float:
        return float(step["length"])

    step = "training step"
    reward = ("share of exact answers", each(lambda results: evaluated(results, "reward")))
    plot(output / "tiny-grpo-reward.svg", "Reward of the model", (step, reward[0]), reward[1])
    seconds = "simulated seconds of rollout"
    plot(output / "tiny-grpo-reward-by-time.svg", "Reward by time", (seconds, reward[0]), each(by_time))
    title = "Length of trained samples (solid) and of all started samples (dashed)"
    generated = each(lambda results: by_step(results, generated_length))
    lengths = each(lambda results: by_step(results, trained))
    plot_panels(output / "tiny-grpo-lengths.svg", title, (step, "tokens"), lengths, generated)
    learned = each(lambda results: evaluated(results, "length"))
    title = "Length of the model's own responses"
    plot(output / "tiny-grpo-learned-lengths.svg", title, (step, "tokens"), learned)
    title, share = "Tokens of older weights", "share of the trained tokens"
    plot(output / "tiny-grpo-off-policy.svg", title, (step, share), each(lambda r: by_step(r, off_policy)))


def beside_wait(
    results: Sequence[Result], waiting: Sequence[Result], number: Callable[[Result], float]
) -> list[tuple[float, float]]:
    """A number of each run, and that of `wait` with the same seed: start, problems and their order are the same."""
    of_seed = {result["options"]["seed"]: number(result) for result in waiting}
    seeds = [result["options"]["seed"] for result in results]
    return [(number(result), of_seed[seed]) for seed, result in zip(seeds, results, strict=True) if seed in of_seed]


def table(studied: dict[str, list[Result]]) -> str:
    """Two tables of each policy, as Markdown: what is learned, and what it costs. Mean and standard deviation over
    seeds; beside `wait`, mean and 95 % interval of the mean."""
    learned, costs = [], []
    waiting = studied.get("wait", [])
    for policy, results in studied.items():

        def each(number: Callable[[Result], float], results: list[Result] = results) -> list[float]:
            return [number(result) for result in results]

        def less(number: Callable[[Result], float], results: list[Result] = results) -> list[float]:
            return [own - other for own, other in beside_wait(results, waiting, number)]

        def over(number: Callable[[Result], float], results: list[Result] = results) -> list[float]:
            return [own / other for own, other in beside_wait(results, waiting, number)]

        learned.append(
            [
                f"`{policy}`",
                str(len(results)),
                _cell(each(lambda result: result["evaluations"][0]["reward"]), 3),
                _cell(each(_reward), 3),
                _interval(less(_reward), 3),
                _cell(each(lambda result: result["evaluations"][-1]["length"]), 1),
                _interval(less(_learned_length), 2),
                _interval(over(lambda result: _trained_length(result, len(result["steps"]))), 2),
                _interval(over(lambda result: _trained_length(result, len(result["steps"]) // 3)), 2),
            ]
        )
        costs.append(
            [
                f"`{policy}`",
                _cell(each(_simulated_seconds), 1),
                _interval(over(_simulated_seconds), 2),
                _cell(each(lambda result: result["ledger"]["offPolicyShare"]), 2),
                str(max(each(lambda result: result["ledger"]["versionSpan"]["max"]))),
                _cell(each(_clipped_share), 4),
                _cell(each(lambda result: result["ledger"]["lengthBias"]), 2),
                _cell(each(lambda result: result["ledger"]["waste"]["share"]), 2),
                _cell(each(lambda result: result["seconds"]), 0),
            ]
        )
    heads = ["policy", "seeds", "reward before", "reward after", "reward - `wait`", "learned length", "length - `wait`"]
    heads += ["trained length / `wait`", "the same, first third"]
    costs_heads = ["policy", "simulated s", "/ `wait`", "off-policy", "span", "clipped", "length bias", "waste"]
    return _markdown(heads, learned) + "\n\n" + _markdown([*costs_heads, "real s a run"], costs)


def runs(studied: dict[str, list[Result]]) -> str:
    """One line of each run, as CSV."""
    heads = [
        "policy,seed,reward_before,reward_after,learned_length,simulated_s,off_policy_share,length_bias,waste_share"
    ]
    lines = [",".join([*heads, "version_span,clipped_share,trained_length,trained_length_first_third,real_s"])]
    for policy, results in studied.items():
        for result in results:
            ledger, evaluations = result["ledger"], result["evaluations"]
            numbers = [evaluations[0]["reward"], _reward(result), evaluations[-1]["length"], _simulated_seconds(result)]
            numbers += [ledger["offPolicyShare"], ledger["lengthBias"], ledger["waste"]["share"]]
            numbers += [ledger["versionSpan"]["max"], _clipped_share(result)]
            steps = len(result["steps"])
            numbers += [_trained_length(result, steps), _trained_length(result, steps // 3), result["seconds"]]
            lines.append(",".join([policy, str(result["options"]["seed"]), *(f"{number:.6g}" for number in numbers)]))
    return "\n".join([*lines, ""])


def _reward(result: Result) -> float:
    return float(result["evaluations"][-1]["reward"])


def _learned_length(result: Result) -> float:
    """Mean of all evaluations after the start: at the end the lengths are near their highest value."""
    return float(np.mean([evaluation["length"] for evaluation in result["evaluations"][1:]]))


def _simulated_seconds(result: Result) -> float:
    return float(sum(step["simulated_seconds"] for step in result["steps"]))


def _clipped_share(result: Result) -> float:
    return float(np.mean([step["clipped_share"] for step in result["steps"]]))


def _trained_length(result: Result, steps: int) -> float:
    """Mean length of the samples of the first steps."""
    return float(np.mean([step["length"] for step in result["steps"][: max(1, steps)]]))


def _cell(values: Sequence[float], digits: int) -> str:
    return f"{np.mean(values):.{digits}f} ± {deviation(values):.{digits}f}" if values else "-"


def _interval(values: Sequence[float], digits: int) -> str:
    """Mean, and half of its 95 % interval (Student's t); without one for fewer than three or more than eight values."""
    if len(values) - 1 not in STUDENT:
        return f"{np.mean(values):.{digits}f}" if values else "-"
    half = STUDENT[len(values) - 1] * float(deviation(values)) / len(values) ** 0.5
    return f"{np.mean(values):.{digits}f} ± {half:.{digits}f}"


def _markdown(heads: list[str], rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in [heads, ["---"] * len(heads), *rows])
