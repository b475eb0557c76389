"""How a trainer opens its next round."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from difflib import get_close_matches
from itertools import count
from typing import Any, get_args

from . import errors
from ._arguments import InvalidArgument, check_number
from ._error import BroomwagonError
from ._job import Job
from ._names import to_protocol
from ._prompts import PromptSource
from .protocol import TailPolicy, TailPolicyName

#: Maximum number of successive takeovers, or plans, without a group.
MAX_TRIES = 10
#: Seconds before the second try. Each further try doubles the time.
FIRST_PAUSE = 0.05
MAX_PAUSE = 2.0


async def open_round(
    job: Job, prompts: PromptSource, groups: int, policy: TailPolicy, options: dict[str, Any]
) -> dict[str, Any] | None:
    """Plans and opens a round of `groups` groups. None if all prompts are trained.

    :param options: further fields of `round.open`
    """
    remaining = prompts.read_ahead(prompts_ahead(policy, groups))
    terms = {"groupsPerStep": groups, "remainingGroups": remaining, "policy": policy}
    if "domainQuotas" in policy:
        terms["remainingByDomain"] = prompts.waiting_by_domain()
    names = ("planId", "step", "kind", "neededGroups", "newGroups", "takeGroups")
    for tries in count():
        plan: dict[str, Any] = await job.call("round.next", **terms)
        if plan["kind"] == "done":
            return None
        await job.make()
        round_id = f"step-{plan['step']}-{plan['planId']}"[:120]
        try:
            fields = {**options, **{name: plan[name] for name in names}}
            await job.call("round.open", roundId=round_id, policy=policy, **fields)
            return {**plan, "roundId": round_id}
        except errors.PlanStale as error:
            # The plan is stale, for example because the long-tail queue has changed.
            await pause_between_tries(tries, error)
    raise AssertionError("unreachable")


def prompts_ahead(policy: TailPolicy, groups: int) -> int:
    """Number of prompts to read before a round: more than a policy launches at once, if it does not choose its
    over-provision itself. With quotas, enough prompts of each domain."""
    return (8 if "domainQuotas" in policy else 2) * math.ceil(groups * policy.get("overProvision", 1))


async def pause_between_tries(tries: int, error: BroomwagonError) -> None:
    """:raises BroomwagonError: the error, after the last try"""
    if tries >= MAX_TRIES:
        raise error
    if tries > 0:
        await asyncio.sleep(min(MAX_PAUSE, FIRST_PAUSE * 2.0 ** (tries - 1)))


def policy_of(policy: TailPolicy | Mapping[str, Any] | str) -> TailPolicy:
    """The policy of a name, with the usual settings; or a given policy, with names in camelCase or snake_case.

    :raises InvalidArgument: a name is unknown, or the number of prompts to read cannot be computed
    """
    if not isinstance(policy, str):
        chosen = to_protocol("policy", policy, TailPolicy)
        _check_name(chosen.get("name"))
        if "overProvision" in chosen:
            chosen["overProvision"] = check_number("policy.overProvision", chosen["overProvision"])
        return chosen  # type: ignore[return-value]
    _check_name(policy)
    over = {} if policy == "auto" else {"overProvision": 1.0 if policy == "wait" else 1.5}
    # If a group fails for good, the step is trained without it; `replace` would wait for another prompt.
    return {"name": policy, **over, "shortfall": "accept-fewer"}  # type: ignore[typeddict-item]


def _check_name(name: object) -> None:
    names = get_args(TailPolicyName)
    if name not in names:
        close = get_close_matches(str(name), names, 1)
        advice = f"did you mean {close[0]}?" if close else f"there are {', '.join(names)}"
        raise InvalidArgument(f"There is no tail policy {name!r}: {advice}", field="policy.name")
