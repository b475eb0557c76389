"""Rounds without services, in simulated time: the rules of libs/policies/src/tail in the process of the trainer, with
two decoders that have the clocks of two engines. For the many short runs of the study that vary one thing each;
`auto`, which needs a coordinator, has its own rule here (`AUTO`)."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil

import numpy as np

from .decoder import Decoder, Text
from .engine import PREFILL_TOKENS_PER_SECOND, SLOTS, STEP_BASE, STEP_REQUEST, STEP_TOKEN
from .model import Weights

ENGINES = 2


@dataclass(frozen=True)
class Tail:
    """A tail policy.

    :param name: `wait`, `resume`, `drip` and `regenerate` are policies of Broomwagon; `drop` is not: it never trains a
        cut group
    :param over: launched / needed groups
    :param sample_over: launched / needed samples of a new group
    :param span: most weight versions between a token and its training; None: no bound
    """

    name: str
    over: float = 1.0
    sample_over: float = 1.0
    span: int | None = None

    @property
    def keeps_tokens(self) -> bool:
        return self.name in ("wait", "resume", "drip")


#: The choices of `auto` with its default bounds on this data set, as the runs with services recorded them: two rounds
#: of `wait`, then `drip` with 1/8 more over-provision a round, up to 2.
AUTO = (
    *[Tail("wait", span=2)] * 2,
    *[Tail("drip", min(2.0, 1 + step / 8), span=2) for step in range(1, 9)],
)


@dataclass(eq=False)
class Sample:
    """One response, and the weight version of each of its tokens."""

    prompt: list[int]
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)

    def extend(self, text: Text, version: int) -> None:
        self.tokens += text.tokens
        self.logprobs += text.logprobs
        self.versions += [version] * len(text.tokens)


@dataclass(eq=False)
class Group:
    """:param count: samples that the group needs; more may run
    :param ended: ended samples, in the order of their ends
    """

    prompt: list[int]
    count: int
    samples: list[Sample] = field(default_factory=list)
    ended: list[Sample] = field(default_factory=list)
    is_pinned: bool = False

    @property
    def is_complete(self) -> bool:
        return len(self.ended) >= self.count

    @property
    def oldest(self) -> int | None:
        return min((version for sample in self.samples for version in sample.versions), default=None)


class Engine:
    """A decoder with the clock of an engine of the services."""

    def __init__(self, random: np.random.Generator) -> None:
        self.clock = 0.0
        self._random = random
        self._decoder: Decoder | None = None
        self._waiting: list[Text] = []

    @property
    def load(self) -> int:
        return len(self._waiting) + (len(self._decoder.running) if self._decoder else 0)

    def begin(self, weights: Weights) -> None:
        self.clock = 0.0
        if self._decoder is None:
            self._decoder = Decoder(weights, SLOTS, self._random)
        self._decoder.weights = weights

    def add(self, text: Text) -> None:
        self._waiting.append(text)

    def step(self) -> list[Text]:
        """Generates one token of each text; returns the ended texts."""
        assert self._decoder
        decoder, added = self._decoder, self._waiting[: self._decoder.free]
        del self._waiting[: len(added)]
        decoder.add(added)
        cached = sum(len(text.prompt) + len(text.tokens) for text in decoder.running)
        prefill = sum(len(text.prompt) for text in added) / PREFILL_TOKENS_PER_SECOND
        self.clock += prefill + STEP_BASE + STEP_REQUEST * len(decoder.running) + STEP_TOKEN * cached
        return decoder.step()

    def remove(self, text: Text) -> None:
        assert self._decoder
        if text in self._waiting:
            self._waiting.remove(text)
        else:
            self._decoder.remove(text)


class Rounds:
    """The rounds of one run.

    :param data: prompts, each trained once
    :param groups: groups of a step
    :param samples: samples of a group
    :param budget: most tokens of a response
    """

    def __init__(self, data: Sequence[list[int]], groups: int, samples: int, budget: int, seed: int) -> None:
        self._data = list(data)
        self._groups = groups
        self._count = samples
        self._budget = budget
        self._engines = [Engine(np.random.default_rng([seed, 3, index])) for index in range(ENGINES)]
        #: Groups that are cut, or complete without a place, in the order of their cuts.
        self.queue: list[Group] = []
        self.generated = 0
        self.wasted = 0

    def round(self, tail: Tail, weights: Weights, version: int) -> tuple[list[Group], float]:
        """One round: the groups to train, and its simulated seconds."""
        done = [group for group in self.queue if group.is_complete][: self._groups]
        self._take(done)
        needed = min(self._groups, len(done) + len(self.queue) + len(self._data)) - len(done)
        running = self._form(tail, needed, version)
        accepted, seconds = self._run(running, needed, weights, version, tail)
        for group in running:
            if group not in accepted:
                self._cut(group, tail)
        return [*done, *accepted], seconds

    @property
    def waste(self) -> float:
        """Share of the generated tokens that are thrown away."""
        return self.wasted / max(1, self.generated)

    def _take(self, groups: Sequence[Group]) -> None:
        self.queue = [group for group in self.queue if not any(group is one for one in groups)]

    def _form(self, tail: Tail, needed: int, version: int) -> list[Group]:
        """Groups that the round runs. A long round has groups of the queue only, if there are enough."""
        launched = min(ceil(tail.over * needed - 1e-9), needed + len(self._data))
        for group in self.queue:
            oldest = group.oldest
            group.is_pinned = tail.span is not None and oldest is not None and version + 1 - oldest > tail.span
        pinned = [group for group in self.queue if group.is_pinned][:needed]
        is_long = not self._data or (tail.name != "drip" and len(self.queue) >= self._groups)
        if is_long:
            launched, take = needed, needed
        else:
            take = max(len(pinned), launched - needed) if tail.name == "drip" else len(pinned)
        others = [group for group in self.queue if not group.is_pinned]
        taken = [*pinned, *others[: max(0, take - len(pinned))]]
        fresh = launched - len(taken)
        if fresh > len(self._data):
            more = fresh - len(self._data)
            taken += [group for group in others if group not in taken][:more]
            fresh = len(self._data)
        self._take(taken)
        new = [Group(prompt, self._count) for prompt in self._data[:fresh]]
        del self._data[:fresh]
        samples = self._count if is_long else ceil(tail.sample_over * self._count - 1e-9)
        for group in [*taken, *new]:
            while len(group.samples) < (samples if group in new else self._count):
                group.samples.append(Sample(group.prompt))
        return [*taken, *new]

    def _run(
        self, running: list[Group], needed: int, weights: Weights, version: int, tail: Tail
    ) -> tuple[list[Group], float]:
        places: dict[int, tuple[Engine, Text, Sample, Group]] = {}
        for engine in self._engines:
            engine.begin(weights)
        for group in running:
            for sample in group.samples:
                if sample not in group.ended:
                    text = Text(str(len(places)), sample.prompt + sample.tokens, self._budget - len(sample.tokens))
                    engine = min(self._engines, key=lambda engine: engine.load)
                    engine.add(text)
                    places[id(text)] = engine, text, sample, group
        reserved = sum(group.is_pinned for group in running)
        accepted: list[Group] = []
        seconds = 0.0
        clocks = [(0.0, index) for index in range(ENGINES)]
        while len(accepted) < needed and clocks:
            index = heapq.heappop(clocks)[1]
            engine = self._engines[index]
            if not engine.load:
                continue
            groups: list[Group] = []
            for _, text, sample, group in [places.pop(id(text)) for text in engine.step()]:
                self._store(sample, text, version)
                group.ended.append(sample)
                if group.is_complete and group not in groups:
                    groups.append(group)
            for group in groups:
                for surplus in [place for place in places.values() if place[3] is group]:
                    self._abort(places, surplus, version, is_kept=False)
                if group.is_pinned or needed - len(accepted) - reserved > 0:
                    reserved -= group.is_pinned
                    accepted.append(group)
                    seconds = engine.clock
            heapq.heappush(clocks, (engine.clock, index))
        for place in list(places.values()):
            self._abort(places, place, version, is_kept=tail.keeps_tokens)
        for group in accepted:
            # Tokens of surplus samples that were cut are counted when they are cut.
            self.wasted += sum(len(sample.tokens) for sample in group.ended[group.count :])
            group.samples = group.ended[: group.count]
        return accepted, seconds

    def _store(self, sample: Sample, text: Text, version: int) -> None:
        self.generated += len(text.tokens)
        sample.extend(text, version)

    def _abort(
        self,
        places: dict[int, tuple[Engine, Text, Sample, Group]],
        place: tuple[Engine, Text, Sample, Group],
        version: int,
        is_kept: bool,
    ) -> None:
        engine, text, sample, _ = place
        del places[id(text)]
        engine.remove(text)
        if is_kept:
            self._store(sample, text, version)
        else:
            self.generated += len(text.tokens)
            self.wasted += len(text.tokens)

    def _cut(self, group: Group, tail: Tail) -> None:
        if not tail.keeps_tokens:
            self.wasted += sum(len(sample.tokens) for sample in group.samples)
            group.samples, group.ended = [], []
        if tail.name != "drop":
            self.queue.append(group)


def auto_tail(step: int) -> Tail:
    """The policy that `auto` chooses for a step, from 0 on."""
    return AUTO[min(step, len(AUTO) - 1)]
