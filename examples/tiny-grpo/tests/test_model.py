"""The numbers: gradients, generation, importance ratios."""

from __future__ import annotations

import numpy as np
import pytest

from tiny_grpo.addition import CONTEXT, MAX_TOKENS, STYLES, Problem, decode, draw_problem, encode
from tiny_grpo.decoder import Decoder, Text
from tiny_grpo.learning import Adam, Example, group_advantages, log_softmax, policy_step, supervised_start
from tiny_grpo.model import Weights, backward, forward, initial_weights


@pytest.fixture
def weights() -> Weights:
    return initial_weights(np.random.default_rng(0))


def logprobs_of(weights: Weights, prompt: list[int], tokens: list[int]) -> list[float]:
    """Log probabilities of a response's tokens by the training pass."""
    text = prompt + tokens
    logits, _ = forward(weights, np.array([text[:-1]]))
    rows = np.arange(len(prompt) - 1, len(text) - 1)
    values: list[float] = log_softmax(logits)[0, rows, tokens].tolist()
    return values


def test_the_model_has_a_hundred_thousand_parameters(weights: Weights) -> None:
    assert 100_000 <= sum(value.size for value in weights.values()) <= 1_000_000


def test_the_gradients_are_those_of_small_changes(weights: Weights) -> None:
    random = np.random.default_rng(1)
    exact = {name: value.astype(np.float64) for name, value in weights.items()}
    tokens = random.integers(0, 15, (2, 9))
    grad = random.standard_normal((2, 9, 15))
    _, trace = forward(exact, tokens)
    grads = backward(exact, trace, grad)
    assert grads.keys() == exact.keys()
    for name, value in exact.items():
        index = (3, 5) if name == "positions" else tuple(int(random.integers(0, size)) for size in value.shape)
        index = (int(tokens[0, 0]), 5) if name == "tokens" else index
        losses, before = [], value[index]
        for change in (1e-5, -1e-5):
            value[index] = before + change
            losses.append(float((forward(exact, tokens)[0] * grad).sum()))
        value[index] = before
        assert (losses[0] - losses[1]) / 2e-5 == pytest.approx(grads[name][index], rel=1e-3, abs=1e-6), name


def test_generated_log_probabilities_are_those_of_the_training_pass(weights: Weights) -> None:
    random = np.random.default_rng(2)
    decoder = Decoder(weights, 8, random)
    texts = [Text(str(index), encode(draw_problem(random).prompt), 5 + index) for index in range(6)]
    decoder.add(texts[:4])
    decoder.step()
    # Texts come and go while others run.
    decoder.remove(texts[1])
    decoder.add(texts[4:])
    while decoder.running:
        decoder.step()
    for text in texts:
        assert text.logprobs == pytest.approx(logprobs_of(weights, text.prompt, text.tokens), abs=1e-4)
    ended = [text for text in texts if text is not texts[1]]
    assert all(text.finish == "stop" or len(text.tokens) == text.budget for text in ended)
    assert len(texts[1].tokens) == 1


def test_a_text_that_is_resumed_continues_from_its_tokens(weights: Weights) -> None:
    prompt = encode(Problem(47, 85, 2).prompt)
    decoder = Decoder(weights, 1, np.random.default_rng(3))
    tokens, logprobs = list[int](), list[float]()
    for _ in range(4):
        text = Text("part", prompt + tokens, 3)
        decoder.add([text])
        while decoder.running:
            decoder.step()
        tokens += text.tokens
        logprobs += text.logprobs
        if text.finish == "stop":
            break
    assert logprobs == pytest.approx(logprobs_of(weights, prompt, tokens), abs=1e-4)


def test_every_style_of_a_response_is_rewarded_and_fits() -> None:
    random = np.random.default_rng(4)
    assert Problem(47, 85, 2).response("steps") == "75=12;48=13;=132$"
    for _ in range(200):
        problem = draw_problem(random)
        assert Problem.parse(problem.prompt) == problem
        assert len(encode(problem.prompt)) + MAX_TOKENS <= CONTEXT
        for style in STYLES:
            response = problem.response(style)
            assert len(response) <= MAX_TOKENS
            assert problem.reward(response) == 1
            assert problem.reward(response[:-1]) == 0
        wrong = Problem(problem.a + 1, problem.b, problem.digits).response("steps")
        assert problem.reward(wrong) == 0
    assert decode(encode("3+4=")) == "3+4="


def test_advantages_are_relative_to_the_group() -> None:
    assert group_advantages([1, 0, 0, 1]) == [0.5, -0.5, -0.5, 0.5]
    assert group_advantages([1, 1]) == [0, 0]


def example_of(weights: Weights, advantage: float, shift: float) -> Example:
    """A response whose behaviour gave each token a log probability that is lower by `shift`."""
    prompt, tokens = encode(Problem(47, 85, 2).prompt), encode("=132$")
    logprobs = [value - shift for value in logprobs_of(weights, prompt, tokens)]
    return Example(prompt, tokens, logprobs, advantage)


def test_a_step_makes_better_responses_likelier_and_worse_ones_less(weights: Weights) -> None:
    for advantage in (1.0, -1.0):
        changed = {name: value.copy() for name, value in weights.items()}
        example = example_of(weights, advantage, 0)
        numbers = policy_step(changed, Adam(changed, 1e-3), [example])
        assert numbers.ratio == pytest.approx(1, abs=1e-3)
        assert numbers.clipped == 0
        before = sum(example.logprobs)
        assert (sum(logprobs_of(changed, example.prompt, example.tokens)) - before) * advantage > 0


def test_importance_ratios_scale_the_gradient_up_to_their_bound(weights: Weights) -> None:
    def norm(shift: float) -> tuple[float, float]:
        changed = {name: value.copy() for name, value in weights.items()}
        numbers = policy_step(changed, Adam(changed, 0), [example_of(weights, 0.01, shift)])
        return numbers.norm, numbers.clipped

    on_policy = norm(0)[0]
    assert norm(float(np.log(1.5)))[0] == pytest.approx(1.5 * on_policy, rel=1e-2)
    assert norm(float(np.log(0.5)))[0] == pytest.approx(0.5 * on_policy, rel=1e-2)
    clipped, share = norm(float(np.log(5)))
    assert clipped == pytest.approx(2 * on_policy, rel=1e-2)
    assert share == 1


def test_a_supervised_start_learns() -> None:
    def loss(weights: Weights) -> float:
        problem = Problem(3, 4, 1)
        return -sum(logprobs_of(weights, encode(problem.prompt), encode(problem.response("answer"))))

    assert loss(supervised_start(0, 40)) < 0.7 * loss(supervised_start(0, 0))
