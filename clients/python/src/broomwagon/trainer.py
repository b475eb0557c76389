"""The trainer's side: `async for group in rollout.round(prompts, policy)`."""

from __future__ import annotations

import logging
import time
import weakref
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from . import errors
from ._arguments import InvalidArgument, check_count, check_rewards, given_fields, to_milliseconds
from ._connection import Connection
from ._failures import OnFailed
from ._job_rounds import LOST, JobRounds, Loop
from ._metrics import ledger_metrics
from ._plan import open_round, pause_between_tries, policy_of, prompts_ahead
from ._progress import Progress
from ._prompts import PromptLike, PromptSource
from ._round import LostGroups, Round
from ._step import StepFailed, YieldedGroup
from .results import Failure, Group

if TYPE_CHECKING:
    from .protocol import AbortScope, SamplingParameters, TailPolicy, TailPolicyName
    from .weights import Weights

logger = logging.getLogger("broomwagon")

#: Maximum snapshots of one job that services keep.
MAX_SNAPSHOTS = 16


class Rollout(JobRounds):
    """The rounds of one job. A process that starts with the same job and the same prompts fences the earlier process
    and continues its open round."""

    def __init__(
        self,
        connection: Connection,
        job: str,
        *,
        weights: Weights,
        groups: int,
        samples: int,
        max_tokens: int,
        sampling: SamplingParameters | None,
        min_samples: int | None,
        timeout: float | None,
        abort_scope: AbortScope | None,
        orphan_after: float | None,
        priority: int | None,
        worker_kind: str | None,
        on_failed: OnFailed,
        progress: bool,
    ) -> None:
        super().__init__(connection, job, weights, on_failed)
        self._groups = groups
        self._round_options = given_fields(
            abortScope=abort_scope,
            orphanAfterMs=to_milliseconds(orphan_after),
            priority=priority,
            workerKind=worker_kind,
        )
        self._group_body = given_fields(
            samples=samples,
            minSamples=min_samples,
            maxTokens=max_tokens,
            timeoutMs=to_milliseconds(timeout),
            sampling=sampling or {},
        )
        self._progress = Progress(progress)
        self._reading: Round | None = None
        self._has_trained_here = False

    @property
    def failed(self) -> list[Failure]:
        """Groups of the open step that have ended without training. Between two steps: groups of the last step."""
        return list(self._failed.found.values())

    @property
    def yielded(self) -> list[Group]:
        """Groups of the open step that were yielded, which the next `round` does not yield again. After an error of
        `round` these groups count as trained. Empty after the body of the loop was left by a `break` or an error."""
        if self._is_in_body and self._loop and self._loop() is None:
            self._leave()
        return [yielded.group for yielded in self._open.groups.values()]

    def round(
        self, prompts: Iterable[PromptLike], policy: TailPolicy | Mapping[str, Any] | TailPolicyName | None = None
    ) -> AsyncGenerator[Group, None]:
        """Rolls out one training step and yields its groups as they finish. At the end of the loop the step counts as
        trained. If no group comes, all prompts are trained.

        If the body of the loop is left early, by a `break`, an error or a cancellation, the round stays open, and the
        next `round` begins with its first group again. After an error of `round` itself, the next `round` continues
        with the groups that were not yielded; `yielded` has the other groups.

        :param prompts: the data set or an iterator over it, the same object for each round; or a new batch each time.
            A round takes as many prompts as it needs, and the next round continues after these prompts
        :param policy: a `broomwagon.TailPolicy`, with names in camelCase or snake_case, or the name of a policy (see
            libs/policies/src/tail); None: `resume`
        :raises InvalidArgument: a prompt is wrong, or a service refuses the prompt (`__cause__` is the error of the
            service). `field` is `prompts.` with the number of the prompt among all given prompts, from 0. The prompt is
            left out, and the next round continues with the other prompts
        :raises StepFailed: all groups of the step have failed, and `on_failed` is not `yield`
        :raises GroupFailed: a group ended without training, with `on_failed` `raise`; the next round continues the step
        :raises BroomwagonError: services do not answer for two minutes; another trainer has taken the job over (Fenced,
            also of later calls: a new Rollout takes it back)
        """
        own: list[Loop] = []
        groups = self._run(prompts, "resume" if policy is None else policy, own)
        # When a loop is left, Python drops the reference at once, and closes the generator only later.
        own.append(weakref.ref(groups))
        return groups

    async def _run(
        self, prompts: Iterable[PromptLike], policy: TailPolicy | Mapping[str, Any] | str, own: list[Loop]
    ) -> AsyncGenerator[Group, None]:
        chosen = policy_of(policy)
        if self._is_in_body:
            # The previous loop was left, and its generator may be closed later.
            self._leave()
        loop = self._loop = own[0]
        self._prompts.give(prompts)
        began = time.monotonic()
        has_yielded = False
        tries = 0
        while True:
            try:
                if not self._is_started:
                    await self._take_over()
                await self._prompts.find_submitted(self._job.unknown, prompts_ahead(chosen, self._groups))
                failed = None
                if self._open.groups and (self._round is None or self._round["step"] != self._open.number):
                    await self._end_lost_step()
                else:
                    self._round = self._round or await open_round(
                        self._job, self._prompts, self._groups, chosen, self._round_options
                    )
                    if self._round is None:
                        self._warn_if_trained_before()
                        for failure in await self._lost_since_the_last_step():
                            if (last := self._failed.take(failure)) is not None:
                                yield last
                        return
                    self._open.number = step = self._round["step"]
                    self._failed.begin(step)
                    with self._progress.step(step, self._round["neededGroups"]) as bar:
                        bar.update(len(self._open.groups))
                        round_id = self._round["roundId"]
                        parts = (self._job, self._payloads, self._prompts, self._group_body)
                        self._reading = reading = Round(*parts, self._round)
                        async with aclosing(reading.groups()) as finished:
                            async for found in finished:
                                group = await self._take(found)
                                if group is not None:
                                    has_yielded, tries = True, 0
                                    bar.update(group.failure is None)
                                    self._is_in_body = True
                                    yield group
                                    self._is_in_body = False
                                # Without references here, the tokens are freed when the body drops the group.
                                del group, found
                    if not self._open.groups:
                        failed = await self._job.call("round.status", roundId=round_id)
                    await self._close(step, reading, chosen)
            except (*LOST, errors.RoundConflict, errors.PayloadNotFound) as error:
                must_repeat = not self._is_started or await self._has_lost(error)
                # The next round takes the job over again, because a failed submission may have been stored.
                self._is_started = False
                if not must_repeat:
                    raise
                await pause_between_tries(tries, error)
                tries += 1
                continue
            except GeneratorExit:
                if self._loop is loop:
                    self._leave()
                raise
            except BaseException:
                # An interrupted submission may have been stored: the next round asks the coordinator.
                self._is_started = False
                raise
            self._has_trained_here = True
            self._end_step(began)
            if has_yielded:
                return
            if failed and failed["failedGroups"] + failed["droppedGroups"] > 0:
                raise StepFailed(step, failed)

    def _warn_if_trained_before(self) -> None:
        """Warns once that the job was trained before: no prompts are left, and this process has trained none."""
        if self.step > 0 and not self._has_trained_here:
            self._has_trained_here = True
            logger.warning(
                "Job %s has trained these prompts in %s steps before this process started, and nothing is left: train "
                "them again under another job name, or delete the job (job.delete)",
                self._job.name,
                self.step,
            )

    async def _lost_since_the_last_step(self) -> list[Failure]:
        """Groups of the long-tail queue that ended without training after the last step. No group is left to train."""
        lost = await LostGroups(self._job, self._payloads, self._prompts).read()
        if new := [failure for failure in lost if self._failed.is_new(failure)]:
            self._failed.begin(self.step + 1)
            logger.warning("Job %s has trained all its prompts but %s", self._job.name, "; ".join(map(str, new)))
        return new

    async def _take(self, found: Group | Failure) -> Group | None:
        """Records a group or failure of the open round. Returns a group if the loop must yield it."""
        if isinstance(found, Failure):
            return None if found.group_id in self._open.groups else self._failed.take(found)
        if found.excluded:
            self._open.excluded.add(found.id)
        if found.id in self._open.rewards:
            await self.reward(found, self._open.rewards[found.id])
        if found.id in self._open.groups:
            return None
        self._open.groups[found.id] = YieldedGroup(found)
        # A failed group can finish later, if Redis was set back to a state before the failure.
        self._failed.found.pop(found.id, None)
        return found

    async def reward(self, group: Group, rewards: Sequence[float]) -> bool:
        """Reports the rewards of a group of this step, one for each sample. If all are equal, the `equalRewards` of the
        policy applies; with `replace` the round waits for the rewards of all its groups.

        :returns: whether the group is to be trained
        :raises InvalidArgument: a reward is no finite number (`field` is `rewards.` with its index); the loop has not
            yielded the group in this step
        """
        if group.id not in self._open.groups:
            raise InvalidArgument(f"group {group.id} is none of this step: reward it within its loop", field="group")
        numbers = check_rewards(rewards)
        remaining = self._prompts.read_ahead(2 * self._groups)
        body = {"groups": [{"groupId": group.id, "rewards": numbers}], "remainingGroups": remaining}
        outcome = "lost"
        if self._round:
            try:
                reply = await self._job.call("round.reward", roundId=self._round["roundId"], **body)
                outcome = reply["outcomes"][0]["outcome"]
            except (*LOST, errors.GroupNotFound, errors.RoundClosed, errors.RoundCancelled):
                # Redis has lost the group: its step ends with the groups that were yielded.
                pass
        self._open.rewards[group.id] = numbers
        if outcome == "lost":
            return group.id not in self._open.excluded
        if outcome == "kept":
            return True
        self._open.excluded.add(group.id)
        if outcome == "replaced" and self._reading:
            self._reading.needs_more = True
        return False

    async def ledger(self) -> dict[str, float]:
        """Costs of the tail policy over all steps of the job, with the names of `metrics`."""
        return ledger_metrics(await self._job.ledger())

    async def save(self, tag: str, *, keep: int | None = None) -> None:
        """Saves a job snapshot between two rounds: the long-tail queue with its tokens, step and counters. Save a
        snapshot whenever the model is saved, with a tag of that model.

        :param keep: number of the newest snapshots of the job that are kept, 1 to 16; default: 2. Keep as many as
            checkpoints of the model
        """
        options = given_fields(keep=None if keep is None else check_count("keep", keep, most=MAX_SNAPSHOTS))
        await self._recovering(lambda: self._job.finish("job.snapshot", tag, "saving", **options))

    async def restore(self, tag: str) -> int:
        """Restores the job from a snapshot and fences every other trainer. Afterwards give the prompts again, from the
        first prompt on. Returns the number of trained steps.

        :raises SnapshotNotFound: no snapshot has the tag; the message names all tags
        """

        async def cancel_and_restore() -> dict[str, Any]:
            if self._round:
                await self._job.call("round.cancel", roundId=self._round["roundId"], mode="drop")
                self._round = None
            return await self._job.finish("job.restore", tag, "restoring")

        reply = await self._recovering(cancel_and_restore)
        self._job.restored(reply["stepsTrained"])
        self._open.clear()
        self._failed.restored()
        self._prompts = PromptSource()
        self._prompts.skip(reply["submittedGroups"], await self._job.count_open())
        return self.step
