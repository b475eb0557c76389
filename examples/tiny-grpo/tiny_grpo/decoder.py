"""Generates many texts at once: keys and values of each text are kept, and each step generates one token per text."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .addition import CONTEXT, END
from .arrays import to_host, xp
from .model import HEAD_WIDTH, Floats, Weights, forward, layers_of, normalize, softmax, width_of

SCALE = np.float32(HEAD_WIDTH**-0.5)


@dataclass
class Text:
    """One text that is generated.

    :param budget: most tokens to generate
    """

    id: str
    prompt: list[int]
    budget: int
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    #: `stop` or `length` at its end.
    finish: str | None = None


class Decoder:
    """Generates texts, which use the first rows of the caches without gaps: the last text moves to a freed row.

    :param slots: most texts at once
    """

    def __init__(self, weights: Weights, slots: int, random: np.random.Generator) -> None:
        self.weights = weights
        self._random = random
        self._slots = slots
        shape = (layers_of(weights), slots, width_of(weights) // HEAD_WIDTH, CONTEXT, HEAD_WIDTH)
        self._keys = xp.zeros(shape, np.float32)
        self._values = xp.zeros(shape, np.float32)
        # Lengths and next tokens are on the host, like the texts.
        self._lengths = np.zeros(slots, np.int64)
        self._next = np.zeros(slots, np.int64)
        self.running: list[Text] = []

    @property
    def free(self) -> int:
        """Number of texts that can be added."""
        return self._slots - len(self.running)

    def add(self, texts: list[Text]) -> None:
        """Computes the prompts of texts, at most `free`. The first token of each comes with the next step."""
        if not texts:
            return
        longest = max(len(text.prompt) for text in texts)
        tokens = np.zeros((len(texts), longest), np.int64)
        for row, text in enumerate(texts):
            tokens[row, : len(text.prompt)] = text.prompt
        _, trace = forward(self.weights, xp.asarray(tokens))
        first, end = len(self.running), len(self.running) + len(texts)
        for layer, block in enumerate(trace.blocks):
            self._keys[layer, first:end, :, :longest] = block.k
            self._values[layer, first:end, :, :longest] = block.v
        for row, text in enumerate(texts, first):
            # The last token of the prompt is computed again with the next step.
            self._lengths[row] = len(text.prompt) - 1
            self._next[row] = text.prompt[-1]
        self.running.extend(texts)

    def step(self) -> list[Text]:
        """Generates one token of each running text; returns the ended texts."""
        count = len(self.running)
        logits = self._logits(count)
        logits -= logits.max(axis=-1, keepdims=True)
        logprobs = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
        logprobs = to_host(logprobs)
        chosen = (logprobs + self._random.gumbel(size=logprobs.shape)).argmax(axis=-1)
        values = logprobs[np.arange(count), chosen].tolist()
        self._lengths[:count] += 1
        self._next[:count] = chosen
        for text, token, value in zip(self.running, chosen.tolist(), values, strict=True):
            text.tokens.append(token)
            text.logprobs.append(value)
            if token == END:
                text.finish = "stop"
            elif len(text.tokens) >= text.budget:
                text.finish = "length"
        ended = [text for text in self.running if text.finish]
        for text in ended:
            self.remove(text)
        return ended

    def remove(self, text: Text) -> None:
        """Takes a text out."""
        row, last = self.running.index(text), len(self.running) - 1
        if row != last:
            used = self._lengths[last]
            self._keys[:, row, :, :used] = self._keys[:, last, :, :used]
            self._values[:, row, :, :used] = self._values[:, last, :, :used]
            self._lengths[row], self._next[row] = self._lengths[last], self._next[last]
            self.running[row] = self.running[last]
        self.running.pop()

    def _logits(self, count: int) -> Floats:
        weights, rows, positions = self.weights, xp.arange(count), xp.asarray(self._lengths[:count])
        used = int(self._lengths[:count].max()) + 1
        is_hidden = xp.arange(used) > positions[:, None]
        x = weights["tokens"][xp.asarray(self._next[:count])] + weights["positions"][positions]
        for layer in range(layers_of(weights)):
            keys, values = self._keys[layer], self._values[layer]
            inside, _ = normalize(x, weights[f"{layer}.attention_norm"])
            q, k, v = (
                part.reshape(count, -1, HEAD_WIDTH) for part in np.split(inside @ weights[f"{layer}.qkv"], 3, axis=-1)
            )
            keys[rows, :, positions] = k
            values[rows, :, positions] = v
            scores = np.einsum("bhd,bhtd->bht", q, keys[:count, :, :used]) * SCALE
            scores[np.broadcast_to(is_hidden[:, None], scores.shape)] = -1e9
            mixed = np.einsum("bht,bhtd->bhd", softmax(scores), values[:count, :, :used])
            x = x + mixed.reshape(count, -1) @ weights[f"{layer}.out"]
            inside, _ = normalize(x, weights[f"{layer}.mlp_norm"])
            x = x + np.maximum(inside @ weights[f"{layer}.up"], 0) @ weights[f"{layer}.down"]
        last, _ = normalize(x, weights["norm"])
        return last @ weights["head"]
