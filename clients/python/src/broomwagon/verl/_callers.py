"""Processes that hold requests of the balancer actor, so that requests of a process that died are returned.

Neither Ray nor the clients of verl tell an actor who calls it. Therefore the server id that `acquire_server` returns
registers itself in the process in which Ray unpickles it. That process renews its requests with one call in
`RENEWAL_INTERVAL`, until it passes the id to `release_server`. The passed id also says whether the call has failed,
which counts against the server.
"""

from __future__ import annotations

import sys
import threading
import time
from contextlib import suppress
from types import FrameType
from typing import Any

#: Seconds between two renewals of a process.
RENEWAL_INTERVAL = 5.0


class GivenServerId(str):
    """A server id on its way from the balancer to the process that asked for it."""

    def __new__(cls, server_id: str, number: int, balancer: Any) -> GivenServerId:
        """
        :param number: number of the request in the balancer
        :param balancer: `own_actor()`
        """
        self = super().__new__(cls, server_id)
        self.number = number
        self.balancer = balancer
        #: Whether Ray has sent the id to another process, which renews the request from then on.
        self.was_sent = False
        return self

    number: int
    balancer: Any
    was_sent: bool

    def __reduce__(self) -> tuple[Any, ...]:
        self.was_sent = True
        return _arrive, (str(self), self.number, self.balancer)


class HeldServerId(str):
    """A server id in the process that asked for it. When it is sent back to the balancer, the renewals end."""

    number: int
    renewals: Renewals

    def __reduce__(self) -> tuple[Any, ...]:
        self.renewals.drop(self.number)
        return _return, (str(self), self.number, has_call_failed())


class ReturnedServerId(str):
    """A server id that has returned to the balancer."""

    number: int
    has_failed: bool


class Renewals:
    """The requests that this process holds of one balancer."""

    def __init__(self, balancer: Any) -> None:
        self._balancer = balancer
        self._lock = threading.Lock()
        self._numbers: set[int] = set()
        threading.Thread(target=self._renew_always, name="broomwagon-renewals", daemon=True).start()

    def add(self, number: int) -> None:
        with self._lock:
            self._numbers.add(number)

    def drop(self, number: int) -> None:
        with self._lock:
            self._numbers.discard(number)

    def _renew_always(self) -> None:
        """Runs in a thread, because the event loop of the process may be busy for longer than its requests may be
        silent."""
        import ray

        while True:
            time.sleep(RENEWAL_INTERVAL)
            with self._lock:
                numbers = list(self._numbers)
            if not numbers:
                continue
            try:
                ray.get(self._balancer.renew_requests.remote(numbers))
            except ray.exceptions.ActorUnavailableError:
                continue
            except ray.exceptions.RayError:
                # The balancer has died, and its leases with it.
                return


#: Renewals by the id of the balancer's actor.
_renewals: dict[bytes, Renewals] = {}
_renewals_lock = threading.Lock()


def _arrive(server_id: str, number: int, balancer: Any) -> HeldServerId:
    key = balancer if isinstance(balancer, bytes) else balancer._actor_id.binary()
    with _renewals_lock:
        if key not in _renewals:
            _renewals[key] = Renewals(_known_actor(balancer) if isinstance(balancer, bytes) else balancer)
        renewals = _renewals[key]
    renewals.add(number)
    held = HeldServerId(server_id)
    held.number, held.renewals = number, renewals
    return held


def _return(server_id: str, number: int, has_failed: bool) -> ReturnedServerId:
    returned = ReturnedServerId(server_id)
    returned.number, returned.has_failed = number, has_failed
    return returned


def has_call_failed() -> bool:
    """Whether the call before `_release_server` has raised an exception; a cancellation does not count. verl names no
    outcome: it releases in a `finally` of the method that has called the engine. So only an exception of this method
    counts; an agent loop may handle an exception of another method by another call."""
    error = sys.exc_info()[1]
    frame: FrameType | None = sys._getframe()
    # There may be several frames of `_release_server`: a subclass may call the method of its base.
    for is_release in (False, True):
        while frame is not None and (frame.f_code.co_name == "_release_server") is is_release:
            frame = frame.f_back
    if frame is None or not isinstance(error, Exception) or error.__traceback__ is None:
        return False
    return error.__traceback__.tb_frame is frame


def own_actor() -> Any:
    """The actor of this process, for `GivenServerId`: its id, from which another process gets the handle, or the handle
    itself if this release of Ray cannot find a handle by its id. A handle makes a fifth fewer acquires possible. None
    outside of Ray."""
    with suppress(ImportError, RuntimeError):
        import ray

        if ray.is_initialized() and (actor_id := ray.get_runtime_context().get_actor_id()):
            try:
                _known_actor(bytes.fromhex(actor_id))
                return bytes.fromhex(actor_id)
            except Exception:
                return ray.get_runtime_context().current_actor
    return None


def _known_actor(actor_id: bytes) -> Any:
    """The handle of an actor that this process has called, by an undocumented interface of Ray."""
    import ray
    from ray._private.worker import global_worker

    return global_worker.core_worker.get_actor_handle(ray.ActorID(actor_id))
