"""One round: submits the groups that the round needs, and reads its groups."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from typing import Any

from . import errors
from ._arguments import InvalidArgument, encoded
from ._error import BroomwagonError
from ._job import Job
from ._payloads import Payloads
from ._prompts import PromptLike, PromptSource, domain_of, wire_prompt
from .results import Failure, Group, read_sample

logger = logging.getLogger("broomwagon")

#: Maximum number of groups of one submit: with their sampling parameters they fit a message.
GROUPS_PER_SUBMIT = 32
INLINE_PROMPT_BYTES = 24_000
#: Milliseconds that a call waits for the next group.
RESULTS_WAIT_MS = 4_000
#: Errors with which services, or JSON, refuse a prompt; a repeat is refused again.
REFUSALS = (errors.ValidationFailed, errors.PayloadTooLarge, errors.ContextTooLong)
#: Parameter of `Client.rollout`, by the field of a submission.
PARAMETERS = {
    "samples": "samples",
    "minSamples": "min_samples",
    "maxTokens": "max_tokens",
    "timeoutMs": "timeout",
    "sampling": "sampling",
}


class LostGroups:
    """Reads the groups that end without training.

    :param round_id: round of the groups; None: the last round, and the time after it
    """

    def __init__(self, job: Job, payloads: Payloads, prompts: PromptSource, round_id: str | None = None) -> None:
        self._job = job
        self._payloads = payloads
        self._prompts = prompts
        self._round_id = round_id
        self._read = 0

    async def read(self) -> list[Failure]:
        """The groups that have ended without training since the last call."""
        found = await self._job.lost_groups(self._round_id, self._read)
        self._read += len(found)
        return [await self._failure_of(group) for group in found]

    async def _failure_of(self, group: dict[str, Any]) -> Failure:
        prompt = self._prompts.find(group["groupId"])
        if prompt is None and "promptRef" in group:
            with suppress(errors.PayloadNotFound):
                prompt = await self._payloads.get(group["promptRef"])
        request_id = group.get("requestId")
        return Failure(
            group_id=group["groupId"],
            prompt=prompt,
            outcome=group["state"],
            reason=group["reason"],
            message=group.get("message"),
            sample=None if request_id is None else int(request_id.rpartition("/")[2]),
            first_step=group["firstStep"],
        )


class Round:
    """Reads an open round from its beginning.

    :param plan: plan or status of the round. Submitted groups are subtracted from its `newByDomain`
    :param group_body: fields of each submission
    """

    def __init__(
        self, job: Job, payloads: Payloads, prompts: PromptSource, group_body: dict[str, Any], plan: dict[str, Any]
    ) -> None:
        self._job = job
        self._payloads = payloads
        self._prompts = prompts
        self._group_body = group_body
        self._round_id = plan["roundId"]
        self._lost = LostGroups(job, payloads, prompts, plan["roundId"])
        self._new_by_domain: dict[str, int] | None = plan.get("newByDomain")
        #: Weight version of the pool at the opening of the round.
        self._weight_version = 0
        #: Digests of the groups that were read, for `round.close`.
        self.digests: list[dict[str, str]] = []
        self.cursor: str | None = None
        #: The `LedgerSummary` of the round, after its last group.
        self.ledger: dict[str, Any] | None = None
        #: Whether a group is replaced, so that another group may have to be submitted.
        self.needs_more = False
        #: Message of the last warning that nothing of the round runs.
        self._blocked: str | None = None

    async def groups(self) -> AsyncGenerator[Group | Failure, None]:
        """Submits the groups that the round needs, and yields all groups of the round from the beginning, also groups
        that end without training."""
        await self._submit()
        parts: dict[str, list[Any]] = {}
        while True:
            if self.needs_more:
                self.needs_more = False
                await self._submit()
            page = await self._job.call(
                "round.results", roundId=self._round_id, cursor=self.cursor, waitMs=RESULTS_WAIT_MS
            )
            self.cursor = page["cursor"]
            for found in page["groups"]:
                samples = parts.setdefault(found["groupId"], [])
                samples.extend(found["samples"])
                if found.get("more"):
                    continue
                self.digests.append({"groupId": found["groupId"], "digest": found["digest"]})
                yield await self._group_of(found, parts.pop(found["groupId"]))
            if page["complete"] or not page["groups"]:
                for failure in await self._lost.read():
                    yield failure
            if page["complete"]:
                self.ledger = page.get("ledger")
                return
            if not page["groups"]:
                await self._submit()

    async def _group_of(self, found: dict[str, Any], samples: list[dict[str, Any]]) -> Group:
        prompt = await self._prompt_of(found["groupId"], found["promptRef"])
        read = await asyncio.gather(*(read_sample(self._payloads, sample, self._weight_version) for sample in samples))
        read.sort(key=lambda sample: sample.index)
        return Group(
            id=found["groupId"],
            prompt=prompt,
            samples=read,
            cuts=found["cuts"],
            first_step=found["firstStep"],
            domain=found.get("domain"),
            excluded=found.get("excluded", False),
        )

    async def _prompt_of(self, group_id: str, ref: str) -> PromptLike:
        """The prompt as the caller gave it; otherwise the stored prompt, without other fields of the caller."""
        if (prompt := self._prompts.find(group_id)) is not None:
            return prompt
        logger.warning(
            "Group %s of job %s was given to an earlier trainer and not to this one: its prompt is read from the "
            "payload store, without fields of yours. Give each trainer the same prompts from the first one on",
            group_id,
            self._job.name,
        )
        stored: PromptLike = await self._payloads.get(ref)
        return stored

    async def _submit(self) -> None:
        """Submits the groups of the plan that are missing, and replacements that the round asks for."""
        status = await self._job.call("round.status", roundId=self._round_id)
        self._weight_version = status["weightVersion"]
        self._warn_if_blocked(status.get("blockedReason"))
        if status["state"] not in ("opening", "open"):
            return
        missing = status["newGroups"] - (status["roundGroups"] - status["takenGroups"])
        # `shortfallGroups` counts failed groups for each value of `shortfall`.
        accepts_fewer = status["policy"].get("shortfall") == "accept-fewer"
        replacements = 0 if accepts_fewer else status["shortfallGroups"]
        missing = max(missing, replacements)
        while missing > 0:
            taken = self._prompts.take(min(missing, GROUPS_PER_SUBMIT), self._new_by_domain)
            if not taken:
                if replacements > 0:
                    advice = "give the next round() more of them, or set shortfall to accept-fewer"
                    raise InvalidArgument(
                        f"The round waits for groups, but prompts have ended: {advice}", field="prompts"
                    )
                await self._plan_again()
                return
            try:
                groups = [await self._submission(group_id, prompt) for group_id, prompt in taken]
            except InvalidArgument:
                self._prompts.put_back(group_id for group_id, _ in taken)
                raise
            await self._add(groups)
            missing -= len(taken)

    def _warn_if_blocked(self, blocked: dict[str, Any] | None) -> None:
        message: str | None = blocked["message"] if blocked else None
        if blocked and message != self._blocked:
            kinds = [repr(kind) if kind else "built-in" for kind in blocked.get("workerKinds", [])]
            there = f" (workers that claim: {', '.join(kinds)})" if kinds else ""
            reason = blocked.get("reason", blocked["code"])
            logger.warning("Nothing of the round of job %s runs: %s: %s%s", self._job.name, reason, message, there)
        self._blocked = message

    async def _plan_again(self) -> None:
        """Cancels a round that can never have its groups, because prompts were refused since its plan.

        :raises RoundConflict: the round was cancelled; the next plan counts the prompts that are left
        """
        status = await self._job.call("round.status", roundId=self._round_id)
        left = ("failedGroups", "droppedGroups", "groupsRequeued")
        if status["roundGroups"] - sum(status[name] for name in left) < status["neededGroups"]:
            await self._job.call("round.cancel", roundId=self._round_id, mode="requeue")
            raise errors.RoundConflict("The round needs more prompts than are left; it is planned again")

    async def _add(self, groups: list[dict[str, Any]]) -> None:
        """Adds a page of groups. If the page is refused, sends each group alone to find the wrong group.

        :raises InvalidArgument: a prompt was refused, and is left out
        :raises DuplicateGroup: the job already had a group with the id of a prompt; the prompt is left out
        """
        try:
            await self._job.call("round.submit", roundId=self._round_id, groups=groups)
        except (*REFUSALS, errors.DuplicateGroup) as error:
            if len(groups) == 1:
                if isinstance(error, errors.DuplicateGroup):
                    # The prompt is right, but the job already had a group with its id.
                    self._prompts.ended(groups[0]["groupId"])
                    raise errors.DuplicateGroup(
                        f"{error.args[0]}; the prompt is left out. Give each trainer of the job the same prompts from "
                        "the first one on, which tells epochs apart; or leave ids out; or use another job",
                        field=error.field,
                        details=error.details,
                    ) from error
                # All groups have the same values in the other fields.
                name = (error.field or "").removeprefix("groups.0.").partition(".")[0]
                if name in PARAMETERS:
                    raise _of_parameter(error) from error
                if name not in ("groupId", "prompt", "promptRef", "domain"):
                    raise
                raise self._prompts.refuse(groups[0]["groupId"], error) from error
            left = deque(groups)
            try:
                while left:
                    await self._add([left.popleft()])
            finally:
                self._prompts.put_back(group["groupId"] for group in left)

    async def _submission(self, group_id: str, prompt: PromptLike) -> dict[str, Any]:
        """:raises InvalidArgument: JSON or the payload store cannot have the prompt, which is left out"""
        body: dict[str, Any] = {"groupId": group_id, **self._group_body}
        if domain := domain_of(prompt):
            body["domain"] = domain
        if isinstance(prompt, Mapping) and prompt.get("promptId"):
            body["promptId"] = prompt["promptId"]
        try:
            wire = wire_prompt(prompt)
            if len(encoded(wire)) < INLINE_PROMPT_BYTES:
                return {**body, "prompt": wire}
            owner = {"job": self._job.name, "groupId": group_id}
            return {**body, "promptRef": await self._payloads.put(owner, "prompt", wire)}
        except (*REFUSALS, TypeError) as error:
            raise self._prompts.refuse(group_id, error) from error


def _of_parameter(error: BroomwagonError) -> BroomwagonError:
    """Names the parameter of `Client.rollout` in an error about a field that all groups share."""
    field = str(error.field)
    name, dot, rest = field.removeprefix("groups.0.").partition(".")
    parameter = PARAMETERS[name] + dot + rest
    return type(error)(error.args[0].replace(field, parameter), field=parameter, details=error.details)
