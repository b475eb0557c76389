"""The change of weights of a pool: begin, load, report, commit."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

from . import errors
from ._arguments import check_count, check_number, given_fields
from ._connection import Connection

if TYPE_CHECKING:
    from .protocol import WeightsStatusReply, WeightSyncMode, WeightSyncReply


@dataclass
class _Change:
    """A change of weights: the body of its begin, the servers that were reported, and the operation that ended it."""

    body: dict[str, Any]
    reported: list[str] = field(default_factory=list)
    end: str | None = None


class Weights:
    """`begin` pauses the pool. Then the trainer loads the weights into the engines, `report` names their version, and
    `commit` resumes the pool with this version. docs/protocol/README.md describes each step."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        #: The last change of this client, which its trainer repeats after Redis was set back.
        self._change: _Change | None = None

    async def begin(
        self,
        version: int,
        *,
        mode: WeightSyncMode = "abort",
        sync_id: str | None = None,
        deadline: float = 120.0,
        wait: float = 20.0,
        job: str | None = None,
        trainer_epoch: str | None = None,
    ) -> WeightSyncReply:
        """Stops leases and claims until `commit`, `rollback` or the deadline. Call it again with the `syncId` of the
        reply to extend the deadline while a load makes progress, and until `running` is 0.

        :param version: version of the new weights, not below the present one
        :param mode: handling of running requests. `abort`: they stop with their tokens and run again afterwards;
            `wait`: they are awaited; `keep`: they continue, with tokens of both versions
        :param sync_id: id of the change; default: a new id
        :param deadline: seconds until the change is rolled back
        :param wait: seconds to wait until no request runs, at most 30; not in mode `keep`
        :param job: with `trainer_epoch`: only this trainer of the job may end the change
        :raises WeightSyncConflict: another change has begun and not ended
        """
        body: dict[str, Any] = {
            "syncId": sync_id or uuid4().hex,
            "version": check_count("version", version, 0),
            "mode": mode,
            "deadlineMs": round(1000 * check_number("deadline", deadline)),
            **given_fields(job=job, trainerEpoch=trainer_epoch),
        }
        if mode != "keep":
            body["waitMs"] = round(1000 * check_number("wait", wait))
        reply = cast("WeightSyncReply", await self._connection.call("weights.begin", body))
        if self._change is None or self._change.body["syncId"] != body["syncId"]:
            self._change = _Change(body)
        return reply

    async def report(self, version: int, servers: Iterable[str] | None = None) -> list[str]:
        """Reports that engines have these weights.

        :param servers: ids of the servers; default: all servers of the pool
        :returns: ids of the servers that take no leases yet, since their prefix cache is not reset
        :raises ServerNotFound: a server has been removed
        """
        check_count("version", version, 0)
        waiting: list[str] = []
        for server_id in list(servers) if servers is not None else await self._servers():
            body = {"serverId": server_id, "weightVersion": version}
            reply = await self._connection.call("server.update", body)
            if reply.get("weightVersionTaken") is False:
                waiting.append(server_id)
            if self._change is not None and self._change.body["version"] == version:
                self._change.reported.append(server_id)
        return waiting

    async def commit(self, sync_id: str, *, trainer_epoch: str | None = None) -> WeightSyncReply:
        """Resumes the pool with the new weights. A server gets no leases until its new version is reported.

        :raises WeightSyncEnded: the deadline has rolled the change back: begin again
        """
        return await self._end("weights.commit", sync_id, trainer_epoch)

    async def rollback(self, sync_id: str, *, trainer_epoch: str | None = None) -> WeightSyncReply:
        """Resumes the pool with its weights before the change. Servers that report the new weights get no leases."""
        return await self._end("weights.rollback", sync_id, trainer_epoch)

    async def status(self, sync_id: str | None = None) -> WeightsStatusReply:
        """The weight version of the pool, and a change of weights: the given change, or the change that runs."""
        reply = await self._connection.call("weights.status", given_fields(syncId=sync_id))
        return cast("WeightsStatusReply", reply)

    async def _end(self, operation: str, sync_id: str, trainer_epoch: str | None) -> WeightSyncReply:
        body = given_fields(syncId=sync_id, trainerEpoch=trainer_epoch)
        reply = cast("WeightSyncReply", await self._connection.call(operation, body))
        if self._change is not None and self._change.body["syncId"] == sync_id:
            self._change.end = operation
        return reply

    async def _repeat(self, job: str, trainer_epoch: str | None) -> None:
        """Repeats the last change of this client, after Redis was set back and may have lost any part of it. What
        Redis still has stays as it is.

        :param trainer_epoch: the epoch that the trainer of the job has now; None: Redis has lost the job
        """
        change = self._change
        if change is None:
            return
        found = await self.status()
        version = change.body["version"]
        if max(found.get("version", -1), found.get("sync", {}).get("version", -1)) > version:
            return
        body, epoch = dict(change.body), change.body.get("trainerEpoch")
        if body.get("job") == job:
            epoch = trainer_epoch
            body = {name: value for name, value in body.items() if name not in ("job", "trainerEpoch")}
            body |= given_fields(job=epoch and job, trainerEpoch=epoch)
        await self._connection.call("weights.begin", body)
        for server_id in dict.fromkeys(change.reported):
            with suppress(errors.ServerNotFound):
                await self._connection.call("server.update", {"serverId": server_id, "weightVersion": version})
        if change.end is not None:
            with suppress(errors.WeightSyncEnded):
                await self._end(change.end, body["syncId"], epoch)

    async def _servers(self) -> list[str]:
        found: list[str] = []
        cursor: str | None = "0"
        while cursor is not None:
            page = await self._connection.call("server.list", {"cursor": cursor})
            found += [server["serverId"] for server in page["servers"]]
            cursor = page.get("cursor")
        return found
