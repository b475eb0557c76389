"""Clients of verl that take leases of the pool themselves: one request over NATS instead of a call to a Ray actor."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from ray.exceptions import RayActorError, RayError
from verl.workers.rollout.llm_server import FullyAsyncLLMServerClient, LLMServerClient

from .. import errors
from ..client import Client
from ._callers import has_call_failed
from ._failures import FailedSample
from ._groups import CutGroups, prompt_group
from ._opening import Opening
from ._servers import labels_of, pool_id, verl_id
from ._settings import check_bound
from ._turn import LeasedServerId, Turn
from .balancer import NO_SERVERS, REMOVAL_PAUSE

if TYPE_CHECKING:
    from ..lease import Server

#: `stop_reason` of a response that was aborted for good. verl resumes after "abort" and "aborted" only.
ABORTED_FOR_GOOD = "cancelled"
RESUMABLE = ("abort", "aborted")
logger = logging.getLogger("broomwagon")

#: Maximum tries of one call, if server actors die.
MAX_TRIES = 4
#: Seconds that `abort` waits for the end of the turns.
ABORT_DEADLINE = 10.0


class _Call:
    """One call of `generate`, with its turn after a lease is granted."""

    turn: Turn | None = None


_call: ContextVar[_Call | None] = ContextVar("broomwagon_call", default=None)


class _Process:
    """State of a client in one process; nothing of it travels to other processes."""

    def __init__(self, load_balancer: Any) -> None:
        self._load_balancer = load_balancer
        self.turns: dict[str, set[Turn]] = {}
        self.groups = CutGroups(load_balancer)
        self.balancer_id = ""
        self.timeout = 0.0
        #: Whether the pool has servers of others. If not, an acquire needs no labels and costs the load-balancer less.
        self.is_shared = False
        #: Epoch and handle of each server, by its id.
        self._handles: dict[str, tuple[str, Any]] = {}
        self._opening = Opening(self._open)

    async def client(self) -> Client:
        return await self._opening.client()

    async def handle_of(self, server_id: str, server: Server) -> Any:
        """The actor of this start of the server; None if the balancer has removed it."""
        epoch, handle = self._handles.get(server_id, ("", None))
        if epoch != server.epoch:
            handle = (await self._load_balancer.get_handles.remote()).get(server_id)
            if handle is not None:
                self._handles[server_id] = (server.epoch, handle)
        return handle

    async def close(self) -> None:
        if self._opening.is_begun:
            await (await self._opening.client()).close()

    async def _open(self) -> Client:
        if not hasattr(self._load_balancer, "get_route"):
            raise RuntimeError(
                "verl runs its own balancer, not Broomwagon's: set actor_rollout_ref.rollout.router_config_path, "
                "or BROOMWAGON_VERL=balancer"
            )
        route = await self._load_balancer.get_route.remote()
        self.balancer_id = route["balancer"]
        self.timeout = route["timeout"]
        self.is_shared = route["is_shared"]
        client = Client(**route["client"])
        await client.connect()
        return client


class LeasedClient(LLMServerClient):
    """Replaces verl's LLMServerClient. `load_balancer_handle` is a `Balancer`, which has the handles of the engines.
    The client is sent to the processes of agent loops, so it connects with its first request."""

    def __init__(self, config: Any, load_balancer_handle: Any = None, **options: Any) -> None:
        super().__init__(config=config, load_balancer_handle=load_balancer_handle, **options)
        self._process = _Process(load_balancer_handle)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_process"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._process = _Process(self._load_balancer)

    async def abort(self, request_id: str) -> int:
        """Ends the running turns of a request in this process, for good: `generate` returns its tokens with the
        `stop_reason` "cancelled". Other requests and the cache of the engine stay. Waits up to 10 s for the end of the
        turns, and returns the number of turns."""
        turns = list(self._process.turns.get(request_id, ()))
        for turn in turns:
            turn.stop("abort")
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.gather(*(turn.ended.wait() for turn in turns)), ABORT_DEADLINE)
        return len(turns)

    async def close(self) -> None:
        """Ends the connection of this process and returns its leases. The next request connects again."""
        process, self._process = self._process, _Process(self._load_balancer)
        await process.close()

    async def generate(self, request_id: str, **arguments: Any) -> Any:
        """Generates as verl's method does, but holds the lease until the engine has ended the request, also after a
        cancellation. If the actor of the server dies, the call begins again on another server.

        :raises RayActorError: four servers have died, or the actor cannot be reached but is not known to be dead
        """
        for tries in range(1, MAX_TRIES + 1):
            call = _Call()
            try:
                return await self._generate(call, request_id, arguments)
            except RayActorError as error:
                dead = None if call.turn is None or call.turn.is_aborted else str(call.turn.server_id)
                if dead is None or tries == MAX_TRIES or not await self._load_balancer.is_dead.remote(dead):
                    raise
                logger.warning("Request %s begins again, because its server %s has died: %s", request_id, dead, error)
        raise AssertionError("unreachable")

    async def _generate(self, call: _Call, request_id: str, arguments: dict[str, Any]) -> Any:
        previous = _call.set(call)
        try:
            running = asyncio.ensure_future(super().generate(request_id, **arguments))
        finally:
            _call.reset(previous)
        try:
            output = await asyncio.shield(running)
        except asyncio.CancelledError:
            # Ray continues the call of the engine after the waiting task is cancelled.
            if call.turn is None:
                running.cancel()
            else:
                self._on_cancel(request_id)
                call.turn.stop("abort")
            raise
        if call.turn is not None and output.stop_reason in RESUMABLE:
            if call.turn.is_aborted:
                output.stop_reason = ABORTED_FOR_GOOD
            else:
                self.groups.was_cut()
        return output

    def _on_dispatch(self, request_id: str, inner_request_id: str, server: Any) -> None:
        """Hook for subclasses before each call of an engine. The hooks have the names of verl's pull request 6865.

        :param inner_request_id: the id of the request on the engine
        :param server: the handle of its actor
        """

    def _on_complete(self, request_id: str) -> None:
        """Hook for subclasses after an engine has answered a call, or the call has failed."""

    def _on_cancel(self, request_id: str) -> None:
        """Hook for subclasses after the cancellation of a call that an engine runs. The call is aborted on the engine,
        and `_on_complete` follows when the engine has ended it."""

    async def report_failed(self, sample: FailedSample) -> None:
        """Reports to the trainer that the agent loop of a sample has failed. Never raises: verl reports it too."""
        if hasattr(self._load_balancer, "report_failed"):
            try:
                await self._load_balancer.report_failed.remote(sample)
            except RayError as error:
                logger.warning("The failure of %s was not reported: %s", sample, error)

    @property
    def groups(self) -> CutGroups:
        return self._process.groups

    async def _acquire_server(self, request_id: str, **extra: Any) -> tuple[str, Any]:
        """
        :raises RuntimeError: "No available servers in load balancer"
        """
        process = self._process
        client = await process.client()
        prompt_ids = extra.get("prompt_ids")
        is_fixed = getattr(self.config.actor_rollout_ref.rollout, "full_determinism", False)
        group = prompt_group.get()
        while True:
            await process.groups.may_continue()
            cuts = process.groups.cuts()
            bound = await self._load_balancer.bound_server.remote(request_id) if is_fixed else None
            lease = client.lease(
                request_id,
                session_id=pool_id(request_id, process.balancer_id),
                group_id=None if group is None else pool_id(group, process.balancer_id),
                bound_server_id=None if bound is None else pool_id(bound, process.balancer_id),
                labels=labels_of(process.balancer_id) if process.is_shared else None,
                context_tokens=None if prompt_ids is None else len(prompt_ids),
                timeout=process.timeout,
            )
            turn = Turn(request_id, lease, self._resumes)
            try:
                server = await turn.holding.server()
            except errors.NoServerAvailable as error:
                raise RuntimeError(NO_SERVERS) from error
            server_id = verl_id(server.server_id, process.balancer_id)
            process.is_shared = process.is_shared or server_id is None
            if server_id is None or process.groups.cuts() != cuts:
                # The server is of another balancer, or the group was cut while this request waited for a server.
                turn.end()
                continue
            check_bound(request_id, bound, server_id)
            turn.server_id = LeasedServerId(server_id)
            turn.server_id.turn = turn
            turn.engine_request_id = request_id if is_fixed else server.lease_id
            try:
                turn.handle = await process.handle_of(server_id, server)
            except BaseException:
                turn.end()
                raise
            if turn.handle is not None:
                break
            turn.end()
            await asyncio.sleep(REMOVAL_PAUSE)
        process.turns.setdefault(request_id, set()).add(turn)
        if call := _call.get():
            call.turn = turn
        self._on_dispatch(request_id, turn.engine_request_id, turn.handle)
        return turn.server_id, turn.handle

    def _release_server(self, server_id: str, request_id: str | None = None) -> None:
        assert isinstance(server_id, LeasedServerId)
        turn = server_id.turn
        turns = self._process.turns
        if turn.request_id in turns:
            turns[turn.request_id].discard(turn)
            if not turns[turn.request_id]:
                del turns[turn.request_id]
        turn.end(failed=has_call_failed())
        self._on_complete(turn.request_id)

    def _vllm_request_id(self, request_id: str) -> str:
        call = _call.get()
        if call is None or call.turn is None:
            return str(super()._vllm_request_id(request_id))
        return call.turn.engine_request_id

    @property
    def _resumes(self) -> bool:
        return False


class LeasedFullyAsyncClient(FullyAsyncLLMServerClient, LeasedClient):
    """Replaces verl's FullyAsyncLLMServerClient, and resumes aborted responses, with a lease for each turn."""

    @property
    def _resumes(self) -> bool:
        training = getattr(self.config, "async_training", None)
        return training is None or bool(training.partial_rollout)


def leased(client: LLMServerClient) -> LLMServerClient:
    """Returns the client with leases. A client that has leases already stays as it is.

    :raises TypeError: the client is of a class that this version of Broomwagon does not know
    """
    if isinstance(client, LeasedClient):
        return client
    kinds: dict[type, Any] = {LLMServerClient: LeasedClient, FullyAsyncLLMServerClient: LeasedFullyAsyncClient}
    kind = kinds.get(type(client))
    if kind is None:
        raise TypeError(f"Broomwagon cannot replace a {type(client).__name__}: derive it from LeasedClient")
    replaced = kind.__new__(kind)
    replaced.__setstate__(dict(client.__dict__))
    return replaced
