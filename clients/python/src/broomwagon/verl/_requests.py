"""The requests that the balancer actor holds for the clients of verl, by server."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from ._callers import GivenServerId

if TYPE_CHECKING:
    from ._holding import Holding

logger = logging.getLogger("broomwagon")

#: Maximum successive checks without a renewal by the process of a request. Then the request is returned.
MAX_SILENT_CHECKS = 4


@dataclass
class HeldRequest:
    """One request of a client of verl."""

    request_id: str
    holding: Holding
    given: GivenServerId
    #: Start of the request, on `time.monotonic`.
    began_at: float
    silent_checks: int = 0


class HeldRequests:
    """Requests by number, in the order of their acquires."""

    def __init__(self, balancer: Any) -> None:
        """:param balancer: handle of the own actor; None outside of Ray"""
        self._balancer = balancer
        self._numbers = count()
        self._held: dict[str, dict[int, HeldRequest]] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def add(self, server_id: str, request_id: str, holding: Holding) -> str:
        """Adds a request. Returns the server id for the reply of `acquire_server`."""
        number = next(self._numbers)
        given = GivenServerId(server_id, number, self._balancer)
        self._held.setdefault(server_id, {})[number] = HeldRequest(request_id, holding, given, time.monotonic())
        return server_id if self._balancer is None else given

    def release(self, server_id: str, request_id: str | None, *, failed: bool = False) -> HeldRequest | None:
        """Ends the request of a returned server id. A plain server id ends the oldest request with `request_id`, or
        without `request_id` the oldest request of the server. None if there is no such request."""
        held = self._held.get(server_id, {})
        number = getattr(server_id, "number", None)
        if number is None:
            numbers = (each for each, request in held.items() if request_id in (None, request.request_id))
            number = next(numbers, None)
        request = None if number is None else held.pop(number, None)
        if request is not None:
            self.end(request.holding, failed=failed)
        return request

    def drop(self, server_id: str, *, failed: bool = False) -> None:
        """Ends all requests of a server."""
        for request in self._held.pop(server_id, {}).values():
            self.end(request.holding, failed=failed)

    def renew(self, numbers: Iterable[int]) -> None:
        """Notes that the process that holds these requests is alive."""
        named = set(numbers)
        for held in self._held.values():
            for number in named & held.keys():
                held[number].silent_checks = 0

    def check(self) -> None:
        """Ends requests without a renewal in more than `MAX_SILENT_CHECKS` checks. Checks count, not seconds: an actor
        that was stopped for a while makes one check, and then gets the waiting renewals."""
        for server_id, held in self._held.items():
            for number, request in list(held.items()):
                request.silent_checks += request.given.was_sent
                if request.silent_checks > MAX_SILENT_CHECKS:
                    del held[number]
                    self.end(request.holding, failed=True)
                    logger.warning(
                        "Request %s on %s is returned: the process that asked for it no longer renews it",
                        request.request_id,
                        server_id,
                    )

    def end(self, holding: Holding, *, failed: bool = False) -> None:
        """Releases a lease in the background."""
        ending = holding.release(failed=failed)
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    async def settled(self) -> None:
        """Returns when the releases that have started are on their way."""
        if self._ending:
            await asyncio.wait(self._ending)
