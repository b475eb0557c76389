"""The numbers of docs/does-cutting-hurt-learning.md that are not in the tables of `report.py`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from .evaluation import evaluated_problems
from .plots import Result
from .report import _cell, beside_wait, interval_or_mean, markdown

#: Responses of so many tokens or more are long.
LONG_TOKENS = 32


def details(studied: dict[str, list[Result]]) -> str:
    """A table of each policy, as Markdown, and two lines. A range is the least and the most of all seeds."""
    rows = []
    for policy, results in studied.items():
        ratios = [step["mean_ratio"] for result in results for step in result["steps"]]
        ends = [own - other for own, other in beside_wait(results, studied.get("wait", []), _final_length)]
        rows.append(
            [
                f"`{policy}`",
                _cell([result["evaluations"][0]["length"] for result in results], 1),
                interval_or_mean(ends, 2),
                _range(ratios, 3),
                _range([ratio for result in results for ratio in long_acceptances(result)], 2),
            ]
        )
    heads = [
        "policy",
        "length before",
        "final length - `wait`",
        "mean ratio of a step",
        f"acceptance, {LONG_TOKENS} on",
    ]
    worked = np.mean([len(problem.response("steps")) for problem in evaluated_problems()])
    lines = [f"Responses to the evaluated problems that show all work have {worked:.1f} tokens."]
    lines += [
        f"`{policy}`, seed {result['options']['seed']}: {chosen}"
        for policy, results in studied.items()
        for result in results
        if (chosen := choices(result))
    ]
    return "\n\n".join([markdown(heads, rows), *lines])


def long_acceptances(result: Result) -> list[float]:
    """Trained / started share of each range of long responses, by the ledger at the end."""
    return [one["ratio"] for one in result["ledger"]["acceptance"] if one["fromTokens"] >= LONG_TOKENS]


def choices(result: Result) -> str:
    """Choices of `auto`, policies in the order of their first round; empty for the other policies."""
    chosen = [step["choice"] for step in result["steps"] if "choice" in step]
    counts = Counter(choice["policy"] for choice in chosen)
    rounds = ", ".join(f"{policy} {count}" for policy, count in counts.items())
    return f"rounds: {rounds}; over-provision {chosen[-1]['over_provision']} at the end" if chosen else ""


def _final_length(result: Result) -> float:
    return float(result["evaluations"][-1]["length"])


def _range(values: Sequence[float], digits: int) -> str:
    return f"{min(values):.{digits}f} to {max(values):.{digits}f}" if values else "-"
