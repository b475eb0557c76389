"""The calls of a trainer for one job: with epoch and stamp, a takeover, and a repair when Redis has lost changes."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, TypeVar
from uuid import uuid4

from . import errors
from ._connection import Connection

logger = logging.getLogger("broomwagon")

CALL_DEADLINE = 120.0
#: Seconds to save or restore a snapshot.
SNAPSHOT_DEADLINE = 600.0
GROUPS_PER_RECONCILE = 1024
#: Maximum steps that can be reported again after Redis was set back.
STEPS_KEPT = 64

T = TypeVar("T")


class Job:
    """One trainer of a job. Each call has the trainer epoch, which fences earlier trainers. It also has the stamp of
    the last reply, which shows whether Redis has lost changes since."""

    def __init__(self, connection: Connection, name: str) -> None:
        self._connection = connection
        self.name = name
        self.epoch: str | None = None
        #: Id of this trainer until the job exists. By this id the trainer recognizes a job that its own interrupted
        #: call has created.
        self._takeover_id = uuid4().hex
        self._stamp: str | None = None
        #: Whether another trainer has taken the job over, so that this trainer must not take the job back.
        self._is_fenced = False
        self.steps_trained = 0
        #: The last trained steps, with the number of samples of each group.
        self._trained: deque[tuple[int, dict[str, int]]] = deque(maxlen=STEPS_KEPT)

    async def call(self, operation: str, **body: Any) -> Any:
        """Calls an operation of the job, with epoch and stamp.

        :raises GenerationChanged: Redis has lost changes
        :raises Fenced: another trainer has taken the job over
        """
        fields = {"job": self.name, "trainerEpoch": self.epoch, "stamp": self._stamp, **body}
        sent = {name: value for name, value in fields.items() if value is not None}
        reply = await self._send(operation, sent)
        self._stamp = reply.get("stamp", self._stamp)
        self.epoch = reply.get("trainerEpoch", self.epoch)
        return reply

    async def take_over(self, submitted: Sequence[str]) -> tuple[dict[str, Any] | None, list[str], int]:
        """Becomes the trainer of the job, and reports the steps that Redis does not count as trained.

        :param submitted: groups that this process has submitted and not trained
        :returns: the status of the open round, the groups of `submitted` that Redis has lost, and the number of groups
            that were ever submitted
        :raises Fenced: another trainer has taken the job over since this trainer started
        """
        if self.epoch is not None:
            # If Redis has lost changes, the takeover notices. A new job has no round.
            with suppress(errors.GenerationChanged, errors.JobNotFound, errors.RoundNotFound):
                await self.call("round.status")
            self._takeover_id = uuid4().hex
        self._stamp = self.epoch = None
        try:
            found = await self._send("round.takeover", {"job": self.name, "takeoverId": self._takeover_id})
        except errors.JobNotFound as error:
            # By this stamp, the next call detects whether Redis was restored with the job in between.
            found = {"stepsTrained": 0, "submittedGroups": 0, **(error.details or {})}
        self.epoch, self._stamp = found.get("trainerEpoch"), found.get("stamp")
        self.steps_trained = found["stepsTrained"]
        open_round = found.get("round", {}).get("roundId")
        for step, groups in list(self._trained):
            if step > found["stepsTrained"]:
                open_round = await self._reconcile_step(step, groups, self._takeover_id)
        unknown: list[str] = list(submitted) if self.epoch is None else []
        if self.epoch:
            unknown.extend(await self.unknown(submitted))
        status = await self.call("round.status", roundId=open_round) if open_round else None
        return status, unknown, found["submittedGroups"]

    async def make(self) -> None:
        """Creates a job that the takeover did not find, before the first round. If several trainers found no job, only
        one trainer creates the job, by the id of its takeover. `round.open` alone would give all trainers one epoch.

        :raises Fenced: another trainer has created the job since
        """
        if self.epoch is None:
            await self.call("job.reconcile", takeoverId=self._takeover_id, groupIds=[])

    async def unknown(self, group_ids: Sequence[str]) -> list[str]:
        """Returns the groups that Redis does not know: not submitted, lost, or trained many rounds ago."""
        found: list[str] = []
        for page in _pages(group_ids, GROUPS_PER_RECONCILE):
            found.extend((await self.call("job.reconcile", groupIds=page))["unknown"])
        return found

    async def reconcile_step(self, step: int, groups: dict[str, int]) -> None:
        """Ends a step after its round is lost. Exactly these groups count as trained."""
        await self._reconcile_step(step, groups, uuid4().hex)

    async def count_open(self) -> int:
        """Number of groups of the job that are submitted and have not ended."""
        status = await self._connection.call("job.status", {"job": self.name})
        ended = ("trainedGroups", "excludedGroups", "failedGroups", "droppedGroups")
        count: int = status["submittedGroups"] - sum(status.get(name, 0) for name in ended)
        return count

    async def lost_groups(self, round_id: str | None, start: int) -> list[dict[str, Any]]:
        """Groups (`GroupStatus`) of a round that ended without training. Without a round: groups of the last round, and
        groups that ended later.

        :param start: number of such groups that were read before
        """
        found: list[dict[str, Any]] = []
        cursor: int | None = start
        while cursor is not None:
            body = {"job": self.name, "set": "lost", "cursor": cursor}
            if round_id is not None:
                body["roundId"] = round_id
            try:
                page = await self._connection.call("group.list", body)
            except (errors.JobNotFound, errors.RoundNotFound):
                # The job is new, or Redis has lost it. Calls with a stamp detect the loss.
                return found
            except errors.ValidationFailed as error:
                if error.field != "set":
                    raise
                logger.debug("Services of an earlier version do not list groups that ended without training")
                return found
            found += page["groups"]
            cursor = page.get("cursor")
        return found

    async def ledger(self, round_id: str | None = None) -> dict[str, Any]:
        """The `LedgerSummary` of a round, or of all steps."""
        body = {"job": self.name} if round_id is None else {"job": self.name, "roundId": round_id}
        reply = await self._connection.call("job.ledger", body)
        summary: dict[str, Any] = reply["summary"]
        return summary

    async def finish(self, operation: str, tag: str, unfinished: str, **options: Any) -> dict[str, Any]:
        """Saves or restores a snapshot. Each call does a part, so the call is repeated while its state is `unfinished`.

        :param options: further fields of the request
        :raises JobNotFound: the job to be saved has no round yet
        :raises Timeout: the work has not ended after 10 minutes
        """
        if operation == "job.snapshot" and self.epoch is None:
            raise errors.JobNotFound(f"Job {self.name} has no round yet")
        ends_at = time.monotonic() + SNAPSHOT_DEADLINE
        while (reply := await self.call(operation, tag=tag, **options))["state"] == unfinished:
            if time.monotonic() > ends_at:
                raise errors.Timeout(f"{operation} of {tag} has not ended", retryable=True)
        result: dict[str, Any] = reply
        return result

    def has_trained(self, step: int, groups: dict[str, int]) -> None:
        self.steps_trained = max(self.steps_trained, step)
        self._trained.append((step, groups))

    def restored(self, steps_trained: int) -> None:
        """Sets the trained steps after the job was returned to a snapshot: later steps do not count as trained."""
        self.steps_trained = steps_trained
        self._trained = deque((kept for kept in self._trained if kept[0] <= steps_trained), maxlen=STEPS_KEPT)

    async def _send(self, operation: str, body: dict[str, Any]) -> Any:
        if self._is_fenced:
            raise errors.Fenced(
                f"Another trainer has taken job {self.name} over; a new Rollout takes it back", field="job"
            )
        try:
            return await self._connection.call(operation, body, deadline=CALL_DEADLINE)
        except errors.Fenced:
            self._is_fenced = True
            raise

    async def _reconcile_step(self, step: int, groups: dict[str, int], takeover_id: str) -> str | None:
        """Reports a step as trained. Returns the id of the open round."""
        logger.warning("Redis does not count step %s of job %s as trained; reconciling it", step, self.name)
        trained = [{"groupId": group_id, "samples": samples} for group_id, samples in groups.items()]
        open_round = None
        pages = list(_pages(trained, GROUPS_PER_RECONCILE))
        for index, page in enumerate(pages):
            body = {"step": step, "groups": page, "isLast": index == len(pages) - 1, "takeoverId": takeover_id}
            open_round = (await self.call("job.reconcile", **body)).get("openRoundId")
        self.steps_trained = max(self.steps_trained, step)
        return open_round


def _pages(items: Sequence[T], size: int) -> Iterator[list[T]]:
    for start in range(0, len(items), size):
        yield list(items[start : start + size])
