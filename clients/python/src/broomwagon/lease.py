"""`async with client.lease(...) as server`: one lease of one server."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

from ._held import StopCause

if TYPE_CHECKING:
    from ._leases import Leases
    from .protocol import Decision, EngineDialect, LeaseGrant, ReleaseOutcome


@dataclass(frozen=True)
class Server:
    """The server of a lease."""

    server_id: str
    #: Base URL of the engine.
    endpoint: str
    #: API of the engine.
    dialect: EngineDialect
    #: Epoch of the server.
    epoch: str
    #: Weight version of the server at the grant.
    weight_version: int
    #: Id of the lease.
    lease_id: str
    model: str | None = None
    #: Data-parallel rank of the session on this server.
    dp_rank: int | None = None
    #: How the server was chosen. If many acquires are sent at once, only with `explain`.
    decision: Decision | None = None

    @classmethod
    def of(cls, grant: LeaseGrant) -> Server:
        return cls(
            server_id=grant["serverId"],
            endpoint=grant["endpoint"],
            dialect=grant["dialect"],
            epoch=grant["epoch"],
            weight_version=grant["weightVersion"],
            lease_id=grant["leaseId"],
            model=grant.get("model"),
            dp_rank=grant.get("dpRank"),
            decision=grant.get("decision"),
        )


class LeaseStopped(Exception):
    """The lease was taken back while it was held. The call under the lease was cancelled, and the lease is released.

    `cause` says what to do:
    - `abort`: the request ends
    - `cut`: the weights change; acquire again and continue with the tokens
    - `move`: the session has moved to another server; acquire again and continue there with the tokens
    - `lease-lost`, `fenced`: the load-balancer gave the place to others; acquire again
    """

    def __init__(self, cause: StopCause) -> None:
        # When the exception goes to another process, pickle makes a copy from this argument.
        super().__init__(cause)
        self.cause = cause

    def __str__(self) -> str:
        return f"The lease was stopped: {self.cause}"


class Lease:
    """Acquires a lease at the beginning of `async with`, and releases the lease exactly once, at its end.

    An abort cancels the task that is within the block, and the block then raises LeaseStopped, as `asyncio.timeout`
    does with TimeoutError. End the call of the engine when it is cancelled, for example by closing its connection.
    """

    def __init__(self, leases: Leases, request: dict[str, Any], timeout: float) -> None:
        self._leases = leases
        self._request = request
        self._timeout = timeout
        self._acquire_id = ""
        self._lease_id = ""
        self._is_used = False
        self._task: asyncio.Task[Any] | None = None
        self._cancelling = 0
        self._cause: StopCause | None = None
        self._target: dict[str, Any] = {}
        #: Whether the lease may move to another server.
        self.is_movable = True
        #: Tokens generated under this lease, for the statistics of the server.
        self.tokens: int | None = None
        #: How the call ended, if the end of the block does not show it; `rejected` if the engine refused the request.
        self.outcome: ReleaseOutcome | None = None

    async def __aenter__(self) -> Server:
        if self._is_used:
            raise RuntimeError("A lease can be used once")
        self._is_used = True
        self._task = asyncio.current_task()
        assert self._task is not None
        self._cancelling = _cancelling(self._task)
        self._acquire_id, grant = await self._leases.acquire(self._request, self, self._timeout)
        server = Server.of(cast("LeaseGrant", grant))
        self._lease_id = server.lease_id
        return server

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        task, self._task = self._task, None
        is_stopped = False
        if self._cause is not None and task is not None:
            is_own = _uncancel(task) <= self._cancelling
            is_stopped = is_own and kind is not None and issubclass(kind, asyncio.CancelledError)
        try:
            if is_stopped and self._cause == "move":
                # The session must move before its next acquire.
                await self._leases.transfer(self._lease_id, self._target)
        finally:
            # The load-balancer returns the leases of an expired epoch.
            if self._cause != "fenced":
                outcome = self.outcome or _outcome_of(kind)
                self._leases.release(self._acquire_id, self._lease_id, outcome, self.tokens)
        if is_stopped and self._cause is not None:
            raise LeaseStopped(self._cause) from error

    @property
    def cause(self) -> StopCause | None:
        """Why the block was cancelled; None if the block was not cancelled."""
        return self._cause

    def stop(self, cause: StopCause) -> None:
        """Cancels the block, once."""
        if self._cause is None and self._task is not None:
            self._cause = cause
            self._task.cancel()
        elif self._cause == "move" and cause == "abort":
            # An abort ends the request. After a move alone, the caller would continue the request on another server.
            self._cause = cause

    def move(self, target: dict[str, Any]) -> None:
        """Cancels the block, and moves its session at its end."""
        if self.is_movable and self._cause is None:
            self._target = target
            self.stop("move")


def _outcome_of(kind: type[BaseException] | None) -> ReleaseOutcome:
    if kind is None:
        return "finished"
    return "failed" if issubclass(kind, Exception) else "aborted"


def _cancelling(task: asyncio.Task[Any]) -> int:
    return task.cancelling() if hasattr(task, "cancelling") else 0


def _uncancel(task: asyncio.Task[Any]) -> int:
    """Takes back the cancellation by `stop`. Python 3.10 does not count cancellations: a cancellation by another caller
    at the same moment is taken back too."""
    return task.uncancel() if hasattr(task, "uncancel") else 0
