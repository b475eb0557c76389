"""A transformer decoder in numpy, with RMS norms before its parts and learned positions. `forward` and `backward` are
for whole texts, as in training; `Decoder` generates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .addition import CONTEXT, VOCABULARY
from .arrays import to_device, xp

#: float32, and float64 where a test compares gradients.
Floats = NDArray[Any]
Weights = dict[str, Floats]

HEAD_WIDTH = 16
EPSILON = np.float32(1e-5)
#: Score of positions that a token must not see.
HIDDEN_SCORE = np.float32(-1e9)


@dataclass(frozen=True)
class Size:
    """Layers and width of a model; its weights tell both (`layers_of`, `width_of`).

    :param width: a multiple of `HEAD_WIDTH`
    """

    layers: int
    width: int


#: Sizes with 104,320 parameters, and with 9.9 million for a GPU.
SIZES = {"small": Size(2, 64), "large": Size(8, 320)}
SMALL = SIZES["small"]


def layers_of(weights: Weights) -> int:
    return sum(name.endswith(".qkv") for name in weights)


def width_of(weights: Weights) -> int:
    return int(weights["head"].shape[0])


def initial_weights(random: np.random.Generator, size: Size = SMALL) -> Weights:
    """Random weights."""
    layers, width, hidden = size.layers, size.width, 4 * size.width

    def normal(*shape: int, scale: float) -> Floats:
        return (random.standard_normal(shape) * scale).astype(np.float32)

    weights = {
        "tokens": normal(VOCABULARY, width, scale=0.3),
        "positions": normal(CONTEXT, width, scale=0.3),
        "norm": np.ones(width, np.float32),
        "head": normal(width, VOCABULARY, scale=width**-0.5),
    }
    for layer in range(layers):
        weights |= {
            f"{layer}.attention_norm": np.ones(width, np.float32),
            f"{layer}.qkv": normal(width, 3 * width, scale=width**-0.5),
            f"{layer}.out": normal(width, width, scale=(width * layers) ** -0.5),
            f"{layer}.mlp_norm": np.ones(width, np.float32),
            f"{layer}.up": normal(width, hidden, scale=width**-0.5),
            f"{layer}.down": normal(hidden, width, scale=(hidden * layers) ** -0.5),
        }
    return to_device(weights)


def normalize(x: Floats, gain: Floats) -> tuple[Floats, Floats]:
    """RMS norm, and the inverse root mean square of each row."""
    inverse = 1 / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + EPSILON)
    return x * inverse * gain, inverse


def normalize_backward(grad: Floats, x: Floats, inverse: Floats, gain: Floats) -> tuple[Floats, Floats]:
    """Gradients of input and gain."""
    unit = x * inverse
    scaled = grad * gain
    of_input = inverse * (scaled - unit * np.mean(scaled * unit, axis=-1, keepdims=True))
    return of_input, (grad * unit).reshape(-1, x.shape[-1]).sum(axis=0)


def softmax(scores: Floats) -> Floats:
    """Softmax over the last axis, in place."""
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    return scores


def split_heads(x: Floats) -> Floats:
    batch, length, width = x.shape
    return x.reshape(batch, length, width // HEAD_WIDTH, HEAD_WIDTH).transpose(0, 2, 1, 3)


def merge_heads(x: Floats) -> Floats:
    batch, heads, length, _ = x.shape
    return x.transpose(0, 2, 1, 3).reshape(batch, length, heads * HEAD_WIDTH)


@dataclass
class Block:
    """Values of a block for its backward pass."""

    x: Floats
    attention_inverse: Floats
    attention_in: Floats
    q: Floats
    k: Floats
    v: Floats
    shares: Floats
    mixed: Floats
    middle: Floats
    mlp_inverse: Floats
    mlp_in: Floats
    hidden: Floats


@dataclass
class Trace:
    """Values of a forward pass for `backward`."""

    tokens: NDArray[np.int64]
    blocks: list[Block]
    last: Floats
    last_inverse: Floats
    last_in: Floats


def forward(weights: Weights, tokens: NDArray[np.int64]) -> tuple[Floats, Trace]:
    """Logits after each token.

    :param tokens: texts of one length, [batch, length], padded on the right, in the array library
    """
    length = tokens.shape[1]
    x = weights["tokens"][tokens] + weights["positions"][:length]
    mask = xp.triu(xp.full((length, length), HIDDEN_SCORE, np.float32), 1)
    blocks = []
    for layer in range(layers_of(weights)):
        name = f"{layer}."
        attention_in, attention_inverse = normalize(x, weights[name + "attention_norm"])
        q, k, v = (split_heads(part) for part in np.split(attention_in @ weights[name + "qkv"], 3, axis=-1))
        shares = softmax(q @ k.transpose(0, 1, 3, 2) * np.float32(HEAD_WIDTH**-0.5) + mask)
        mixed = merge_heads(shares @ v)
        middle = x + mixed @ weights[name + "out"]
        mlp_in, mlp_inverse = normalize(middle, weights[name + "mlp_norm"])
        hidden = np.maximum(mlp_in @ weights[name + "up"], 0)
        blocks.append(
            Block(x, attention_inverse, attention_in, q, k, v, shares, mixed, middle, mlp_inverse, mlp_in, hidden)
        )
        x = middle + hidden @ weights[name + "down"]
    last_in, last_inverse = normalize(x, weights["norm"])
    return last_in @ weights["head"], Trace(tokens, blocks, x, last_inverse, last_in)


def backward(weights: Weights, trace: Trace, grad: Floats) -> Weights:
    """Gradients of all weights.

    :param grad: gradient of the logits
    """
    grads: dict[str, Any] = {"head": _outer(trace.last_in, grad)}
    x, grads["norm"] = normalize_backward(grad @ weights["head"].T, trace.last, trace.last_inverse, weights["norm"])
    for layer in reversed(range(layers_of(weights))):
        block = trace.blocks[layer]
        name = f"{layer}."
        grads[name + "down"] = _outer(block.hidden, x)
        hidden = x @ weights[name + "down"].T
        hidden *= block.hidden > 0
        grads[name + "up"] = _outer(block.mlp_in, hidden)
        of_middle, grads[name + "mlp_norm"] = normalize_backward(
            hidden @ weights[name + "up"].T, block.middle, block.mlp_inverse, weights[name + "mlp_norm"]
        )
        x = x + of_middle
        grads[name + "out"] = _outer(block.mixed, x)
        mixed = split_heads(x @ weights[name + "out"].T)
        v = block.shares.transpose(0, 1, 3, 2) @ mixed
        shares = mixed @ block.v.transpose(0, 1, 3, 2)
        scores = block.shares * (shares - (shares * block.shares).sum(axis=-1, keepdims=True))
        scores *= np.float32(HEAD_WIDTH**-0.5)
        q, k = scores @ block.k, scores.transpose(0, 1, 3, 2) @ block.q
        qkv = np.concatenate([merge_heads(part) for part in (q, k, v)], axis=-1)
        grads[name + "qkv"] = _outer(block.attention_in, qkv)
        of_input, grads[name + "attention_norm"] = normalize_backward(
            qkv @ weights[name + "qkv"].T, block.x, block.attention_inverse, weights[name + "attention_norm"]
        )
        x = x + of_input
    grads["positions"] = np.zeros_like(weights["positions"])
    grads["positions"][: x.shape[1]] = x.sum(axis=0)
    one_hot = xp.eye(VOCABULARY, dtype=x.dtype)[trace.tokens.reshape(-1)]
    grads["tokens"] = one_hot.T @ x.reshape(-1, x.shape[-1])
    return grads


def _outer(inputs: Floats, grad: Floats) -> Floats:
    """Gradient of a matrix that multiplies each row of `inputs`."""
    return inputs.reshape(-1, inputs.shape[-1]).T @ grad.reshape(-1, grad.shape[-1])
