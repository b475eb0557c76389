"""One call of an engine of verl under one lease."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any

from ._holding import Holding
from .engine import abort_on_engine

if TYPE_CHECKING:
    from .._held import StopCause
    from ..lease import Lease

logger = logging.getLogger("broomwagon")

#: Seconds between aborts of a request that the engine has not ended.
ABORT_PAUSE = 1.0


class LeasedServerId(str):
    """The id of a server. The id carries its turn from `_acquire_server` to `_release_server`."""

    turn: Turn


class Turn:
    """One call of an engine under one lease."""

    def __init__(self, request_id: str, lease: Lease, resumes: bool) -> None:
        """:param resumes: verl continues an aborted response"""
        self.request_id = request_id
        self.server_id = LeasedServerId()
        self.handle: Any = None
        #: Id of the request on the engine: the id of the lease, or with `full_determinism` the id of the request.
        self.engine_request_id = ""
        self.ended = asyncio.Event()
        self._resumes = resumes
        self._lease = lease
        # A response that is not resumed would end with the move.
        lease.is_movable = resumes
        self._is_aborted = False
        self._aborting: asyncio.Task[None] | None = None
        self.holding = Holding(lease, self.stop)

    @property
    def is_aborted(self) -> bool:
        """Whether the request was aborted, so that it ends with its tokens so far."""
        return self._is_aborted or self._lease.cause == "abort"

    def stop(self, cause: StopCause) -> None:
        """Ends the request on the engine, which answers with the tokens so far."""
        if self.ended.is_set():
            return
        if cause == "abort":
            self._is_aborted = True
        elif not self._resumes:
            # verl would not continue the response, and nobody would notice that the response is cut.
            logger.warning("Request %s continues on %s without its lease: %s", self.request_id, self.server_id, cause)
            return
        if self._aborting is None:
            self._aborting = asyncio.ensure_future(self._abort())

    def end(self, *, failed: bool = False) -> None:
        """Ends the turn after the engine has answered, or after the call of its actor has failed. A failed call counts
        against the server."""
        self.ended.set()
        self.holding.release(failed=failed)

    async def _abort(self) -> None:
        """Repeats the abort until the engine has answered: the engine may not have started the request yet."""
        for tries in count():
            if self.handle is not None:
                try:
                    await abort_on_engine(self.handle, self.engine_request_id)
                except Exception as error:
                    if tries == 0:
                        logger.warning("Request %s on %s was not aborted: %r", self.request_id, self.server_id, error)
                    if isinstance(error, NotImplementedError):
                        return
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self.ended.wait(), ABORT_PAUSE)
                return
