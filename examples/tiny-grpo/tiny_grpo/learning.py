"""Adam, the supervised start, and one step of GRPO."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from .addition import MAX_DIGITS, PAD, STYLES, VOCABULARY, draw_problem, encode
from .arrays import to_host, xp
from .model import SMALL, Floats, Size, Weights, backward, forward, initial_weights, width_of

#: Padded tokens of one forward pass, to bound memory.
TOKENS_PER_PASS = 4_096
#: Bound of the logarithms of importance ratios.
MAX_LOG_RATIO = 20


class Adam:
    """Adam with clipped gradients.

    :param rate: learning rate of the small model; a wider model has a proportionally lower rate
    """

    def __init__(self, weights: Weights, rate: float) -> None:
        self.rate = rate
        self._share = SMALL.width / width_of(weights)
        self.steps = 0
        self.first = {name: np.zeros_like(value) for name, value in weights.items()}
        self.second = {name: np.zeros_like(value) for name, value in weights.items()}

    def step(self, weights: Weights, grads: Weights, most_norm: float = 1.0) -> float:
        """Changes the weights in place. Returns the norm of the gradients before it was clipped."""
        self.steps += 1
        norm = float(np.sqrt(sum(float((grad * grad).sum()) for grad in grads.values())))
        scale = np.float32(min(1.0, most_norm / max(norm, 1e-12)))
        rate = np.float32(self.rate * self._share * np.sqrt(1 - 0.99**self.steps) / (1 - 0.9**self.steps))
        for name, grad in grads.items():
            grad = grad * scale
            self.first[name] += np.float32(0.1) * (grad - self.first[name])
            self.second[name] += np.float32(0.01) * (grad * grad - self.second[name])
            weights[name] -= rate * self.first[name] / (np.sqrt(self.second[name]) + np.float32(1e-8))
        return norm


@dataclass
class Example:
    """A response to train on.

    :param logprobs: log probabilities of its tokens by the generating weights
    :param advantage: its reward less the mean of its group
    :param weight: weight against a bias of the selection; default 1
    """

    prompt: list[int]
    tokens: list[int]
    logprobs: list[float]
    advantage: float
    weight: float = 1.0


def log_softmax(logits: Floats) -> Floats:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    result: Floats = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return result


def padded(texts: Sequence[list[int]]) -> NDArray[np.int64]:
    """Texts with one length, in the array library."""
    tokens = np.full((len(texts), max(len(text) for text in texts)), PAD, np.int64)
    for row, text in enumerate(texts):
        tokens[row, : len(text)] = text
    return cast(NDArray[np.int64], xp.asarray(tokens))


def supervised_start(
    seed: int,
    steps: int,
    batch: int = 64,
    rate: float = 2e-3,
    most_digits: int = MAX_DIGITS,
    trunk: Weights | None = None,
    size: Size = SMALL,
) -> Weights:
    """Weights that know both styles, and add with errors.

    :param trunk: weights that are trained on, in a copy; default: random ones
    """
    random = np.random.default_rng(seed)
    weights = initial_weights(random, size) if trunk is None else {name: value.copy() for name, value in trunk.items()}
    adam = Adam(weights, rate)
    for step in range(steps):
        problems = [draw_problem(random, most_digits) for _ in range(batch)]
        styles = random.choice(STYLES, batch)
        texts = [
            (encode(problem.prompt), encode(problem.response(str(style))))
            for problem, style in zip(problems, styles, strict=True)
        ]
        adam.rate = rate * min(1.0, (step + 1) / 50)
        grads = _sum(_supervised_gradients(weights, texts))
        adam.step(weights, grads)
    return weights


def _supervised_gradients(weights: Weights, texts: list[tuple[list[int], list[int]]]) -> Iterator[Weights]:
    total = sum(len(response) for _, response in texts)
    for rows in _passes([prompt + response for prompt, response in texts]):
        tokens = padded([texts[row][0] + texts[row][1] for row in rows])
        logits, trace = forward(weights, tokens[:, :-1])
        grad = np.exp(log_softmax(logits))
        grad -= xp.eye(VOCABULARY, dtype=np.float32)[tokens[:, 1:]]
        grad *= _is_response([(len(texts[row][0]), len(texts[row][1])) for row in rows], logits.shape[1])[:, :, None]
        yield backward(weights, trace, grad / np.float32(total))


def group_advantages(rewards: Sequence[float]) -> list[float]:
    """Rewards of one group, less their mean. Not divided by their deviation, which would favour groups that are almost
    all right or all wrong (Dr. GRPO)."""
    mean = float(np.mean(rewards))
    return [reward - mean for reward in rewards]


@dataclass
class StepNumbers:
    """Distances of the tokens of a step from the weights that it trains.

    :param clipped: share of the tokens whose ratio was clipped
    :param ratio: mean of the ratios
    :param norm: norm of the gradients before clipping
    :param kl: nats per token from the generating weights to the trained weights
    :param token_ess: effective / real number of tokens, if each counts by its ratio
    :param sample_ess: effective / real number of responses, if each counts by the product of its ratios
    """

    clipped: float
    ratio: float
    norm: float
    kl: float
    token_ess: float
    sample_ess: float


def policy_step(
    weights: Weights,
    adam: Adam,
    examples: Sequence[Example],
    least: float = 0.0,
    most: float = 2.0,
    has_ratios: bool = True,
) -> StepNumbers:
    """One step on a batch. Each token counts by its importance ratio between the present and the generating weights,
    truncated at `most`; the gradient goes through the logarithm only (truncated importance sampling).

    :param has_ratios: False: each token counts as if the weights now had generated it
    """
    total = sum(len(example.tokens) for example in examples)
    grads, of_tokens, of_samples = [], [], []
    texts = [example.prompt + example.tokens for example in examples]
    has_gradient = [example.advantage * example.weight != 0 for example in examples]
    for rows in _passes(texts, has_gradient):
        chosen = [examples[row] for row in rows]
        tokens = padded([texts[row] for row in rows])
        logits, trace = forward(weights, tokens[:, :-1])
        logprobs = log_softmax(logits)
        is_response = _is_response([(len(each.prompt), len(each.tokens)) for each in chosen], logits.shape[1])
        behaviour = np.zeros(is_response.shape, np.float32)
        for row, example in enumerate(chosen):
            start = len(example.prompt) - 1
            behaviour[row, start : start + len(example.tokens)] = example.logprobs
        one_hot = xp.eye(VOCABULARY, dtype=np.float32)[tokens[:, 1:]]
        log_ratio = np.minimum((logprobs * one_hot).sum(axis=-1) - xp.asarray(behaviour), MAX_LOG_RATIO) * is_response
        of_tokens.append(to_host(log_ratio[is_response > 0]))
        of_samples.append(to_host(log_ratio.sum(axis=1)))
        factor = np.array([example.advantage * example.weight for example in chosen], np.float32)[:, None]
        if not factor.any():
            continue
        ratio = np.clip(np.exp(log_ratio), least, most) if has_ratios else np.float32(1)
        grad = np.exp(logprobs) - one_hot
        grad *= (ratio * is_response * xp.asarray(factor))[:, :, None]
        grads.append(backward(weights, trace, grad / np.float32(total)))
    # A batch without any advantage changes nothing.
    norm = adam.step(weights, _sum(grads)) if grads else 0.0
    log_ratios = np.concatenate(of_tokens).astype(np.float64)
    ratios = np.exp(log_ratios)
    return StepNumbers(
        clipped=float((ratios > most).mean()),
        ratio=float(ratios.mean()),
        norm=norm,
        kl=float((ratios - 1 - log_ratios).mean()),
        token_ess=effective_share(log_ratios),
        sample_ess=effective_share(np.concatenate(of_samples)),
    )


def effective_share(log_ratios: Floats) -> float:
    """Effective sample size / sample size of weights that are given by their logarithms (Kish): 1 if all are equal,
    1 / count if one weight has everything."""
    weights = np.exp(np.asarray(log_ratios, np.float64) - np.max(log_ratios))
    return float(weights.sum() ** 2 / (weights * weights).sum() / len(weights))


def _is_response(lengths: list[tuple[int, int]], width: int) -> Floats:
    """1 where the next token belongs to the response.

    :param lengths: lengths of prompts and responses
    """
    mask = np.zeros((len(lengths), width), np.float32)
    for row, (prompt, response) in enumerate(lengths):
        mask[row, prompt - 1 : prompt - 1 + response] = 1
    return cast(Floats, xp.asarray(mask))


def _passes(texts: Sequence[list[int]], has_gradient: Sequence[bool] | None = None) -> Iterator[list[int]]:
    """Indices of texts of like length for each pass, apart for texts with and without a gradient."""
    rows: list[int] = []
    kinds = has_gradient or [True] * len(texts)
    for row in sorted(range(len(texts)), key=lambda row: (kinds[row], len(texts[row]))):
        is_full = (len(rows) + 1) * len(texts[row]) > TOKENS_PER_PASS
        if rows and (is_full or kinds[row] != kinds[rows[0]]):
            yield rows
            rows = []
        rows.append(row)
    if rows:
        yield rows


def _sum(grads: Iterator[Weights] | Sequence[Weights]) -> Weights:
    total: Weights = {}
    for part in grads:
        for name, value in part.items():
            total[name] = total[name] + value if name in total else value
    return total
