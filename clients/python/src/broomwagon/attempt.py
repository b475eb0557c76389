"""One attempt of a sample, as the function of an agent loop gets it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from . import errors
from ._arguments import check_count, check_logprobs, check_token_ids
from ._attempt_calls import END_DEADLINE, GONE, SAVE_DEADLINE, AttemptCalls, MissingSegment
from ._attempt_times import AttemptTimes
from ._error import BroomwagonError
from ._held import StopCause, WorkerEpoch
from ._made import MadeTokens
from ._session import EXPIRED_EPOCH
from .lease import LeaseStopped, Server

if TYPE_CHECKING:
    from .protocol import Prompt, SamplingParameters

logger = logging.getLogger("broomwagon")

#: Field of `engineFields` of a segment that has the state of the agent loop.
STATE = "agent_state"
FINISH_REASONS = ("stop", "length")
#: Answers of an acquire that another one need not get.
NO_GRANT = (*EXPIRED_EPOCH, errors.WaitTimeout, errors.Released, errors.Aborted, errors.ShuttingDown)


class Attempt:
    """A sample that this worker runs. When its group is cut, the weights change, or the worker stops, the loop is
    cancelled at its next await; the tokens that it has added go with the sample to its next attempt."""

    def __init__(self, calls: AttemptCalls, claim: dict[str, Any], worker: WorkerEpoch) -> None:
        self._calls = calls
        self._claim = claim
        self._identity = {"requestId": claim["requestId"], "attempt": claim["attempt"], **worker.body}
        self._times = AttemptTimes(claim)
        self._loop_task: asyncio.Task[str | None] | None = None
        self._cause: StopCause | None = None
        #: Why it got no server.
        self._refusal: BroomwagonError | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._first_server: Server | None = None
        self._server: Server | None = None
        self._saved_tokens = 0
        self._made = MadeTokens()
        #: The prompt, as in `broomwagon.protocol.Prompt`.
        self.prompt: Prompt = {}
        #: Tokens of earlier attempts and of this one; empty if a part of them has no ids.
        self.token_ids: list[int] = []
        self._lacks_ids = False
        #: Text of earlier attempts and of this one.
        self.text = ""
        #: Anything that JSON can have. It is stored with the tokens, and the next attempt begins with it.
        self.state: dict[str, Any] = {}
        self._earlier_tokens: int = sum(segment["tokenCount"] for segment in claim["segments"])

    @property
    def key(self) -> tuple[str, str]:
        return (self._claim["requestId"], self._claim["attempt"])

    @property
    def request_id(self) -> str:
        return str(self._claim["requestId"])

    @property
    def group_id(self) -> str:
        return str(self._claim["groupId"])

    @property
    def sample_index(self) -> int:
        return int(self._claim["sampleIndex"])

    @property
    def sampling(self) -> SamplingParameters:
        sampling: SamplingParameters = self._claim["sampling"]
        return sampling

    @property
    def tokens_left(self) -> int:
        """What is left of the token budget of the sample."""
        return max(0, int(self._claim["maxTokens"]) - self._earlier_tokens - self._made.count)

    @asynccontextmanager
    async def server(self, *, context_tokens: int | None = None, timeout: float = 600.0) -> AsyncIterator[Server]:
        """A lease of a server for one turn; all turns go to one server while it takes leases."""
        lease = self._calls.client.lease(
            self.request_id,
            session_id=self.request_id,
            # Groups of two jobs may have one name, and share a pool.
            group_id=self.request_id.rpartition("/")[0],
            attempt=self._claim["attempt"],
            priority=self._claim.get("priority"),
            min_weight_version=self._claim["weightVersion"] or None,
            bound_server_id=self._claim.get("boundServerId"),
            bound_server_epoch=self._claim.get("boundServerEpoch"),
            context_tokens=context_tokens,
            timeout=timeout,
        )
        is_granted = False
        try:
            async with lease as server:
                is_granted = True
                if self._first_server is None:
                    await self._begin(server)
                self._server = server
                before = self._made.count
                try:
                    yield server
                finally:
                    lease.tokens = self._made.count - before
        except BroomwagonError as error:
            if not is_granted:
                self._refusal = error
            raise

    def add(
        self,
        token_ids: Sequence[int] = (),
        text: str = "",
        *,
        logprobs: Sequence[float | None] = (),
        token_count: int | None = None,
    ) -> None:
        """Adds what an engine has generated, within the block of its server.

        :param logprobs: of each token, None where the engine returned none
        :param token_count: for an engine that returns no token ids
        :raises InvalidArgument: a token id or the count is no whole number, or a log probability is not finite; `field`
            is for example `logprobs.3`. Nothing is added
        """
        if self._server is None:
            raise RuntimeError("Tokens are added within `async with attempt.server()`")
        ids = check_token_ids(token_ids)
        count = len(ids) if token_count is None else check_count("token_count", token_count, 0)
        self._made.add(ids, text, check_logprobs(logprobs), count, self._server.weight_version)
        self._add_ids(ids, len(ids) == count)
        self.text += text

    async def save(self) -> None:
        """Saves the tokens and the state: if the worker dies, the next attempt continues there. Without new tokens
        nothing is saved: a later state is kept with the next tokens, or with the end of this attempt. A save that fails
        is logged, because the next one has more tokens."""
        if self._made.count == self._saved_tokens:
            return
        count = self._made.count
        try:
            segment = await self._segment(SAVE_DEADLINE)
            await self._save({"segment": segment})
            self._saved_tokens = count
        except BroomwagonError as error:
            self._save_failed(error)

    def stop(self, cause: StopCause) -> None:
        """Cancels the loop, once: a command is repeated until the loop has ended, which may take time. Only `shutdown`
        cancels what the loop still does. The first cause stays, except that `expired` and `fenced` replace it."""
        must_cancel = self._cause is None or cause == "shutdown"
        if self._cause is None or cause in ("expired", "fenced"):
            self._cause = cause
        if self._loop_task and must_cancel:
            self._loop_task.cancel()

    async def perform(self, loop: Callable[[Attempt], Awaitable[str | None]]) -> None:
        """Loads the sample, runs the loop, and reports how it ended."""
        try:
            if (left := self._times.left) is not None and left <= 0:
                return await self._fail("timeout", retryable=False)
            await self._load()
        except MissingSegment as missing:
            return await self._fail("payload", message=str(missing), missingRef=missing.ref)
        except BroomwagonError as error:
            return await self._fail("payload", retryable=error.retryable, message=str(error))
        if self.tokens_left == 0:
            return await self._complete("length")
        self._loop_task = asyncio.ensure_future(_run(loop, self))
        if self._cause:
            self._loop_task.cancel()
        try:
            await asyncio.wait([self._loop_task])
        finally:
            self._loop_task.cancel()
            if self._timer:
                self._timer.cancel()
        try:
            await self._report(self._loop_task)
        except Exception as error:
            # What the loop has added cannot be sent, for example numbers of numpy.
            logger.warning("The end of %s was not reported", self.request_id, exc_info=error)
            body = {**self._identity, "lostTokens": self._made.count}
            await self._calls.fail(body, "engine-error", True, repr(error))

    async def _report(self, ended: asyncio.Task[str | None]) -> None:
        if self._cause in ("expired", "fenced"):
            # Another worker may have the sample.
            return
        error = None if ended.cancelled() else ended.exception()
        if self._cause == "timeout":
            await self._fail("timeout", retryable=False)
        elif isinstance(error, LeaseStopped) or (self._cause and (error or ended.cancelled())):
            await self._fail("shutdown" if self._cause == "shutdown" else "aborted", message=self._cause)
        elif ended.cancelled():
            # A loop that cancels itself must not run again without end.
            await self._fail("engine-error", message="The agent loop has cancelled itself")
        elif error is not None and error is self._refusal:
            # An acquire that is wrong is refused again. Without a server for it now, the sample has not failed.
            is_wrong = not (self._refusal.retryable or isinstance(error, NO_GRANT))
            await self._fail("engine-rejected" if is_wrong else "no-server", retryable=not is_wrong, message=str(error))
        elif error is not None:
            logger.warning("The agent loop failed on %s", self.request_id, exc_info=error)
            await self._fail("engine-error", message=repr(error))
        elif self._earlier_tokens + self._made.count == 0:
            await self._fail("engine-error", message="The agent loop has added no tokens")
        elif (result := ended.result() or "stop") not in FINISH_REASONS:
            await self._fail("engine-error", message=f"The agent loop has returned {result!r}, not stop or length")
        else:
            await self._complete(result)

    async def _load(self) -> None:
        prompt, parts = await self._calls.load(self._claim)
        self.prompt = prompt  # type: ignore[assignment]
        self._earlier_tokens = sum(segment["tokenCount"] for segment in self._claim["segments"])
        for part in parts:
            self._add_ids(part.get("tokenIds") or [], "tokenIds" in part)
            self.text += part.get("text", "")
            self.state = part.get("engineFields", {}).get(STATE, self.state)

    def _add_ids(self, token_ids: list[int], are_all: bool) -> None:
        self._lacks_ids = self._lacks_ids or not are_all
        if self._lacks_ids:
            self.token_ids.clear()
        else:
            self.token_ids.extend(token_ids)

    async def _begin(self, server: Server) -> None:
        """The sample runs on a server: from now on it can be moved, and its generation time counts."""
        self._first_server, self._server = server, server
        self._times.begin()
        if (left := self._times.left) is not None:
            self._timer = asyncio.get_running_loop().call_later(left, self.stop, "timeout")
        try:
            await self._save({})
        except BroomwagonError as error:
            self._save_failed(error)

    async def _save(self, fields: dict[str, Any]) -> None:
        assert self._server is not None
        body = {**self._identity, "serverId": self._server.server_id, **self._times.generated(), **fields}
        if not await self._calls.save(body):
            self.stop("cut")

    def _save_failed(self, error: BroomwagonError) -> None:
        if isinstance(error, (*EXPIRED_EPOCH, *GONE)):
            self.stop("expired")
        else:
            logger.warning("The partial save of %s failed: %s", self.request_id, error)

    async def _segment(self, deadline: float) -> dict[str, Any] | None:
        """Stores the tokens of this attempt; None without tokens."""
        if self._made.count == 0 or self._server is None:
            return None
        # What is added while it is stored belongs to the next one.
        count, server, versions = self._made.count, self._server, self._made.weight_versions()
        payload = self._made.payload({STATE: self.state})
        ref = await self._calls.store(self._identity, self._claim["job"], count, payload, deadline)
        return {
            "attempt": self._claim["attempt"],
            "serverId": server.server_id,
            "serverEpoch": server.epoch,
            "tokenCount": count,
            "ref": ref,
            **versions,
        }

    async def _complete(self, finish_reason: str) -> None:
        body = {**self._identity, "finishReason": finish_reason, **self._run_of()}

        async def store() -> dict[str, Any] | None:
            return await self._segment(END_DEADLINE)

        try:
            if segment := await store():
                body["segment"] = segment
        except BroomwagonError as error:
            return await self._fail_unstored(error)
        await self._calls.complete(body, store)
        await self._calls.finish_session(self.request_id)

    async def _fail(self, reason: str, *, retryable: bool = True, message: str | None = None, **fields: Any) -> None:
        body = {**self._identity, **self._times.generated(), **self._run_of(), **fields}
        try:
            if segment := await self._segment(END_DEADLINE):
                body["segment"] = segment
        except BroomwagonError as error:
            return await self._fail_unstored(error)
        await self._calls.fail(body, reason, retryable, message)

    async def _fail_unstored(self, error: BroomwagonError) -> None:
        reason = "payload-full" if isinstance(error, errors.PayloadStoreFull) else "payload"
        body = {**self._identity, "lostTokens": self._made.count}
        await self._calls.fail(body, reason, error.retryable, str(error))

    def _run_of(self) -> dict[str, Any]:
        """Server and times, for the timeline of the round."""
        if self._first_server is None:
            return {}
        server = {"serverId": self._first_server.server_id, "weightVersion": self._first_server.weight_version}
        return {"run": {**server, **self._times.run()}}


async def _run(loop: Callable[[Attempt], Awaitable[str | None]], attempt: Attempt) -> str | None:
    return await loop(attempt)
