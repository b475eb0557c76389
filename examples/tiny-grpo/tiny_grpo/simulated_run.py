"""One run of a variant, in one process and without services."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

import numpy as np

from .addition import Problem, decode
from .batches import Batch
from .evaluation import data_set, evaluation
from .learning import Adam
from .model import Weights
from .simulated_rounds import Rounds
from .variants import SORTED_STEPS, Variant


def prompts_of(variant: Variant, seed: int, steps: int, groups: int) -> list[list[int]]:
    """The data set of the seed; more of it if cut groups are never trained."""
    factor = variant.tail.over if variant.tail.name == "drop" else 1
    data = data_set(seed, round(steps * groups * factor))
    if not variant.is_sorted:
        return data
    width = SORTED_STEPS * groups
    blocks = [data[start : start + width] for start in range(0, len(data), width)]
    return [prompt for block in blocks for prompt in sorted(block, key=lambda one: Problem.parse(decode(one)).digits)]


def run_variant(
    variant: Variant, seed: int, start: Weights, steps: int, groups: int, samples: int, evaluate: int = 4
) -> dict[str, Any]:
    """Trains, and returns the same data as the result file of a run with services."""
    began, cpu = time.monotonic(), time.process_time()
    weights = {name: value.copy() for name, value in start.items()}
    adam = Adam(weights, variant.rate)
    rounds = Rounds(prompts_of(variant, seed, steps, groups), groups, samples, variant.task.budget, seed)
    #: Weights of the last versions, the oldest first.
    behind: deque[Weights] = deque(maxlen=variant.late + 1)
    records, evaluations = [], [evaluation(weights, seed, 0, steps, variant.task)]
    span = 0
    for step in range(steps):
        behind.append({name: value.copy() for name, value in weights.items()})
        version = step - (len(behind) - 1)
        groups_of_step, seconds = rounds.round(variant.tail_at(step), behind[0], version)
        batch, old = Batch(variant.task), 0
        for group in groups_of_step:
            batch.add(group.prompt, [(sample.tokens, sample.logprobs) for sample in group.samples])
            versions = np.concatenate([sample.versions for sample in group.samples])
            old += int((versions < step).sum())
            span = max(span, step - int(versions.min()))
        numbers = batch.learn(weights, adam, old, variant.has_ratios)
        records.append({"step": step + 1, **numbers, "simulated_seconds": seconds})
        if (step + 1) % evaluate == 0 or step + 1 == steps:
            evaluations.append(evaluation(weights, seed, step + 1, steps, variant.task))
    return {
        "steps": records,
        "evaluations": evaluations,
        "waste": rounds.waste,
        "version_span": span,
        "seconds": time.monotonic() - began,
        "cpu_seconds": time.process_time() - cpu,
    }
