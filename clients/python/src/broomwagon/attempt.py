"""One attempt of a sample, as the function of an agent loop gets it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from . import errors
from ._arguments import InvalidArgument
from ._attempt_calls import GONE, SAVE_DEADLINE, AttemptCalls, MissingSegment
from ._attempt_end import AttemptEnd
from ._attempt_times import AttemptTimes, pause_after
from ._attempt_tokens import AttemptTokens
from ._error import BroomwagonError
from ._held import StopCause, WorkerEpoch
from ._made import Source
from ._session import EXPIRED_EPOCH
from .lease import LeaseStopped, Server

if TYPE_CHECKING:
    from .protocol import Prompt, SamplingParameters

logger = logging.getLogger("broomwagon")

FINISH_REASONS = ("stop", "length")
#: Errors of an acquire after which another acquire may succeed.
NO_GRANT = (*EXPIRED_EPOCH, errors.WaitTimeout, errors.Released, errors.Aborted, errors.ShuttingDown)


class Attempt:
    """One attempt of a sample, run by this worker. When the group is cut, the weights change, or the worker stops, the
    loop is cancelled at its next await. The next attempt gets the tokens that the loop has added."""

    def __init__(self, calls: AttemptCalls, claim: dict[str, Any], worker: WorkerEpoch) -> None:
        self._calls = calls
        self._claim = claim
        self._identity = {"requestId": claim["requestId"], "attempt": claim["attempt"], **worker.body}
        self._times = AttemptTimes(claim)
        self._loop_task: asyncio.Task[str | None] | None = None
        self._cause: StopCause | None = None
        #: Error of the acquire, if the attempt got no server.
        self._refusal: BroomwagonError | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._server: Server | None = None
        self._tokens = AttemptTokens(claim)
        self._end = AttemptEnd(calls, claim, self._identity, self._tokens, self._times)
        #: The prompt, as in `broomwagon.protocol.Prompt`.
        self.prompt: Prompt = {}

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
        """Number of tokens that the budget of the sample still allows. Tokens of `observe` count too."""
        return self._tokens.left

    @property
    def token_ids(self) -> list[int]:
        """Token ids of earlier attempts and of this attempt; empty if some tokens have no ids."""
        return self._tokens.token_ids

    @property
    def text(self) -> str:
        """Text of earlier attempts and of this attempt."""
        return self._tokens.text

    @property
    def state(self) -> dict[str, Any]:
        """State of the loop, of anything that JSON can have. The state is stored with the tokens, and the next attempt
        begins with this state. Set it together with the tokens that it knows: `add(..., state=...)`. If the loop is
        interrupted between an `add` and a later change of the state, the tokens are generated again."""
        return self._tokens.state.value

    @state.setter
    def state(self, value: dict[str, Any]) -> None:
        self._tokens.state.value = value

    @asynccontextmanager
    async def server(self, *, context_tokens: int | None = None, timeout: float = 600.0) -> AsyncIterator[Server]:
        """A lease of a server for one turn. All turns go to one server, while that server takes leases."""
        lease = self._calls.lease(
            self.request_id,
            session_id=self.request_id,
            # Two jobs of a pool may have groups with the same id.
            group_id=self.request_id.rpartition("/")[0],
            attempt=self._claim["attempt"],
            priority=self._claim.get("priority"),
            min_weight_version=self._claim["weightVersion"] or None,
            bound_server_id=self._claim.get("boundServerId"),
            bound_server_epoch=self._claim.get("boundServerEpoch"),
            # The sample has just failed on these servers.
            avoid_servers=self._claim.get("avoidServers"),
            context_tokens=context_tokens,
            timeout=timeout,
        )
        is_granted = False
        try:
            async with lease as server:
                is_granted = True
                if self._end.server is None:
                    await self._begin(server)
                self._server = server
                self._tokens.use(_source_of(server))
                before = self._tokens.generated_count
                try:
                    yield server
                finally:
                    lease.tokens = self._tokens.generated_count - before
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
        state: dict[str, Any] | None = None,
    ) -> None:
        """Adds the tokens that an engine has generated, within the block of its server. The tokens have the loss mask
        1, and the weight version of the server.

        :param logprobs: one value for each token; None for a token without a value from the engine
        :param token_count: number of tokens, for an engine that returns no token ids
        :param state: the new `Attempt.state`, which is copied: data that the loop needs to continue after these tokens
        :raises InvalidArgument: a token id or the count is no whole number, a log probability is not finite, or JSON
            cannot have the state; `field` is for example `logprobs.3`. Nothing is added
        """
        if self._server is None:
            raise RuntimeError("Tokens are added within `async with attempt.server()`")
        self._tokens.add(token_ids, text, logprobs, token_count, state, is_generated=True)

    def observe(
        self,
        token_ids: Sequence[int] = (),
        text: str = "",
        *,
        token_count: int | None = None,
        state: dict[str, Any] | None = None,
    ) -> None:
        """Adds the tokens that the model reads between its turns: outputs of tools, with the tokens of the chat
        template around them. These tokens belong to the sample, have the loss mask 0 and no log probabilities, and use
        up the token budget. No lease is needed, but tokens before the first turn of a sample belong into its prompt.

        `add` describes the parameters and errors.
        """
        self._tokens.add(token_ids, text, (), token_count, state, is_generated=False)

    async def save(self) -> None:
        """Saves the tokens and the state. If the worker dies, the next attempt continues from this save. Without new
        tokens nothing is saved: a new state is stored with the next tokens, or at the end of this attempt. A failed
        save is only logged, because the next save has more tokens."""

        async def report(segment: dict[str, Any]) -> None:
            await self._save({"segment": segment})

        try:
            await self._tokens.save(self._end.store(SAVE_DEADLINE), report)
        except BroomwagonError as error:
            self._save_failed(error)

    def stop(self, cause: StopCause) -> None:
        """Cancels the loop, once, because commands are repeated until the loop has ended. Only `shutdown` cancels the
        loop again, even while the loop handles a cancellation. The first cause stays, unless `expired` or `fenced`
        follows."""
        must_cancel = self._cause is None or cause == "shutdown"
        if self._cause is None or cause in ("expired", "fenced"):
            self._cause = cause
        if self._loop_task and must_cancel:
            self._loop_task.cancel()

    async def perform(self, loop: Callable[[Attempt], Awaitable[str | None]]) -> None:
        """Loads the sample, runs the loop, and reports how it ended."""
        try:
            if (left := self._times.left) is not None and left <= 0:
                return await self._end.fail("timeout", retryable=False)
            await self._load()
        except MissingSegment as missing:
            return await self._end.fail("payload", message=str(missing), missingRef=missing.ref)
        except BroomwagonError as error:
            return await self._end.fail("payload", retryable=error.retryable, message=str(error))
        if self.tokens_left == 0:
            return await self._end.complete("length")
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
            # The tokens or the state cannot be sent, for example because of numbers of numpy.
            logger.warning("The end of %s was not reported", self.request_id, exc_info=error)
            await self._end.fail_unsent(error)

    async def _report(self, ended: asyncio.Task[str | None]) -> None:
        if self._cause in ("expired", "fenced"):
            # Another worker may have the sample.
            return
        error = None if ended.cancelled() else ended.exception()
        if self._cause == "timeout":
            await self._end.fail("timeout", retryable=False)
        elif isinstance(error, LeaseStopped) or (self._cause and (error or ended.cancelled())):
            await self._end.fail("shutdown" if self._cause == "shutdown" else "aborted", message=self._cause)
        elif ended.cancelled():
            # The attempt counts as a failure: a loop that cancels itself must not run again without end.
            await self._end.fail_loop("The agent loop has cancelled itself")
        elif error is not None and error is self._refusal:
            # A wrong acquire would be refused again. If only no server takes the sample now, the sample has not failed.
            is_wrong = not (self._refusal.retryable or isinstance(error, NO_GRANT))
            await self._end.fail(
                "engine-rejected" if is_wrong else "no-server", retryable=not is_wrong, message=str(error)
            )
        elif error is not None:
            logger.warning("The agent loop failed on %s", self.request_id, exc_info=error)
            # The loop itself has caused an InvalidArgument. The engine may have caused any other error.
            is_own = isinstance(error, InvalidArgument)
            await self._end.fail("engine-error", message=repr(error), has_server=not is_own)
        elif self._tokens.earlier_count + self._tokens.made_count == 0:
            await self._end.fail_loop("The agent loop has added no tokens")
        elif (result := ended.result() or "stop") not in FINISH_REASONS:
            await self._end.fail_loop(f"The agent loop has returned {result!r}, not stop or length")
        else:
            await self._end.complete(result)

    async def _load(self) -> None:
        prompt, parts = await self._calls.load(self._claim)
        self.prompt = prompt  # type: ignore[assignment]
        self._tokens.load(parts)

    async def _begin(self, server: Server) -> None:
        """Notes the server of the sample: from now on the sample can be moved, and its generation time counts."""
        self._end.server = self._server = server
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


async def _run(loop: Callable[[Attempt], Awaitable[str | None]], attempt: Attempt) -> str | None:
    # A stop of the loop ends the pause, too.
    await asyncio.sleep(pause_after(attempt._claim.get("setbacks", 0)))
    return await loop(attempt)


def _source_of(server: Server) -> Source:
    return {"serverId": server.server_id, "serverEpoch": server.epoch, "weightVersion": server.weight_version}
