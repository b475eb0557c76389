"""The registration of a worker: its epoch, its heartbeat, and what happens when the epoch has expired."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import re
import socket
from typing import Any
from uuid import uuid4

from . import errors
from ._connection import Connection
from ._error import BroomwagonError
from ._held import HeldAttempts, HeldLeases, WorkerEpoch
from ._reconcile import reconcile

logger = logging.getLogger("broomwagon")

#: Successive heartbeats with different counts before a sync. Running calls make counts differ for a moment.
MISMATCHES_BEFORE_SYNC = 2
REGISTER_DEADLINE = 60.0
DEREGISTER_DEADLINE = 2.0
#: A second registration of another process under the same id, within these seconds, is no restart.
DUPLICATE_WITHIN = 600.0
#: The worker epoch has expired, or Redis does not have the worker: the worker must register again.
EXPIRED_EPOCH = (errors.Fenced, errors.WorkerNotFound)


class WorkerIdInUse(errors.Fenced):
    """Another process registers under the id of this worker again and again. Each registration returns the leases and
    attempts of the other process. Give each client a different `worker_id`, or no `worker_id`."""


class Session:
    """Registers a worker before its first call, and renews its leases and attempts."""

    def __init__(self, connection: Connection, worker_id: str, ttl: float, unclaimed_after: float) -> None:
        self._connection = connection
        self._worker_id = worker_id
        self._ttl = ttl
        self._unclaimed_after = unclaimed_after
        self._epoch: WorkerEpoch | None = None
        self._registering: asyncio.Task[None] | None = None
        self._heartbeat: asyncio.Task[None] | None = None
        self._reconciling: asyncio.Task[None] | None = None
        self._generation: str | None = None
        #: Time, on the clock of Redis in milliseconds, until which each heartbeat starts a sync.
        self._sync_until_ms = 0.0
        self._mismatches = 0
        self._is_listening = False
        self._is_closed = False
        #: Times on the clock of the event loop: of the last proof that the epoch is alive, and of the last time that
        #: another process has replaced the epoch.
        self._alive_at = 0.0
        self._replaced_at = -math.inf
        self._is_duplicate = False
        self.leases = HeldLeases()
        self.attempts = HeldAttempts()
        #: Set when the current epoch ends.
        self.epoch_ended = asyncio.Event()

    async def established(self, timeout: float = math.inf) -> WorkerEpoch:
        """Waits for an epoch.

        :raises BroomwagonError: ShuttingDown if the session is closed; no service answers within a minute, or within
            `timeout` seconds
        :raises WorkerIdInUse: another process registers under the same id
        """
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + timeout
        while self._epoch is None:
            if self._is_closed:
                raise errors.ShuttingDown("The client is closed")
            if self._is_duplicate:
                raise WorkerIdInUse(f"Another process uses the worker id {self._worker_id}", field="worker_id")
            if self._registering is None:
                self._registering = asyncio.create_task(self._register())
            registering = self._registering
            # All callers share the registration, so a cancelled or late caller must not cancel it.
            await asyncio.wait((registering,), timeout=max(0.0, ends_at - loop.time()))
            if not registering.done():
                raise errors.Timeout(f"No service has registered the worker within {timeout:.1f} s", retryable=True)
            registering.result()
        return self._epoch

    def is_current(self, worker: WorkerEpoch) -> bool:
        return self._epoch == worker

    def fence(self, worker: WorkerEpoch, error: BroomwagonError) -> None:
        """Stops and removes all work of an epoch, after the error of a call has shown that the epoch has expired."""
        if not self.is_current(worker):
            return
        logger.warning("Epoch %s of worker %s has expired: all its calls are stopped", worker.epoch, worker.worker_id)
        self._epoch = None
        now = asyncio.get_running_loop().time()
        if isinstance(error, errors.Fenced) and now < self._alive_at + self._ttl:
            # This worker was not silent, so another process may have its id. The first time, the reason may also be a
            # restart of this worker, or a Redis that has lost the registration.
            self._is_duplicate = now < self._replaced_at + DUPLICATE_WITHIN
            self._replaced_at = now
        self.epoch_ended.set()
        self.epoch_ended = asyncio.Event()
        self.attempts.forget_all()
        self.leases.forget_all()

    async def close(self) -> None:
        """Deregisters the worker: its leases and attempts are returned at once."""
        self._is_closed = True
        for task in (self._heartbeat, self._registering, self._reconciling):
            if task:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        worker, self._epoch = self._epoch, None
        if worker is None:
            return
        try:
            await self._connection.call("worker.deregister", worker.body, deadline=DEREGISTER_DEADLINE)
        except BroomwagonError as error:
            logger.warning("Could not deregister; the epoch will expire: %s", error)

    async def _register(self) -> None:
        body = {"workerId": self._worker_id, "registrationId": uuid4().hex, "ttlMs": round(self._ttl * 1000)}
        loop = asyncio.get_running_loop()
        try:
            if not self._is_listening:
                await self._connection.listen(f"worker.{self._worker_id}.abort", self._abort)
                await self._connection.listen(f"worker.{self._worker_id}.move", self._move)
                self._is_listening = True
            self._alive_at = loop.time()
            reply = await self._connection.call("worker.register", body, deadline=REGISTER_DEADLINE)
            self._epoch = WorkerEpoch(self._worker_id, reply["workerEpoch"])
        finally:
            self._registering = None
        if self._heartbeat is None:
            self._heartbeat = asyncio.create_task(self._beat_always())

    def _abort(self, command: dict[str, Any]) -> None:
        """Stops the attempts and leases that a command names. The command is repeated until this work has ended; a
        repeat has no effect."""
        if self._epoch is None or command["workerEpoch"] != self._epoch.epoch:
            return
        for attempt in command["attempts"]:
            self.attempts.stop((attempt["requestId"], attempt["attempt"]), command["cause"])
        for item in command.get("leases", []):
            if lease := self.leases.find(item["leaseId"]):
                lease.work.stop(command["cause"])

    def _move(self, command: dict[str, Any]) -> None:
        """Moves leases without an attempt. The command is repeated until each lease has moved or ended."""
        if self._epoch is None or command["workerEpoch"] != self._epoch.epoch:
            return
        for item in command["leases"]:
            if lease := self.leases.find(item["leaseId"]):
                lease.work.move({name: item[name] for name in ("targetServerId", "targetEpoch") if name in item})

    async def _beat_always(self) -> None:
        loop = asyncio.get_running_loop()
        beat_at = loop.time()
        while True:
            # The next heartbeat follows an unanswered heartbeat at once: a pause could let the epoch expire.
            beat_at = max(beat_at + self._ttl / 3, loop.time())
            await asyncio.sleep(beat_at - loop.time())
            if worker := self._epoch:
                try:
                    await self._beat(worker)
                except Exception:
                    logger.exception("The heartbeat failed")

    async def _beat(self, worker: WorkerEpoch) -> None:
        """Sends one heartbeat. Starts a sync if the counts differ, and does not wait for its end."""
        held = {
            "leaseCount": len(self.leases),
            "leaseDigest": self.leases.digest,
            "attemptCount": len(self.attempts),
        }
        sent_at = asyncio.get_running_loop().time()
        try:
            reply = await self._connection.call("worker.heartbeat", {**worker.body, **held}, deadline=self._ttl / 3)
        except EXPIRED_EPOCH as error:
            self.fence(worker, error)
            return
        except BroomwagonError as error:
            logger.warning("The heartbeat failed: %s", error)
            return
        if not self.is_current(worker):
            return
        self._alive_at = sent_at
        now_held = (len(self.leases), self.leases.digest, len(self.attempts))
        agrees = (reply["leaseCount"], reply["leaseDigest"], reply["attemptCount"]) == now_held
        self._mismatches = 0 if agrees else self._mismatches + 1
        must_sync = self._is_new_generation(reply) or reply.get("syncAsked")
        if not must_sync and self._mismatches < MISMATCHES_BEFORE_SYNC:
            return
        self._mismatches = 0
        if self._reconciling is None or self._reconciling.done():
            self._reconciling = asyncio.create_task(self._reconcile(worker, reply["serverTimeMs"]))

    def _is_new_generation(self, reply: dict[str, Any]) -> bool:
        """Whether the pool generation has changed lately. Then each heartbeat starts a sync: Redis may have lost one
        attempt and assigned another attempt, with the same counts."""
        now_ms: float = reply["serverTimeMs"]
        # Services of earlier versions do not send the generation.
        generation = reply.get("generation")
        if self._generation is not None and self._generation != generation:
            self._sync_until_ms = now_ms + 1000 * (self._unclaimed_after + 2 * self._ttl / 3)
        self._generation = generation
        return now_ms < self._sync_until_ms

    async def _reconcile(self, worker: WorkerEpoch, server_time_ms: float) -> None:
        old_before_ms = server_time_ms - 1000 * self._unclaimed_after
        try:
            await reconcile(self._connection, worker, self.leases, self.attempts, old_before_ms)
        except EXPIRED_EPOCH as error:
            self.fence(worker, error)
        except BroomwagonError as error:
            logger.warning("The reconciliation failed: %s", error)


def default_worker_id() -> str:
    """Creates an id that differs for each connection."""
    host = re.sub(r"[^A-Za-z0-9_-]", "-", socket.gethostname())[:40]
    return f"python-{host}-{os.getpid()}-{uuid4().hex[:6]}"
