"""The trainer's side: `async for group in rollout.round(prompts, policy)`."""

from __future__ import annotations

import json
import math
import time
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from . import errors
from ._connection import Connection
from ._job import Job
from ._metrics import ledger_metrics, round_metrics
from ._payloads import Payloads
from ._progress import Progress
from ._prompts import PromptLike, PromptSource, wire_prompt
from .results import Group, read_sample

if TYPE_CHECKING:
    from .protocol import SamplingParameters, TailPolicy

#: With their sampling parameters they fit a message.
GROUPS_PER_SUBMIT = 32
INLINE_PROMPT_BYTES = 24_000
#: Milliseconds that a call waits for the next group.
RESULTS_WAIT_MS = 4_000
MOST_COMPARED_GROUPS = 1_024
LOST = (errors.GenerationChanged, errors.RoundMismatch)


class Rollout:
    """The rounds of one job. A process that starts with the same job and the same prompts fences the earlier one and
    continues its open round."""

    #: Numbers of the last round, with the names that trainers plot.
    metrics: dict[str, float]

    def __init__(
        self,
        connection: Connection,
        job: str,
        *,
        groups: int,
        samples: int,
        max_tokens: int,
        sampling: SamplingParameters | None,
        timeout: float | None,
        progress: bool,
    ) -> None:
        self._job = Job(connection, job)
        self._payloads = Payloads(connection)
        self._groups = groups
        body: dict[str, Any] = {"samples": samples, "maxTokens": max_tokens, "sampling": sampling or {}}
        self._group_body = body if timeout is None else {**body, "timeoutMs": round(timeout * 1000)}
        self._prompts = PromptSource()
        self._progress = Progress(progress)
        self._round: dict[str, Any] | None = None
        #: The job is taken over.
        self._is_started = False
        #: The prompts that earlier processes have submitted are skipped.
        self._has_position = False
        self._digests: list[dict[str, str]] = []
        self._cursor: str | None = None
        self.metrics = {}

    @property
    def step(self) -> int:
        """Steps trained."""
        return self._job.steps_trained

    async def round(
        self, prompts: Iterable[PromptLike], policy: TailPolicy | str = "resume"
    ) -> AsyncGenerator[Group, None]:
        """Rolls out one training step and yields its groups as they finish. At the end of the loop the step counts as
        trained. Without a group: all prompts are trained. A loop that is left early leaves the round open, and the
        next one begins with its first group again.

        :param prompts: the data set or an iterator over it, the same object for each round; or a new batch each time.
            A round takes what it needs; the next one continues there
        :param policy: a `TailPolicy`, or the name of one (see libs/policies/src/tail)
        """
        chosen = _policy_of(policy)
        self._prompts.give(prompts)
        began = time.monotonic()
        yielded: dict[str, Group] = {}
        step = 0
        while True:
            try:
                if not self._is_started:
                    await self._take_over()
                if yielded and (self._round is None or self._round["step"] != step):
                    # The round is lost, or it was closed and the reply was lost.
                    if self.step < step:
                        await self._job.reconcile_step(step, _samples_of(yielded))
                    self._job.has_trained(step, _samples_of(yielded))
                    break
                self._round = self._round or await self._open(chosen)
                if self._round is None:
                    return
                step = self._round["step"]
                finished = self._finished(self._round["roundId"])
                with self._progress.step(step, self._round["neededGroups"]) as bar:
                    async with aclosing(finished):
                        async for group in finished:
                            if group.id not in yielded:
                                yielded[group.id] = group
                                bar.update(1)
                                yield group
                await self._close(step, yielded)
                break
            except LOST:
                self._is_started = False
            except errors.PayloadNotFound:
                # Redis may have lost it with other changes: then this call is answered GENERATION_CHANGED.
                try:
                    await self._job.call("round.status", roundId=self._round["roundId"] if self._round else None)
                except LOST:
                    self._is_started = False
                else:
                    raise
            except BaseException:
                # What was submitted may not be known: the next round asks.
                self._is_started = False
                raise
        self._round = None
        for group_id in yielded:
            self._prompts.trained(group_id)
        self.metrics.update(round_metrics(step, list(yielded.values()), time.monotonic() - began))

    async def ledger(self) -> dict[str, float]:
        """What the policy has cost over all steps of the job, with the names of `metrics`."""
        return ledger_metrics(await self._job.ledger())

    async def save(self, tag: str) -> None:
        """Saves a job snapshot between two rounds: the long-tail queue with its tokens, step and counters. Call it
        when the model is saved, with a tag of that model. The last two snapshots are kept."""
        if not self._is_started:
            await self._take_over()
        while (await self._job.call("job.snapshot", tag=tag))["state"] == "saving":
            pass

    async def restore(self, tag: str) -> int:
        """Returns the job to a snapshot and fences every other trainer. Afterwards give the prompts from the first one
        on. Returns the steps that are trained.

        :raises SnapshotNotFound: no snapshot has the tag
        """
        if not self._is_started:
            await self._take_over()
        if self._round:
            await self._job.call("round.cancel", roundId=self._round["roundId"], mode="drop")
            self._round = None
        while (reply := await self._job.call("job.restore", tag=tag))["state"] == "restoring":
            pass
        self._job.restored(reply["stepsTrained"])
        self._prompts = PromptSource()
        self._prompts.skip(reply["submittedGroups"])
        return self.step

    async def _take_over(self) -> None:
        self._round, unknown, submitted = await self._job.take_over(self._prompts.submitted())
        self._prompts.put_back(unknown)
        if not self._has_position:
            self._prompts.skip(submitted)
        self._has_position = self._is_started = True

    async def _open(self, policy: TailPolicy) -> dict[str, Any] | None:
        """Opens the next round; None if all prompts are trained."""
        # More than any policy launches at once, unless it chooses an over-provision by itself.
        ahead = 2 * math.ceil(self._groups * policy["overProvision"])
        remaining = self._prompts.read_ahead(ahead)
        plan = await self._job.call("round.next", groupsPerStep=self._groups, remainingGroups=remaining, policy=policy)
        if plan["kind"] == "done":
            return None
        names = ("planId", "step", "kind", "neededGroups", "newGroups", "takeGroups")
        round_id = f"step-{plan['step']}-{plan['planId']}"[:120]
        await self._job.call("round.open", roundId=round_id, policy=policy, **{name: plan[name] for name in names})
        return {**plan, "roundId": round_id}

    async def _finished(self, round_id: str) -> AsyncGenerator[Group, None]:
        """Submits what the round needs, and yields all its groups from the beginning."""
        await self._submit(round_id)
        self._digests, self._cursor = [], None
        parts: dict[str, list[Any]] = {}
        while True:
            page = await self._job.call("round.results", roundId=round_id, cursor=self._cursor, waitMs=RESULTS_WAIT_MS)
            self._cursor = page["cursor"]
            for found in page["groups"]:
                samples = parts.setdefault(found["groupId"], [])
                samples.extend(found["samples"])
                if found.get("more"):
                    continue
                self._digests.append({"groupId": found["groupId"], "digest": found["digest"]})
                yield await self._group_of(found, parts.pop(found["groupId"]))
            if page["complete"]:
                self.metrics = ledger_metrics(page["ledger"]) if "ledger" in page else {}
                return
            if not page["groups"]:
                await self._submit(round_id)

    async def _group_of(self, found: dict[str, Any], samples: list[dict[str, Any]]) -> Group:
        prompt = self._prompts.find(found["groupId"])
        if prompt is None:
            prompt = await self._payloads.get(found["promptRef"])
        read = [await read_sample(self._payloads, sample) for sample in samples]
        read.sort(key=lambda sample: sample.index)
        return Group(found["groupId"], prompt, read, found["cuts"], found["firstStep"], found.get("domain"))

    async def _submit(self, round_id: str) -> None:
        """Submits the groups of the plan that are missing, and replacements that the round asks for."""
        status = await self._job.call("round.status", roundId=round_id)
        if status["state"] not in ("opening", "open"):
            return
        missing = status["newGroups"] - (status["roundGroups"] - status["takenGroups"])
        missing = max(missing, status["shortfallGroups"])
        while missing > 0:
            taken = self._prompts.take(min(missing, GROUPS_PER_SUBMIT))
            if not taken:
                if status["shortfallGroups"] > 0:
                    raise ValueError("The round waits for more groups, but there are no more prompts")
                return
            groups = [await self._submission(group_id, prompt) for group_id, prompt in taken]
            await self._job.call("round.submit", roundId=round_id, groups=groups)
            missing -= len(taken)

    async def _submission(self, group_id: str, prompt: PromptLike) -> dict[str, Any]:
        body: dict[str, Any] = {"groupId": group_id, **self._group_body}
        if isinstance(prompt, Mapping) and prompt.get("domain"):
            body["domain"] = prompt["domain"]
        wire = wire_prompt(prompt)
        if len(json.dumps(wire)) < INLINE_PROMPT_BYTES:
            return {**body, "prompt": wire}
        owner = {"job": self._job.name, "groupId": group_id}
        return {**body, "promptRef": await self._payloads.put(owner, "prompt", wire)}

    async def _close(self, step: int, yielded: dict[str, Group]) -> None:
        """Marks the yielded groups as trained."""
        assert self._round is not None
        read = {digest["groupId"] for digest in self._digests}
        trained = _samples_of(yielded)
        if read != set(yielded):
            # Redis was set back and has other groups now than those that were yielded before.
            await self._job.reconcile_step(step, trained)
            self._job.has_trained(step, trained)
            return
        body: dict[str, Any] = {"roundId": self._round["roundId"], "cursor": self._cursor}
        if len(self._digests) <= MOST_COMPARED_GROUPS:
            body["groups"] = self._digests
        await self._job.call("round.close", **body)
        self._job.has_trained(step, trained)


def _policy_of(policy: TailPolicy | str) -> TailPolicy:
    if not isinstance(policy, str):
        return policy
    over = 1.0 if policy == "wait" else 1.5
    # A step without a group that failed for good is accepted; `replace` would wait for another prompt.
    return {"name": policy, "overProvision": over, "shortfall": "accept-fewer"}  # type: ignore[typeddict-item]


def _samples_of(groups: dict[str, Group]) -> dict[str, int]:
    return {group_id: len(group.samples) for group_id, group in groups.items()}
