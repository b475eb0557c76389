"""How an attempt ends: its tokens are stored, and the end is reported once."""

from __future__ import annotations

from typing import Any

from . import errors
from ._attempt_calls import END_DEADLINE, AttemptCalls
from ._attempt_times import AttemptTimes
from ._attempt_tokens import AttemptTokens, Store
from ._error import BroomwagonError
from .lease import Server


class AttemptEnd:
    """Reports the end of one attempt."""

    def __init__(
        self,
        calls: AttemptCalls,
        claim: dict[str, Any],
        identity: dict[str, Any],
        tokens: AttemptTokens,
        times: AttemptTimes,
    ) -> None:
        self._calls = calls
        self._claim = claim
        self._identity = identity
        self._tokens = tokens
        self._times = times
        #: The first server of the attempt, for the timeline of the round.
        self.server: Server | None = None

    def store(self, deadline: float) -> Store:
        """Returns a function that stores a payload of this attempt."""

        async def store(count: int, payload: dict[str, Any]) -> str:
            return await self._calls.store(self._identity, self._claim["job"], count, payload, deadline)

        return store

    async def complete(self, finish_reason: str) -> None:
        """Reports the sample as finished, with all tokens."""
        body = {**self._identity, "finishReason": finish_reason, **self._run()}

        async def store() -> dict[str, Any] | None:
            return await self._tokens.segment(self.store(END_DEADLINE), is_finished=True)

        try:
            if segment := await store():
                body["segment"] = segment
        except BroomwagonError as error:
            return await self._fail_unstored(error)
        await self._calls.complete(body, store)
        await self._calls.finish_session(str(self._claim["requestId"]))

    async def fail_loop(self, message: str) -> None:
        """Reports a failure of the agent loop itself. The report names no server, so that each attempt counts."""
        await self.fail("engine-error", message=message, has_server=False)

    async def fail(
        self,
        reason: str,
        *,
        retryable: bool = True,
        message: str | None = None,
        has_server: bool = True,
        **fields: Any,
    ) -> None:
        """Reports an attempt that did not finish. Keeps the tokens that the state of the loop knows.

        :param has_server: whether to name the server. Of several failures on one start of a server, only one counts
        """
        run = self._run() if has_server else {}
        body = {**self._identity, **self._times.generated(), **run, **fields}
        try:
            segment = await self._tokens.segment(self.store(END_DEADLINE), is_finished=False)
        except BroomwagonError as error:
            return await self._fail_unstored(error)
        if segment:
            body["segment"] = segment
        if self._tokens.made_count > (segment["tokenCount"] if segment else 0):
            body["lostTokens"] = self._tokens.made_count
        await self._calls.fail(body, reason, retryable, message)

    async def fail_unsent(self, error: Exception) -> None:
        """Fails the attempt because tokens or state that the loop has added cannot be sent."""
        await self._fail_without_tokens("engine-error", True, repr(error))

    async def _fail_unstored(self, error: BroomwagonError) -> None:
        reason = "payload-full" if isinstance(error, errors.PayloadStoreFull) else "payload"
        await self._fail_without_tokens(reason, error.retryable, str(error))

    async def _fail_without_tokens(self, reason: str, retryable: bool, message: str) -> None:
        body = {**self._identity, "lostTokens": self._tokens.made_count}
        await self._calls.fail(body, reason, retryable, message)

    def _run(self) -> dict[str, Any]:
        """Server and times of the attempt, for the timeline of the round."""
        if self.server is None:
            return {}
        server = {"serverId": self.server.server_id, "weightVersion": self.server.weight_version}
        return {"run": {**server, **self._times.run()}}
