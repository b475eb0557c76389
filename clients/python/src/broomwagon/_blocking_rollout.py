"""The rounds of a job without asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._wait import Wait
from .results import Failure, Group
from .trainer import Rollout as AsyncRollout

if TYPE_CHECKING:
    from ._prompts import PromptLike
    from .protocol import TailPolicy, TailPolicyName


class Rollout:
    """The rounds of a job, as `broomwagon.Rollout`: `for group in rollout.round(prompts)`."""

    def __init__(self, rollout: AsyncRollout, wait: Wait) -> None:
        self._rollout = rollout
        self._wait = wait

    @property
    def step(self) -> int:
        """Number of trained steps."""
        return self._rollout.step

    @property
    def metrics(self) -> dict[str, float]:
        """Numbers of the last round, with the names that trainers plot."""
        return self._rollout.metrics

    @property
    def failed(self) -> list[Failure]:
        """Groups of the open step that have ended without training. Between two steps: groups of the last step."""
        return self._rollout.failed

    @property
    def yielded(self) -> list[Group]:
        """Groups of the open step that were yielded. The next `round` does not yield these groups again."""
        return self._rollout.yielded

    def round(
        self, prompts: Iterable[PromptLike], policy: TailPolicy | Mapping[str, Any] | TailPolicyName | None = None
    ) -> Iterator[Group]:
        """Rolls out one training step and yields its groups as they finish: as `broomwagon.Rollout.round`."""
        groups = self._rollout.round(prompts, policy)
        # After Ctrl-C, `close` waits until the cancelled call has ended.
        turn = asyncio.Lock()

        async def advance() -> Group | None:
            async with turn:
                return await anext(groups, None)

        async def close() -> None:
            async with turn:
                await groups.aclose()

        try:
            while (group := self._wait(advance())) is not None:
                yield group
                # Without this reference, the tokens are freed when the body of the loop drops the group.
                del group
        finally:
            self._wait(close())

    def reward(self, group: Group, rewards: Sequence[float]) -> bool:
        """Reports the rewards of a group of this step, and returns whether to train it: as
        `broomwagon.Rollout.reward`."""
        return self._wait(self._rollout.reward(group, rewards))

    def ledger(self) -> dict[str, float]:
        """Costs of the tail policy over all steps of the job, with the names of `metrics`."""
        return self._wait(self._rollout.ledger())

    def save(self, tag: str, *, keep: int | None = None) -> None:
        """Saves a job snapshot between two rounds: as `broomwagon.Rollout.save`."""
        self._wait(self._rollout.save(tag, keep=keep))

    def restore(self, tag: str) -> int:
        """Restores the job from a snapshot, as `broomwagon.Rollout.restore`. Returns the number of trained steps."""
        return self._wait(self._rollout.restore(tag))
