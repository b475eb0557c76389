"""State of a trainer for its open round: how the round is taken over, and how its step ends."""

from __future__ import annotations

import time
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

from . import errors
from ._connection import Connection
from ._error import BroomwagonError
from ._failures import FailedGroups, OnFailed
from ._job import Job
from ._metrics import ledger_metrics, round_metrics
from ._payloads import Payloads
from ._plan import pause_between_tries
from ._prompts import PromptSource
from ._round import Round
from ._step import OpenStep
from .results import Group

if TYPE_CHECKING:
    from .protocol import TailPolicy
    from .weights import Weights

T = TypeVar("T")
Loop = weakref.ref[AsyncGenerator[Group, None]]

MAX_COMPARED_GROUPS = 1_024
LOST = (errors.GenerationChanged, errors.RoundMismatch)


class JobRounds:
    """The open round of a job, in Redis and in this process."""

    #: Numbers of the last round, with the names that trainers plot.
    metrics: dict[str, float]

    def __init__(self, connection: Connection, job: str, weights: Weights, on_failed: OnFailed) -> None:
        self._job = Job(connection, job)
        self._weights = weights
        self._payloads = Payloads(connection)
        self._failed = FailedGroups(job, on_failed)
        self._prompts = PromptSource()
        self._round: dict[str, Any] | None = None
        self._open = OpenStep()
        #: The last loop that was started, and whether its body runs or was left.
        self._loop: Loop | None = None
        self._is_in_body = False
        #: Whether the job is taken over.
        self._is_started = False
        #: Whether the prompts that earlier processes have submitted are skipped.
        self._has_position = False
        self.metrics = {}

    @property
    def step(self) -> int:
        """Number of trained steps."""
        return self._job.steps_trained

    async def _recovering(self, work: Callable[[], Awaitable[T]]) -> T:
        """Takes the job over if Redis has lost changes, and does the work again."""
        for tries in count():
            try:
                if not self._is_started:
                    await self._take_over()
                return await work()
            except LOST as error:
                self._is_started = False
                await pause_between_tries(tries, error)
        raise AssertionError("unreachable")

    async def _has_lost(self, error: BroomwagonError) -> bool:
        """Whether the job must be taken over: Redis has lost changes, or has a round from an interrupted call of this
        process. If Redis has lost a payload, a further call shows whether it has lost other changes too."""
        if isinstance(error, (*LOST, errors.RoundConflict)):
            return True
        try:
            await self._job.call("round.status", roundId=self._round["roundId"] if self._round else None)
        except LOST:
            return True
        return False

    async def _take_over(self) -> None:
        self._round, unknown, submitted = await self._job.take_over(self._prompts.submitted())
        self._prompts.put_back(unknown)
        if self._has_position:
            await self._weights._repeat(self._job.name, self._job.epoch)
        else:
            self._prompts.skip(submitted, await self._job.count_open() if submitted else 0)
        self._has_position = self._is_started = True

    async def _close(self, step: int, reading: Round, policy: TailPolicy) -> None:
        """Marks the yielded groups as trained."""
        assert self._round is not None
        trained = self._open.samples_trained()
        if {digest["groupId"] for digest in reading.digests} != set(self._open.groups):
            # Redis was set back, and its groups now differ from the groups that were yielded before.
            await self._job.reconcile_step(step, trained)
        else:
            body: dict[str, Any] = {"roundId": self._round["roundId"], "cursor": reading.cursor}
            if len(reading.digests) <= MAX_COMPARED_GROUPS:
                body["groups"] = reading.digests
            await self._job.call("round.close", **body)
            if policy.get("equalRewards", "keep") != "keep":
                # The ledger of the last page lacks groups that were rewarded later.
                reading.ledger = await self._job.ledger(self._round["roundId"])
            # Redis forgets failed groups. A later takeover would count them as lost, so their prompts are dropped here.
            left = [group_id for group_id in self._prompts.submitted() if group_id not in self._open.groups]
            for group_id in await self._job.unknown(left):
                self._prompts.ended(group_id)
        self._job.has_trained(step, trained)
        self.metrics = ledger_metrics(reading.ledger) if reading.ledger else {}

    async def _end_lost_step(self) -> None:
        """Ends a step after its round is lost, or after the reply to its close is lost."""
        trained = self._open.samples_trained()
        if self.step < self._open.number:
            await self._job.reconcile_step(self._open.number, trained)
        self._job.has_trained(self._open.number, trained)
        self.metrics = {}

    def _leave(self) -> None:
        """Forgets the groups of the open step, so that the next loop begins with the first group."""
        self._is_started = self._is_in_body = False
        self._open.clear()
        self._failed.leave()

    def _end_step(self, began: float) -> None:
        if self._round and self._round["step"] == self._open.number:
            self._round = None
        for group_id in (*self._open.groups, *self._failed.found):
            self._prompts.ended(group_id)
        trained = self._open.trained.values()
        self.metrics.update(round_metrics(self._open.number, trained, time.monotonic() - began))
        self.metrics.update(self._failed.metrics())
        self._failed.warn(len(trained))
        self._open.clear()
