"""The calls that load an attempt, save its tokens and report its end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any
from uuid import uuid4

from . import errors
from ._connection import Connection
from ._error import BroomwagonError
from ._payloads import Payloads
from ._session import EXPIRED_EPOCH, Session
from .lease import Lease

logger = logging.getLogger("broomwagon")

#: Seconds for which the report of an end is repeated.
END_DEADLINE = 120.0
#: Seconds after which a partial save is given up: the next save has more tokens.
SAVE_DEADLINE = 5.0
MAX_STORED_AGAIN = 3
MAX_MESSAGE_LENGTH = 1_000
#: Errors for a request that does not exist any more, for example because its round was closed.
GONE = (errors.RoundClosed, errors.RoundNotFound, errors.RequestNotFound, errors.JobNotFound)


class AttemptCalls:
    """Calls for attempts, shared by all attempts of a worker."""

    def __init__(self, lease: Callable[..., Lease], connection: Connection, session: Session) -> None:
        self.lease = lease
        self._connection = connection
        self._session = session
        self._payloads = Payloads(connection)

    async def load(self, claim: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """The prompt of a claim, and the payloads of its segments.

        :raises MissingSegment: the payload store has lost a segment; its tokens are generated again
        """
        claim["segments"] = await self._payloads.segments_of(claim)
        refs = [segment["ref"] for segment in claim["segments"]]
        prompt, *parts = await asyncio.gather(
            *(self._payloads.get(ref) for ref in (claim["promptRef"], *refs)), return_exceptions=True
        )
        for ref, part in zip(refs, parts, strict=True):
            if isinstance(part, errors.PayloadNotFound):
                raise MissingSegment(ref)
        for value in (prompt, *parts):
            if isinstance(value, BaseException):
                raise value
        return prompt, parts  # type: ignore[return-value]

    async def store(self, identity: dict[str, Any], job: str, tokens: int, payload: Any, deadline: float) -> str:
        """Stores the tokens of an attempt. The name of the payload is unique, because a Redis that has lost its last
        seconds may assign the same attempt again."""
        parts = (identity["workerEpoch"], identity["attempt"], str(tokens), uuid4().hex[:8])
        owner = {"job": job, "requestId": identity["requestId"]}
        return await self._payloads.put(owner, ".".join(parts), payload, deadline)

    async def save(self, body: dict[str, Any]) -> bool:
        """Reports that an attempt runs, with its tokens so far. False if the attempt must stop."""
        reply = await self._connection.call("request.save", body, deadline=SAVE_DEADLINE)
        return bool(reply["action"] == "continue")

    async def complete(self, body: dict[str, Any], store_again: Callable[[], Awaitable[Any]]) -> None:
        """Reports a finished sample. Tokens that the payload store has lost are stored again."""
        for tries in range(MAX_STORED_AGAIN + 1):
            try:
                await self._report(body, "request.complete")
                return
            except errors.PayloadNotFound:
                if tries == MAX_STORED_AGAIN:
                    await self._return(body)
                    return
                body = {**body, "segment": await store_again()}

    async def fail(self, body: dict[str, Any], reason: str, retryable: bool, message: str | None) -> None:
        """Reports an attempt that did not finish."""
        body = {**body, "reason": reason, "retryable": retryable}
        if message:
            body["message"] = message[:MAX_MESSAGE_LENGTH]
        await self._report(body, "request.fail")

    async def finish_session(self, session_id: str) -> None:
        """Forgets the server of a finished sample. If the call fails, the session expires."""
        with suppress(BroomwagonError):
            await self._connection.call("lb.finish-session", {"sessionId": session_id}, deadline=SAVE_DEADLINE)

    async def _report(self, body: dict[str, Any], operation: str) -> None:
        try:
            await self._connection.call(operation, body, deadline=END_DEADLINE)
        except (*EXPIRED_EPOCH, *GONE):
            # Another worker has the request, or the request does not exist any more.
            return
        except errors.PayloadNotFound:
            raise
        except BroomwagonError as error:
            logger.error("The end of %s was not accepted: %s", body["requestId"], error)
            if not error.retryable:
                # This attempt counts as a failure, because the next attempt may end in the same way.
                await self._return(body, "engine-error", f"The end of the attempt was refused: {error}")
            elif isinstance(error, errors.Internal):
                await self._return(body)

    async def _return(self, body: dict[str, Any], reason: str = "unclaimed", message: str = "") -> None:
        """Returns the attempt without its tokens: the request continues with its last partial save. If this call fails
        too, the next sync returns the attempt."""
        identity = {name: body[name] for name in ("requestId", "attempt", "workerId", "workerEpoch")}
        try:
            returned = {**identity, "reason": reason, "retryable": True}
            if message:
                returned["message"] = message[:MAX_MESSAGE_LENGTH]
            await self._connection.call("request.fail", returned, deadline=END_DEADLINE)
        except BroomwagonError as error:
            logger.error("%s was not returned: %s", body["requestId"], error)


class MissingSegment(Exception):
    """The payload store does not have the tokens of an earlier attempt."""

    def __init__(self, ref: str) -> None:
        super().__init__(f"The payload store does not have {ref}")
        self.ref = ref
