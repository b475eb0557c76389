"""Calls over NATS. Each call is repeated until its deadline."""

from __future__ import annotations

import asyncio
import logging
import random
from itertools import count
from typing import Any
from uuid import uuid4

from . import errors
from ._arguments import check_number, check_operation
from ._call_ids import CALL_IDS
from ._error import BroomwagonError
from ._link import Link

logger = logging.getLogger("broomwagon")

#: Seconds until the first repeat of a request without an answer. Each repeat doubles the time.
FIRST_ANSWER = 1.0
MAX_DOUBLINGS = 3
#: Seconds after which a call that does not succeed is logged.
WARN_AFTER = 5.0


def pause_before_repeat(tries: int, error: BroomwagonError) -> float:
    """Seconds: the pause that the service asked for, and a random time with a maximum that grows with each try."""
    return error.retry_after + random.random() * min(2.0, 0.025 * 2.0 ** min(tries, 10))


class Connection(Link):
    """The calls of one pool. A repeat of a call is safe, because all operations are idempotent."""

    async def call(self, operation: str, body: dict[str, Any], *, deadline: float = 60.0) -> Any:
        """Sends a request, and sends it again while its error is retryable and `deadline` (seconds) allows.

        :raises BroomwagonError: the last error
        :raises InvalidArgument: a number of the body is not finite, or the deadline is no number
        """
        check_operation(operation)
        deadline = check_number("deadline", deadline, may_be_infinite=True)
        call_id = CALL_IDS.get(operation)
        if call_id is None or call_id in body:
            return await self._repeat(operation, body, deadline)
        try:
            return await self._repeat(operation, {**body, call_id: str(uuid4())}, deadline)
        except errors.ValidationFailed as error:
            if error.field != call_id:
                raise
            # A service of the previous release does not know the field.
            return await self._repeat(operation, body, deadline)

    async def _repeat(self, operation: str, body: dict[str, Any], deadline: float) -> Any:
        loop = asyncio.get_running_loop()
        began = loop.time()
        wait = float(body.get("waitMs", 0)) / 1000
        is_logged = False
        last: BroomwagonError | None = None
        unanswered_since: float | None = None
        for tries in count():
            sent_at = loop.time()
            left = began + deadline - sent_at
            timeout = min(left, wait + FIRST_ANSWER * 2.0 ** min(tries, MAX_DOUBLINGS))
            try:
                return await self.request(operation, body, max(0.01, timeout), unanswered_since)
            except BroomwagonError as error:
                pause = 0.0 if isinstance(error, errors.Timeout) else pause_before_repeat(tries, error)
                now = loop.time()
                # The deadline has shortened this try, so the previous error tells more.
                if isinstance(error, errors.Timeout) and timeout < FIRST_ANSWER and last:
                    raise last from None
                last = error
                unanswered_since = sent_at if isinstance(error, errors.Timeout) else None
                if not error.retryable or now + pause >= began + deadline:
                    raise
                if not is_logged and now - began > WARN_AFTER + wait:
                    is_logged = True
                    logger.warning("%s of pool %s is repeated: %s", operation, self.pool, error)
            await asyncio.sleep(pause)
