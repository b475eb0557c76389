"""Tables and plots of a study with services."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from .plots import Line, Result, by_step, deviation, evaluated, plot, plot_panels
from .policies import POLICIES
from .statistics import Paired


def read_study(folder: Path) -> dict[str, list[Result]]:
    """Results by policy, in the order of `POLICIES`."""
    found: dict[str, list[Result]] = {}
    for policy in POLICIES:
        results = [json.loads(file.read_text()) for file in sorted(folder.glob(f"{policy}-[0-9]*.json"))]
        if results:
            found[policy] = results
    return found


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
    """A number of each run, and of the `wait` run with the same seed, which has the same start, problems and order."""
    of_seed = {result["options"]["seed"]: number(result) for result in waiting}
    seeds = [result["options"]["seed"] for result in results]
    return [(number(result), of_seed[seed]) for seed, result in zip(seeds, results, strict=True) if seed in of_seed]


def table(studied: dict[str, list[Result]]) -> str:
    """Two tables with a row per policy, as Markdown: learning and costs. Mean and standard deviation over seeds; for
    comparisons with `wait`, mean and 95 % interval of the mean."""
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
                interval_or_mean(less(_reward), 3),
                _cell(each(lambda result: result["evaluations"][-1]["length"]), 1),
                interval_or_mean(less(_learned_length), 2),
                interval_or_mean(over(lambda result: _trained_length(result, len(result["steps"]))), 2),
                interval_or_mean(over(lambda result: _trained_length(result, len(result["steps"]) // 3)), 2),
            ]
        )
        costs.append(
            [
                f"`{policy}`",
                _cell(each(_simulated_seconds), 1),
                interval_or_mean(over(_simulated_seconds), 2),
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
    return markdown(heads, learned) + "\n\n" + markdown([*costs_heads, "real s a run"], costs)


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


def interval_or_mean(values: Sequence[float], digits: int) -> str:
    """Mean, and half of its 95 % interval (Student's t); without one for fewer than three values."""
    if len(values) < 3:
        return f"{np.mean(values):.{digits}f}" if values else "-"
    paired = Paired.of(values)
    return f"{paired.mean:.{digits}f} ± {paired.half_interval(0.95):.{digits}f}"


def markdown(heads: list[str], rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in [heads, ["---"] * len(heads), *rows])
