"""Clients of verl that take leases of the pool themselves: one request over NATS instead of a call to a Ray actor."""

from __future__ import annotations

import asyncio
import logging
import sys
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from verl.workers.rollout.llm_server import FullyAsyncLLMServerClient, LLMServerClient

from .. import errors
from ..client import Client
from ._holding import Holding
from .balancer import NO_SERVERS, labels_of, pool_id, verl_id
from .engine import abort_on_engine

if TYPE_CHECKING:
    from .._held import StopCause

logger = logging.getLogger("broomwagon")

#: `stop_reason` of a response that was aborted for good. verl resumes after "abort" and "aborted" only.
ABORTED_FOR_GOOD = "cancelled"
RESUMABLE = ("abort", "aborted")


class LeasedServerId(str):
    """The id of a server, which carries its turn from `_acquire_server` to `_release_server`."""

    turn: Turn


class Turn:
    """One call of an engine under one lease."""

    def __init__(self, request_id: str) -> None:
        self.request_id = request_id
        self.server_id = LeasedServerId()
        self.handle: Any = None
        self.holding: Holding | None = None
        #: Id of the request on the engine: the lease, so an operator finds either by the other.
        self.engine_request_id = ""
        #: The request was aborted, so its tokens are its end.
        self.is_aborted = False
        self.aborting: asyncio.Task[None] | None = None
        self._is_ended = False

    def stop(self, cause: StopCause) -> None:
        """Ends the request on the engine, which answers with the tokens so far."""
        if self._is_ended:
            return
        self.is_aborted = self.is_aborted or cause == "abort"
        if self.handle is not None and self.aborting is None:
            self.aborting = asyncio.ensure_future(self._abort())

    def end(self) -> None:
        """Releases the lease, when the engine has answered an abort."""
        self._is_ended = True
        assert self.holding
        holding = self.holding
        if self.aborting and not self.aborting.done():
            self.aborting.add_done_callback(lambda _: holding.release())
        else:
            holding.release()

    async def _abort(self) -> None:
        try:
            await abort_on_engine(self.handle, self.engine_request_id)
        except Exception as error:
            logger.warning("Request %s on %s was not aborted: %s", self.request_id, self.server_id, error)


_turn: ContextVar[Turn | None] = ContextVar("broomwagon_turn", default=None)


class _Process:
    """What a client has in one process; nothing of it travels to others."""

    def __init__(self, load_balancer: Any) -> None:
        self._load_balancer = load_balancer
        self.turns: dict[str, set[Turn]] = {}
        self.balancer_id = ""
        self.timeout = 0.0
        self._handles: dict[str, Any] = {}
        self._opening: asyncio.Task[Client] | None = None

    async def client(self) -> Client:
        """All calls wait for one connection; after a failure the next call tries again."""
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
        opening = self._opening
        try:
            return await asyncio.shield(opening)
        finally:
            if opening.done() and (opening.cancelled() or opening.exception()) and self._opening is opening:
                self._opening = None

    async def handle_of(self, server_id: str) -> Any:
        if server_id not in self._handles:
            self._handles = await self._load_balancer.get_handles.remote()
        if server_id not in self._handles:
            raise RuntimeError(f"{NO_SERVERS}: {server_id} was removed at this moment")
        return self._handles[server_id]

    async def close(self) -> None:
        if self._opening is not None:
            await (await self._opening).close()

    async def _open(self) -> Client:
        if not hasattr(self._load_balancer, "get_route"):
            raise RuntimeError(
                "verl runs its own balancer, not Broomwagon's: set actor_rollout_ref.rollout.router_config_path, "
                "or BROOMWAGON_VERL=balancer"
            )
        route = await self._load_balancer.get_route.remote()
        self.balancer_id = route["balancer"]
        self.timeout = route["timeout"]
        client = Client(**route["client"])
        await client.connect()
        return client


class LeasedClient(LLMServerClient):
    """In the place of verl's LLMServerClient. `load_balancer_handle` is a `Balancer`, which has the handles of the
    engines. The client is sent to the processes of agent loops, so it connects with its first request."""

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
        `stop_reason` "cancelled". Other requests of the engine, and its cache, stay. Returns the number of turns."""
        turns = list(self._process.turns.get(request_id, ()))
        for turn in turns:
            turn.stop("abort")
        await asyncio.gather(*(turn.aborting for turn in turns if turn.aborting))
        return len(turns)

    async def close(self) -> None:
        """Ends the connection of this process and returns its leases. The next request connects again."""
        process, self._process = self._process, _Process(self._load_balancer)
        await process.close()

    async def generate(self, request_id: str, **arguments: Any) -> Any:
        """As verl's, with the lease held until the engine has ended the request, also after a cancellation."""
        output = await super().generate(request_id, **arguments)
        turn = _turn.get()
        if turn is not None and turn.is_aborted and output.stop_reason in RESUMABLE:
            output.stop_reason = ABORTED_FOR_GOOD
        return output

    async def _acquire_server(self, request_id: str, **extra: Any) -> tuple[str, Any]:
        """
        :raises RuntimeError: "No available servers in load balancer"
        """
        process = self._process
        client = await process.client()
        turn = Turn(request_id)
        lease = client.lease(
            request_id,
            session_id=pool_id(request_id, process.balancer_id),
            labels=labels_of(process.balancer_id),
            context_tokens=len(extra["prompt_ids"]) if extra.get("prompt_ids") is not None else None,
            timeout=process.timeout,
        )
        holding = turn.holding = Holding(lease, turn.stop)
        try:
            server = await holding.server()
        except errors.NoServerAvailable as error:
            raise RuntimeError(NO_SERVERS) from error
        turn.server_id = LeasedServerId(verl_id(server.server_id))
        turn.server_id.turn = turn
        turn.engine_request_id = server.lease_id
        try:
            turn.handle = await process.handle_of(turn.server_id)
        except BaseException:
            holding.release()
            raise
        process.turns.setdefault(request_id, set()).add(turn)
        _turn.set(turn)
        return turn.server_id, turn.handle

    def _release_server(self, server_id: str, request_id: str | None = None) -> None:
        assert isinstance(server_id, LeasedServerId)
        turn = server_id.turn
        turns = self._process.turns
        if turn.request_id in turns:
            turns[turn.request_id].discard(turn)
            if not turns[turn.request_id]:
                del turns[turn.request_id]
        if isinstance(sys.exc_info()[1], asyncio.CancelledError):
            # Ray does not end the call of the engine with the task that waits for it.
            turn.stop("abort")
        turn.end()

    def _vllm_request_id(self, request_id: str) -> str:
        turn = _turn.get()
        is_fixed = getattr(self.config.actor_rollout_ref.rollout, "full_determinism", False)
        return request_id if is_fixed or turn is None else turn.engine_request_id


class LeasedFullyAsyncClient(FullyAsyncLLMServerClient, LeasedClient):
    """In the place of verl's FullyAsyncLLMServerClient: its loop that resumes aborted responses, over leases."""


def leased(client: LLMServerClient) -> LLMServerClient:
    """The same client with leases; one of another class than verl's own stays as it is.

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
