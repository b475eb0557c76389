"""Tables and plots of runs without services, and of runs with services that have the same seeds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from .plots import Result, evaluated, plot, plot_intervals
from .report import interval_or_mean, markdown
from .statistics import Paired, holm, mean_height
from .variants import CONTROL, MAIN, REFERENCES, VARIANTS

#: Smallest difference of the reward that matters; set before the runs.
MARGIN = 0.03
BySeed = dict[int, Result]


def variant_file(folder: Path, name: str, seed: int | str) -> Path:
    return folder / "simulated" / f"{name}-seed-{seed}.json"


def read_sweep(folder: Path) -> dict[str, BySeed]:
    """Results by variant, in the order of `VARIANTS`, and by seed."""
    files = {name: list(folder.glob(str(variant_file(Path(), name, "*")))) for name in VARIANTS}
    return {name: by_seed(json.loads(file.read_text()) for file in found) for name, found in files.items() if found}


def by_seed(results: Iterable[Result]) -> BySeed:
    found = {result["options"]["seed"]: result for result in results}
    return dict(sorted(found.items()))


def pairs(results: BySeed, others: BySeed) -> list[tuple[Result, Result]]:
    """Runs with the same seed: start, problems and their order are the same."""
    return [(result, others[seed]) for seed, result in results.items() if seed in others]


def reward(result: Result) -> float:
    return float(result["evaluations"][-1]["reward"])


def area(result: Result) -> float:
    """Mean reward over the steps."""
    evaluations = result["evaluations"]
    return mean_height([one["step"] for one in evaluations], [one["reward"] for one in evaluations])


def length(result: Result) -> float:
    return float(result["evaluations"][-1]["length"])


def seconds(result: Result) -> float:
    """Simulated seconds of all rollouts."""
    return float(sum(step["simulated_seconds"] for step in result["steps"]))


def reward_at(result: Result, at: float) -> float:
    """Reward after so many simulated seconds, between two evaluations on the line through them."""
    ends = np.cumsum([0.0, *(step["simulated_seconds"] for step in result["steps"])])
    times = [ends[evaluation["step"]] for evaluation in result["evaluations"]]
    return float(np.interp(at, times, [evaluation["reward"] for evaluation in result["evaluations"]]))


def mean_of(number: str) -> Callable[[Result], float]:
    """Mean of a number over the steps."""
    return lambda result: float(np.mean([step[number] for step in result["steps"]]))


def differences(results: BySeed, others: BySeed, number: Callable[[Result], float]) -> list[float]:
    return [number(own) - number(other) for own, other in pairs(results, others)]


def at_equal_time(results: BySeed, others: BySeed) -> list[float]:
    """Differences of the reward when the faster run of each pair ends."""
    found = []
    for own, other in pairs(results, others):
        at = min(seconds(own), seconds(other))
        found.append(reward_at(own, at) - reward_at(other, at))
    return found


def equivalence_table(studied: dict[str, BySeed], reference: str = "wait") -> str:
    """Whether policies are equivalent to the reference. Differences have 90 % intervals, which TOST at 5 % reads."""
    found = {
        name: Paired.of(differences(results, studied.get(reference, {}), reward))
        for name, results in studied.items()
        if name != reference and len(pairs(results, studied.get(reference, {}))) > 1
    }
    # The control is not a hypothesis of the study.
    tested = [name for name in found if name != CONTROL]
    corrected = dict(zip(tested, holm([found[name].p_different() for name in tested]), strict=True))
    rows = []
    for name, results in studied.items():
        row = [f"`{name}`", str(len(results)), mean([reward(one) for one in results.values()], 3)]
        if name in found:
            others, paired = studied.get(reference, {}), found[name]
            below = sum(difference < 0 for difference in differences(results, others, reward))
            row += [interval(paired, 3), f"{below} of {paired.count}", f"{paired.t:.1f}"]
            row += [f"{corrected[name]:.3f}" if name in corrected else "-", f"{paired.p_equivalent(MARGIN):.1g}"]
            row += [interval(Paired.of(differences(results, others, area)), 3)]
            row += [interval(Paired.of(at_equal_time(results, others)), 3)]
            row += [interval(Paired.of(differences(results, others, length)), 2)]
        rows.append(row + ["-"] * (11 - len(row)))
    heads = ["policy", "seeds", "reward after", f"- `{reference}`", "below", "t", "p different", "p equivalent"]
    return markdown([*heads, "mean of the steps", "at equal time", "learned length"], rows)


def distance_table(studied: dict[str, BySeed], reference: str = "wait") -> str:
    """Cost of each policy, and distance of its tokens from the weights that train them."""
    rows = []
    for name, results in studied.items():
        all_of, others = list(results.values()), studied.get(reference, {})
        over = [seconds(own) / seconds(other) for own, other in pairs(results, others)]
        steps = [step for result in all_of for step in result["steps"]]
        rows.append(
            [
                f"`{name}`",
                mean([seconds(result) for result in all_of], 1),
                mean(over, 2),
                mean([mean_of("off_policy_share")(result) for result in all_of], 2),
                f"{np.mean([step['kl'] for step in steps]):.1e}",
                f"{max(step['kl'] for step in steps):.1e}",
                f"{np.mean([step['token_ess'] for step in steps]):.3f}",
                f"{min(step['token_ess'] for step in steps):.3f}",
                f"{np.mean([step['sample_ess'] for step in steps]):.3f}",
                f"{min(step['sample_ess'] for step in steps):.3f}",
                f"{np.mean([step['clipped_share'] for step in steps]):.4f}",
            ]
        )
    heads = ["policy", "simulated s", f"/ `{reference}`", "off-policy", "KL", "KL, worst step", "ESS of tokens"]
    return markdown([*heads, "worst step", "ESS of samples", "worst step", "clipped"], rows)


def driver_table(served: dict[str, BySeed], simulated: dict[str, BySeed]) -> str:
    """Differences between runs of a policy with and without services, which show whether runs without services are
    realistic. 95 % intervals."""
    rows = []
    for name in ("wait", "resume", "regenerate", "auto"):
        other = "auto-replayed" if name == "auto" else name
        results, others = served.get(name, {}), simulated.get(other, {})
        if len(pairs(results, others)) > 1:
            row = [f"`{name}`", f"`{other}`", str(len(pairs(results, others)))]
            for number, digits in ((reward, 3), (length, 2), (seconds, 2), (mean_of("off_policy_share"), 2)):
                row.append(interval(Paired.of(differences(results, others, number)), digits, 0.95))
            rows.append(row)
    heads = ["with services", "without", "seeds", "reward", "learned length", "simulated s", "off-policy"]
    return markdown(heads, rows)


def sweep_table(studied: dict[str, BySeed]) -> str:
    """Each variant beside the variant from which it differs in one thing. 95 % intervals, without tests."""
    rows = []
    for name, results in studied.items():
        if name in MAIN:
            continue
        all_of, reference = list(results.values()), REFERENCES.get(name, "wait")
        others = studied.get(reference, {})
        row = [f"`{name}`", str(len(all_of)), mean([reward(one) for one in all_of], 3)]
        row += [mean([one["evaluations"][-1]["truncated"] for one in all_of], 3)]
        row += [f"{np.mean([mean_of('kl')(one) for one in all_of]):.1e}"]
        row += [mean([mean_of("sample_ess")(one) for one in all_of], 3), f"`{reference}`"]
        for number, digits in ((reward, 3), (area, 3), (length, 2)):
            row.append(interval_or_mean(differences(results, others, number), digits))
        row.append(mean([seconds(own) / seconds(other) for own, other in pairs(results, others)], 2))
        rows.append(row)
    heads = ["variant", "seeds", "reward after", "truncated", "KL", "ESS of samples", "beside", "reward - beside"]
    return markdown([*heads, "mean of the steps", "learned length", "simulated s / beside"], rows)


def runs_csv(studied: dict[str, BySeed]) -> str:
    """One line of each run."""
    heads = "variant,seed,reward_before,reward_after,mean_reward,exact,truncated,learned_length,simulated_s"
    lines = [heads + ",off_policy_share,kl,token_ess,sample_ess"]
    for name, results in studied.items():
        for seed, result in results.items():
            last = result["evaluations"][-1]
            numbers = [result["evaluations"][0]["reward"], reward(result), area(result), last["exact"]]
            numbers += [last["truncated"], last["length"], seconds(result)]
            numbers += [mean_of(one)(result) for one in ("off_policy_share", "kl", "token_ess", "sample_ess")]
            lines.append(",".join([name, str(seed), *(f"{number:.6g}" for number in numbers)]))
    return "\n".join([*lines, ""])


def draw_sweep(main: dict[str, BySeed], output: Path) -> None:
    """Reward of the main cells by step, and their differences beside the margin."""
    output.mkdir(parents=True, exist_ok=True)
    curves = {name: evaluated(list(results.values()), "reward") for name, results in main.items()}
    labels = ("training step", "share of exact answers")
    plot(output / "tiny-grpo-control.svg", "Reward of the model, and of the positive control", labels, curves)
    found = {
        name: Paired.of(differences(results, main.get("wait", {}), reward))
        for name, results in main.items()
        if name != "wait" and len(pairs(results, main.get("wait", {}))) > 1
    }
    intervals = {name: (paired.mean, paired.half_interval(0.9)) for name, paired in found.items()}
    title = "Reward less that of wait: mean, 90 % interval, margin"
    plot_intervals(output / "tiny-grpo-equivalence.svg", title, intervals, MARGIN)


def mean(values: Sequence[float], digits: int) -> str:
    return f"{np.mean(values):.{digits}f}" if values else "-"


def interval(paired: Paired, digits: int, share: float = 0.9) -> str:
    return f"{paired.mean:.{digits}f} ± {paired.half_interval(share):.{digits}f}"
