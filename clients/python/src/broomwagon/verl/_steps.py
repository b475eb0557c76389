"""State that the balancer keeps between the trainer and the processes of agent loops."""

from __future__ import annotations

import asyncio
from collections import deque

from ._failures import FailedSample

#: Maximum failed samples that are kept until a trainer takes them. verl's own trainers take none.
MAX_FAILED_KEPT = 4_096


class Steps:
    """Groups that wait for a later step, and samples that have failed."""

    def __init__(self) -> None:
        #: Groups of long-tail rounds that wait for a later step, and the number of changes of this list.
        self._held_groups: list[str] = []
        self._holds = 0
        self._groups_changed = asyncio.Condition()
        self._failed: deque[FailedSample] = deque(maxlen=MAX_FAILED_KEPT)

    async def hold_groups(self, groups: list[str]) -> None:
        """Sets the held groups. A cut request of a held group waits; requests of other groups do not wait."""
        async with self._groups_changed:
            self._held_groups = groups
            self._holds += 1
            self._groups_changed.notify_all()

    async def held_groups(self, after: int = -1) -> tuple[int, list[str]]:
        """The number of changes of the held groups, and the held groups. Waits until the number differs from
        `after`."""
        async with self._groups_changed:
            await self._groups_changed.wait_for(lambda: self._holds != after)
            return self._holds, self._held_groups

    async def report_failed(self, sample: FailedSample) -> None:
        """Keeps a failed sample that a process of agent loops reports."""
        self._failed.append(sample)

    async def take_failed(self) -> list[FailedSample]:
        """The samples that have failed since the last call, at most the newest 4,096 samples."""
        taken = list(self._failed)
        self._failed.clear()
        return taken
