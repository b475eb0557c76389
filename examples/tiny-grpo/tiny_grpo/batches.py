"""A step of GRPO on the groups of a round, for runs with and without services."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .addition import Problem, Task, decode
from .learning import Adam, Example, group_advantages, policy_step
from .model import Weights


@dataclass
class Batch:
    """The groups of one step."""

    task: Task

    def __post_init__(self) -> None:
        self.examples: list[Example] = []
        self.rewards: list[float] = []

    def add(self, prompt: list[int], responses: Sequence[tuple[list[int], list[float]]]) -> None:
        """Adds a group.

        :param responses: tokens of each sample, and their log probabilities when they were generated
        """
        problem = Problem.parse(decode(prompt))
        rewards = [self.task.reward(problem, tokens) for tokens, _ in responses]
        self.rewards.extend(rewards)
        for (tokens, logprobs), advantage in zip(responses, group_advantages(rewards), strict=True):
            assert len(logprobs) == len(tokens)
            self.examples.append(Example(prompt, tokens, logprobs, advantage))

    def learn(self, weights: Weights, adam: Adam, old_tokens: int, has_ratios: bool = True) -> dict[str, Any]:
        """One step of GRPO, in place.

        :param old_tokens: tokens of older weights, of all samples
        """
        numbers = asdict(policy_step(weights, adam, self.examples, has_ratios=has_ratios))
        lengths = [len(example.tokens) for example in self.examples]
        return {
            "reward": float(np.mean(self.rewards)),
            "length": float(np.mean(lengths)),
            "off_policy_share": old_tokens / sum(lengths),
            "clipped_share": numbers.pop("clipped"),
            "mean_ratio": numbers.pop("ratio"),
            "gradient_norm": numbers.pop("norm"),
            **numbers,
        }
