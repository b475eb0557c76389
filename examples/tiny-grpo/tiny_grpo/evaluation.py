"""The data set of a run, and evaluations of its model on problems that are not trained, without a tail policy."""

from __future__ import annotations

from typing import Any

import numpy as np

from .addition import Problem, Task, decode, draw_problem, encode
from .decoder import Decoder, Text
from .model import Weights

#: Learning rate of the study, unless it is varied.
RATE = 3e-4
#: Problems of an evaluation within a run, and after its last step.
EVALUATED_PROBLEMS, FINAL_PROBLEMS = 256, 1_024
#: Problems of the evaluation are the same in all runs.
EVALUATION_SEED = 1_000_003
TASK = Task()


def data_set(seed: int, count: int) -> list[list[int]]:
    """Prompts of a seed: the same ones in the same order for each policy."""
    random = np.random.default_rng([seed, 1])
    return [encode(draw_problem(random).prompt) for _ in range(count)]


def evaluated_problems(count: int = EVALUATED_PROBLEMS) -> list[Problem]:
    random = np.random.default_rng(EVALUATION_SEED)
    return [draw_problem(random) for _ in range(count)]


def evaluate(weights: Weights, seed: int, count: int = EVALUATED_PROBLEMS, task: Task = TASK) -> dict[str, float]:
    """Means of the model's own responses.

    :returns: `exact`, the share of exact answers; `reward`, the same less the length penalty of the task; `length` in
        tokens; `truncated`, the share of responses that the budget has ended
    """
    asked = evaluated_problems(count)
    decoder = Decoder(weights, count, np.random.default_rng([seed, 2]))
    texts = [Text(str(index), encode(problem.prompt), task.budget) for index, problem in enumerate(asked)]
    decoder.add(texts)
    while decoder.running:
        decoder.step()
    pairs = list(zip(asked, texts, strict=True))
    return {
        "exact": float(np.mean([problem.reward(decode(text.tokens)) for problem, text in pairs])),
        "reward": float(np.mean([task.reward(problem, text.tokens) for problem, text in pairs])),
        "length": float(np.mean([len(text.tokens) for text in texts])),
        "truncated": float(np.mean([text.finish == "length" for text in texts])),
    }


def evaluation(weights: Weights, seed: int, step: int, steps: int, task: Task = TASK) -> dict[str, Any]:
    """The evaluation after a step: with more problems after the last one of `steps`."""
    return {"step": step, **evaluate(weights, seed, FINAL_PROBLEMS if step == steps else EVALUATED_PROBLEMS, task)}
