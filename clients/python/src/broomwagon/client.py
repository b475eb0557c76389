"""The client: one connection to NATS, and the calls of a trainer, a worker or an agent loop."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

from ._arguments import (
    check_count,
    check_number,
    check_pool,
    check_rank,
    check_samples,
    check_texts,
    check_token,
    check_url,
    given_fields,
)
from ._connection import Connection
from ._creds import creds_options
from ._leases import Leases
from ._names import check_sampling
from ._session import Session, default_worker_id
from ._tls import tls_options
from .lease import Lease
from .trainer import Rollout
from .weights import Weights
from .worker import Worker

if TYPE_CHECKING:
    from ._failures import OnFailed
    from .protocol import AbortScope, Call, EngineFeature, SamplingParameters

logger = logging.getLogger("broomwagon")

NOT_CONNECTED = "The client is not connected: use `async with Client() as client`"
#: Seconds that `close` waits for releases, and the minimum `worker_ttl`.
RELEASES_DEADLINE, MIN_WORKER_TTL = 10.0, 0.5
DEFAULT_URL = "nats://127.0.0.1:4222"


class Client:
    """Use it as `async with Client() as client`, within one event loop.

    Settings that are not given are read from the environment: `NATS_URL`, `POOL`, `NATS_USER`, `NATS_PASSWORD`,
    `NATS_CREDS`, `NATS_INBOX_PREFIX`, and for tls:// `NATS_TLS_CA`, `NATS_TLS_CERT`, `NATS_TLS_KEY` and
    `NATS_TLS_SERVER_NAME`. The process registers as a worker when it acquires its first lease, and a heartbeat renews
    all its leases until the client is closed or the process dies.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        pool: str | None = None,
        worker_id: str | None = None,
        worker_ttl: float = 15.0,
        unclaimed_after: float = 10.0,
        connect_timeout: float = 10.0,
    ) -> None:
        """
        :param worker_id: id under which this process holds leases; default: made from host and process
        :param worker_ttl: seconds of silence after which the leases of this process are returned
        :param unclaimed_after: seconds after which a lease is returned if this process has not received its grant
        :raises InvalidArgument: a parameter is wrong; all methods raise this error
        """
        self._url = url or os.environ.get("NATS_URL", DEFAULT_URL)
        self._pool = pool or os.environ.get("POOL", "default")
        self._given_worker_id = worker_id or None
        self._worker_id = self._given_worker_id
        check_url(self._url)
        check_pool(self._pool)
        if worker_id:
            check_token("worker_id", worker_id)
        self._worker_ttl = check_number("worker_ttl", worker_ttl, MIN_WORKER_TTL)
        self._unclaimed_after = check_number("unclaimed_after", unclaimed_after)
        self._connect_timeout = check_number("connect_timeout", connect_timeout)
        self._connection: Connection | None = None
        self._session: Session | None = None
        self._leases: Leases | None = None
        self._weights: Weights | None = None

    async def __aenter__(self) -> Client:
        await self.connect()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def connect(self) -> None:
        """Connects to NATS.

        :raises Unavailable: no NATS server answers
        :raises InvalidArgument: a file that a setting names cannot be used; `field` is the setting
        :raises RuntimeError: the client is already connected
        """
        if self._connection is not None:
            raise RuntimeError("The client is connected")
        # The id is made here, because a client may be created before a fork, or be sent to other processes.
        worker_id = self._worker_id = self._given_worker_id or default_worker_id()
        self._connection = connection = await Connection.open(
            self._url,
            self._pool,
            user=os.environ.get("NATS_USER"),
            password=os.environ.get("NATS_PASSWORD"),
            files=tls_options(self._url) | creds_options(),
            inbox_prefix=os.environ.get("NATS_INBOX_PREFIX"),
            timeout=self._connect_timeout,
            worker_ttl=self._worker_ttl,
        )
        self._session = Session(connection, worker_id, self._worker_ttl, self._unclaimed_after)
        self._leases = Leases(connection, self._session)
        self._weights = Weights(connection)

    async def close(self) -> None:
        """Waits up to 10 seconds for the releases, deregisters the worker, and closes the connection. A cancellation
        ends only the wait. If the event loop of the client is closed, its leases are returned after `worker_ttl`.

        :raises RuntimeError: the client belongs to another event loop, which is not closed
        """
        connection = self._connection
        if connection is None:
            return
        if connection.has_closed_loop:
            logger.warning("The event loop was closed before the client; its leases are returned after worker_ttl")
            self._connection = None
            return
        connection.check_loop()
        self._connection = None
        try:
            if self._leases and self._session:
                try:
                    await asyncio.wait_for(self._leases.idle(), RELEASES_DEADLINE)
                except asyncio.TimeoutError:
                    logger.warning("Some releases are not answered; the end of the worker returns their leases")
                finally:
                    await self._session.close()
        finally:
            await connection.close()

    @property
    def pool(self) -> str:
        return self._pool

    @property
    def worker_id(self) -> str:
        """The id of the worker. Each connection has a different id, unless the caller gave an id.

        :raises RuntimeError: the client was never connected
        """
        if self._worker_id is None:
            raise RuntimeError(NOT_CONNECTED)
        return self._worker_id

    @property
    def call(self) -> Call:
        """Calls any operation of the protocol by its name, with bodies and replies as in `broomwagon.protocol`. Repeats
        the call while its error is retryable, for `deadline` seconds (60)."""
        return cast("Call", self._connected.call)

    def lease(
        self,
        request_id: str,
        *,
        session_id: str | None = None,
        parent_session_id: str | None = None,
        job: str | None = None,
        group_id: str | None = None,
        priority: int | None = None,
        context_tokens: int | None = None,
        weight_version: int | None = None,
        min_weight_version: int | None = None,
        max_weight_lag: int | None = None,
        exclude_servers: Sequence[str] | None = None,
        avoid_servers: Sequence[str] | None = None,
        labels: Mapping[str, str] | None = None,
        needs: Sequence[EngineFeature] | None = None,
        dp_rank: int | None = None,
        bound_server_id: str | None = None,
        bound_server_epoch: str | None = None,
        attempt: str | None = None,
        explain: bool | None = None,
        timeout: float = 600.0,
    ) -> Lease:
        """A lease of one server: `async with client.lease("request-1", session_id="chat-7") as server`.

        :param request_id: id for correlation and aborts; all turns of a trajectory may have the same id
        :param session_id: turns of one session stay on one server
        :param parent_session_id: session that has started this session as a subagent
        :param job: the session ends when this job is deleted
        :param timeout: seconds to wait for a server; the time of a pause of the pool does not count

        The other parameters are fields of `AcquireItem` in `broomwagon.protocol`.
        """
        timeout = check_number("timeout", timeout, may_be_infinite=True)
        check_texts("exclude_servers", exclude_servers)
        check_texts("avoid_servers", avoid_servers)
        check_texts("needs", needs)
        request = given_fields(
            requestId=request_id,
            sessionId=session_id,
            parentSessionId=parent_session_id,
            job=job,
            groupId=group_id,
            priority=priority,
            contextTokens=context_tokens,
            weightVersion=weight_version,
            minWeightVersion=min_weight_version,
            maxWeightLag=max_weight_lag,
            excludeServers=None if exclude_servers is None else list(exclude_servers),
            avoidServers=list(avoid_servers) if avoid_servers else None,
            labels=None if labels is None else dict(labels),
            needs=None if needs is None else list(needs),
            dpRank=dp_rank,
            boundServerId=bound_server_id,
            boundServerEpoch=bound_server_epoch,
            attempt=attempt,
            explain=explain,
        )
        assert self._connected and self._leases
        return Lease(self._leases, request, timeout)

    def rollout(
        self,
        job: str,
        *,
        groups: int = 64,
        samples: int = 8,
        max_tokens: int = 4096,
        sampling: SamplingParameters | Mapping[str, Any] | None = None,
        min_samples: int | None = None,
        timeout: float | None = None,
        abort_scope: AbortScope | None = None,
        orphan_after: float | None = None,
        priority: int | None = None,
        worker_kind: str | None = None,
        on_failed: OnFailed = "warn",
        progress: bool = False,
        any_rank: bool = False,
    ) -> Rollout:
        """The rounds of a job, for its trainer: `async for group in client.rollout("run-1").round(prompts)`.

        :param groups: groups (prompts) of one training step
        :param samples: samples of each group, at most 128
        :param max_tokens: token budget of each sample
        :param sampling: `broomwagon.SamplingParameters`, for example `{"temperature": 1.0}`; names may be in snake_case
        :param min_samples: minimum samples of a group that is trained if other samples failed or were aborted;
            default: all
        :param timeout: seconds of generation time of each sample
        :param abort_scope: scope of an abort or a timeout of one sample: its `group` (default), or only the `sample`
            while its group has `min_samples` other samples
        :param orphan_after: seconds of silence of this trainer after which its samples are not claimed (600)
        :param priority: priority of its rounds among acquires that wait for a server, 0 to 9; default 5
        :param worker_kind: kind of the workers that may run the samples, for example `agent` for workers of
            `client.worker(kind="agent")`. Default: built-in workers, which use no agent loop
        :param on_failed: reaction of `round` to a group that ended without training. `warn`: one warning for each step,
            and `Rollout.failed`; `yield`: the loop also yields the group, with `Group.failure` and without samples;
            `raise`: the loop raises GroupFailed
        :param progress: show a progress bar; needs the package tqdm
        :param any_rank: allows a process with a RANK above 0 in its environment
        :raises InvalidArgument: a parameter is wrong, or RANK is above 0, as in all processes of torchrun except the
            first. A job has one trainer: each process that makes a Rollout takes the job from the previous process
        """
        if not any_rank:
            check_rank(os.environ.get("RANK"))
        return Rollout(
            self._connected,
            job,
            weights=self.weights,
            groups=check_count("groups", groups),
            samples=check_samples(samples),
            max_tokens=check_count("max_tokens", max_tokens),
            sampling=check_sampling(sampling),
            min_samples=None if min_samples is None else check_count("min_samples", min_samples),
            timeout=None if timeout is None else check_number("timeout", timeout),
            abort_scope=abort_scope,
            orphan_after=None if orphan_after is None else check_number("orphan_after", orphan_after),
            priority=priority,
            worker_kind=worker_kind,
            on_failed=on_failed,
            progress=progress,
        )

    def worker(
        self, *, concurrency: int = 64, job: str | None = None, kind: str | None = None, drain: float = 5.0
    ) -> Worker:
        """Runs samples of rounds with an agent loop of yours.

        :param concurrency: samples that run at the same time
        :param job: claim only samples of this job; default: samples of all jobs
        :param kind: claim only samples of jobs with this kind (`worker_kind` of `rollout`). Default: samples of jobs
            without a kind, which built-in workers claim too
        :param drain: seconds that samples may continue when the worker stops
        """
        concurrency = check_count("concurrency", concurrency)
        drain = check_number("drain", drain)
        assert self._connected and self._session
        return Worker(
            self.lease,
            self._connected,
            self._session,
            concurrency=concurrency,
            job=job,
            kind=kind,
            drain=drain,
        )

    @property
    def weights(self) -> Weights:
        """The change of weights of the engines of the pool, for its trainer."""
        assert self._connected and self._weights
        return self._weights

    async def finish_session(self, session_id: str) -> None:
        """Forgets the server of a trajectory that has ended."""
        await self._connected.call("lb.finish-session", {"sessionId": session_id})

    async def settled(self) -> None:
        """Waits until the releases that have started are answered. The end of a lease does not wait for its release."""
        assert self._connected and self._leases
        await self._leases.settled()

    @property
    def _connected(self) -> Connection:
        if self._connection is None:
            raise RuntimeError(NOT_CONNECTED)
        return self._connection
