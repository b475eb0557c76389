"""Groups whose requests a step has cut, in one process of agent loops: see long_tail.py."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Any

#: The group whose samples the current task runs; None without long-tail rounds.
current_group: ContextVar[str | None] = ContextVar("broomwagon_group", default=None)


class CutGroups:
    """A request of a group that was cut asks the balancer whether its group may continue. Others do not ask."""

    def __init__(self, load_balancer: Any) -> None:
        self._load_balancer = load_balancer
        #: How often each was cut.
        self._cuts: dict[str, int] = {}
        #: One call for all requests of a group.
        self._waits: dict[str, asyncio.Task[None]] = {}

    def was_cut(self) -> None:
        """The current request has ended before its end."""
        if group := current_group.get():
            self._cuts[group] = self._cuts.get(group, 0) + 1

    def ended(self, group: str) -> None:
        """All samples of the group have ended."""
        self._cuts.pop(group, None)

    def cuts(self) -> int:
        """How often the group of the current request was cut."""
        return self._cuts.get(current_group.get() or "", 0)

    async def may_continue(self) -> None:
        """Returns when a step continues the group of the current request."""
        group = current_group.get()
        if group is None or group not in self._cuts:
            return
        if group not in self._waits:
            wait = self._waits[group] = asyncio.create_task(self._ask(group))
            wait.add_done_callback(lambda _: self._waits.pop(group))
        await asyncio.shield(self._waits[group])

    async def _ask(self, group: str) -> None:
        await self._load_balancer.wait_for_group.remote(group)
