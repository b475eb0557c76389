"""Groups whose requests a step has cut, in one process of agent loops: see long_tail.py."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Any

#: The prompt of the sample that the current task runs; None if the agent loops name no prompt. The load-balancer may
#: place samples of one prompt on the server that has the prompt in its cache.
prompt_group: ContextVar[str | None] = ContextVar("broomwagon_prompt_group", default=None)
#: The group of the sample that the current task runs; None without long-tail rounds.
current_group: ContextVar[str | None] = ContextVar("broomwagon_group", default=None)


class CutGroups:
    """A request of a cut group asks the balancer whether the group may continue. Other requests do not ask."""

    def __init__(self, load_balancer: Any) -> None:
        self._load_balancer = load_balancer
        #: Number of cuts by group.
        self._cuts: dict[str, int] = {}
        #: One call for all requests of a group, and one for all requests that wait: an actor has room for 1,000 calls.
        self._calls: dict[str | int, asyncio.Task[tuple[int, list[str]]]] = {}

    def was_cut(self) -> None:
        """Notes that the current request was cut before its end."""
        if group := current_group.get():
            self._cuts[group] = self._cuts.get(group, 0) + 1

    def ended(self, group: str) -> None:
        """Forgets a group whose samples have all ended."""
        self._cuts.pop(group, None)

    def cuts(self) -> int:
        """Number of cuts of the group of the current request."""
        return self._cuts.get(current_group.get() or "", 0)

    async def may_continue(self) -> None:
        """Returns when a step continues the group of the current request."""
        group, number = current_group.get(), -1
        while group is not None and group in self._cuts:
            number, held = await self._ask(group, number)
            if group not in held:
                return

    async def _ask(self, group: str, after: int) -> tuple[int, list[str]]:
        # The first question about a group has a call of its own: the answer must not be older than the cut.
        key = group if after < 0 else after
        if key not in self._calls:
            call = self._calls[key] = asyncio.create_task(self._held_groups(after))
            call.add_done_callback(lambda _: self._calls.pop(key))
        return await asyncio.shield(self._calls[key])

    async def _held_groups(self, after: int) -> tuple[int, list[str]]:
        answer: tuple[int, list[str]] = await self._load_balancer.held_groups.remote(after)
        return answer
