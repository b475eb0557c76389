"""Rounds without services follow the rules of the tail policies."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tiny_grpo.addition import MAX_TOKENS, Task, draw_problem, encode
from tiny_grpo.learning import Adam, Example, policy_step
from tiny_grpo.model import Weights, initial_weights
from tiny_grpo.simulated_rounds import Group, Rounds, Tail, auto_tail
from tiny_grpo.simulated_run import prompts_of, run_variant
from tiny_grpo.variants import CONTROL, MAIN, REFERENCES, VARIANTS

GROUPS, SAMPLES, STEPS = 4, 3, 8


def prompts(count: int) -> list[list[int]]:
    random = np.random.default_rng(7)
    return [encode(draw_problem(random).prompt) for _ in range(count)]


@pytest.fixture(scope="module")
def weights() -> Weights:
    """Weights of an untrained model, whose responses have all lengths."""
    return initial_weights(np.random.default_rng(0))


def all_rounds(
    tail: Tail, weights: Weights, count: int = GROUPS * STEPS
) -> tuple[Rounds, list[list[Group]], list[float]]:
    rounds = Rounds(prompts(count), GROUPS, SAMPLES, MAX_TOKENS, 0)
    found = [rounds.round(tail, weights, version) for version in range(STEPS)]
    return rounds, [groups for groups, _ in found], [seconds for _, seconds in found]


@pytest.mark.parametrize(
    "tail",
    [
        Tail("wait"),
        Tail("resume", 1.5),
        Tail("drip", 1.5),
        Tail("drip", 2.0, span=2),
        Tail("regenerate", 1.5),
        Tail("regenerate", 1.5, 2.0),
    ],
)
def test_each_prompt_is_trained_once_in_full_steps(tail: Tail, weights: Weights) -> None:
    rounds, steps, seconds = all_rounds(tail, weights)
    assert [len(groups) for groups in steps] == [GROUPS] * STEPS
    trained = Counter(tuple(group.prompt) for groups in steps for group in groups)
    assert trained == Counter(map(tuple, prompts(GROUPS * STEPS)))
    samples = [sample for groups in steps for group in groups for sample in group.samples]
    assert len(samples) == len({id(sample) for sample in samples}) == GROUPS * STEPS * SAMPLES
    for sample in samples:
        assert len(sample.tokens) == len(sample.logprobs) == len(sample.versions) <= MAX_TOKENS
        assert sample.versions == sorted(sample.versions)
    assert not rounds.queue
    assert all(time > 0 for time in seconds)
    total = sum(len(sample.tokens) for sample in samples)
    # No token is lost without being counted.
    assert rounds.generated == total + rounds.wasted
    assert (rounds.wasted > 0) == (tail.name == "regenerate")


def ages(steps: list[list[Group]]) -> list[int]:
    """Versions between each token and its training."""
    return [
        version - token
        for version, groups in enumerate(steps)
        for group in groups
        for sample in group.samples
        for token in sample.versions
    ]


def test_policies_that_keep_tokens_train_old_ones_and_the_others_none(weights: Weights) -> None:
    for tail in (Tail("wait"), Tail("regenerate", 1.5, 1.5)):
        assert set(ages(all_rounds(tail, weights)[1])) == {0}
    assert max(ages(all_rounds(Tail("resume", 1.5), weights)[1])) > 1


def test_a_bound_of_the_span_holds(weights: Weights) -> None:
    assert max(ages(all_rounds(Tail("resume", 1.25), weights)[1])) > 2
    for name in ("resume", "drip"):
        assert max(ages(all_rounds(Tail(name, 1.25, span=2), weights)[1])) == 2


def test_resume_trains_its_queue_in_a_step_of_its_own(weights: Weights) -> None:
    _, steps, _ = all_rounds(Tail("resume", 1.5), weights)
    # Each of the first two steps cuts 2 groups: the third step trains these 4 groups of the queue, and no others.
    oldest = [min(version for sample in group.samples for version in sample.versions) for group in steps[2]]
    assert max(oldest) < 2
    assert all(version == step for step in (0, 1) for group in steps[step] for version in [group.oldest])


def test_dropped_tails_are_never_trained(weights: Weights) -> None:
    rounds, steps, _ = all_rounds(Tail("drop", 2.0), weights, 2 * GROUPS * STEPS)
    assert not rounds.queue
    assert sum(len(groups) for groups in steps) == GROUPS * STEPS
    _, waiting, _ = all_rounds(Tail("wait"), weights)

    def mean(steps: list[list[Group]]) -> float:
        return float(np.mean([len(sample.tokens) for groups in steps for group in groups for sample in group.samples]))

    assert mean(steps) < 0.8 * mean(waiting)


def test_auto_begins_with_wait_and_goes_to_its_bound() -> None:
    assert [auto_tail(step).name for step in range(4)] == ["wait", "wait", "drip", "drip"]
    assert [auto_tail(step).over for step in (2, 3, 9, 23)] == [1.125, 1.25, 2.0, 2.0]


def test_variants_are_compared_with_one_that_is_there() -> None:
    assert set(REFERENCES) | set(REFERENCES.values()) <= set(VARIANTS)


def test_sorted_steps_have_the_same_prompts() -> None:
    mixed, ordered = (prompts_of(VARIANTS[name], 5, 8, 4) for name in ("wait", "wait-sorted"))
    assert mixed != ordered
    assert Counter(map(tuple, mixed)) == Counter(map(tuple, ordered))


def test_late_tokens_are_late_and_their_distance_is_recorded(weights: Weights) -> None:
    found = {name: run_variant(VARIANTS[name], 0, weights, 3, 2, 4, evaluate=3) for name in ("wait", "late", CONTROL)}
    assert [step["off_policy_share"] for step in found["wait"]["steps"]] == [0, 0, 0]
    assert all(step["token_ess"] == pytest.approx(1) for step in found["wait"]["steps"])
    for name in ("late", CONTROL):
        assert [step["off_policy_share"] for step in found[name]["steps"]] == [0, 1, 1]
        assert found[name]["version_span"] == 2
    assert found[CONTROL]["waste"] > 0 == found["late"]["waste"]
    assert [one["step"] for one in found["wait"]["evaluations"]] == [0, 3]
    assert not MAIN[CONTROL].has_ratios


def test_kl_and_effective_sizes_are_those_of_the_ratios(weights: Weights) -> None:
    """Two responses of one token: one has the log ratio 0, the other log 2."""
    prompt = prompts(1)[0]
    changed = {name: value.copy() for name, value in weights.items()}
    probe = Example(prompt, [3], [0.0], 0.0)
    at_zero = policy_step(changed, Adam(changed, 0), [probe]).ratio
    examples = [Example(prompt, [3], [float(np.log(at_zero / ratio))], 1.0) for ratio in (1, 2)]
    numbers = policy_step(changed, Adam(changed, 0), examples)
    assert numbers.ratio == pytest.approx(1.5, rel=1e-4)
    assert numbers.kl == pytest.approx((2 - 1 - np.log(2)) / 2, rel=1e-3)
    assert numbers.token_ess == pytest.approx(9 / 5 / 2, rel=1e-4)
    assert numbers.sample_ess == pytest.approx(9 / 5 / 2, rel=1e-4)


def test_a_length_penalty_takes_from_the_reward() -> None:
    problem = draw_problem(np.random.default_rng(0))
    answer = encode(problem.response("answer"))
    assert Task().reward(problem, answer) == 1
    assert Task(penalty=0.2).reward(problem, answer) == pytest.approx(1 - 0.2 * len(answer) / MAX_TOKENS)
