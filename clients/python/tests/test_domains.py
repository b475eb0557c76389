"""Domain quotas: prompts are not submitted in the order of the data set, and are still trained once."""

from __future__ import annotations

from typing import Any

import pytest

from broomwagon import Client
from broomwagon._prompts import PromptSource
from broomwagon.protocol import TailPolicy

POLICY: TailPolicy = {"name": "wait", "overProvision": 1, "domainQuotas": {"math": 2, "code": 1}}


def prompts_of(*domains: str) -> list[dict[str, str]]:
    return [{"text": f"{domain} {index}", "domain": domain} for index, domain in enumerate(domains)]


@pytest.mark.short
async def test_each_step_has_its_share_of_each_domain(client: Client, served: str) -> None:
    prompts = prompts_of(*["math"] * 5, *["code"] * 3)
    rollout = client.rollout(served, groups=3, samples=1, max_tokens=64, priority=7)
    steps = []
    while step := [group async for group in rollout.round(prompts, POLICY)]:
        steps.append(sorted(str(group.domain) for group in step))
    assert steps == [["code", "math", "math"], ["code", "math", "math"], ["code", "math"]]


@pytest.mark.parametrize("how", ["another process", "a snapshot"])
async def test_prompts_that_were_passed_over_are_trained_after_a_restart(client: Client, served: str, how: str) -> None:
    prompts = prompts_of(*["math"] * 7, *["code"] * 3, "math")
    options: Any = {"groups": 3, "samples": 1, "max_tokens": 32}
    rollout = client.rollout(served, **options)
    trained = [group.id async for group in rollout.round(prompts, POLICY)]
    assert sorted(trained) == ["0", "1", "7"]
    if how == "a snapshot":
        await rollout.save("one")
        assert len([group async for group in rollout.round(prompts, POLICY)]) == 3
        await rollout.restore("one")
    else:
        async for _ in rollout.round(prompts, POLICY):
            break
        rollout = client.rollout(served, **options)
    while step := [group.id async for group in rollout.round(prompts, POLICY)]:
        trained.extend(step)
    assert sorted(trained, key=int) == [str(index) for index in range(len(prompts))]


def unknown_but(*known: str) -> Any:
    async def unknown(group_ids: list[str]) -> list[str]:
        return [group_id for group_id in group_ids if group_id not in known]

    return unknown


async def test_a_domain_that_redis_has_forgotten_counts_as_submitted() -> None:
    # Submitted were 0, 4 and 6 long ago, and 1 and 5 in the last rounds.
    source = PromptSource()
    source.give(prompts_of("a", "a", "a", "a", "b", "b", "c", "c", "b"))
    source.skip(5, 5)
    await source.find_submitted(unknown_but("1", "5"), 4)
    assert [group_id for group_id, _ in source.take(9)] == ["2", "3", "7", "8"]


async def test_prompts_without_domains_are_left_out_in_their_order() -> None:
    source = PromptSource()
    source.skip(3, 3)
    for batch, left in ((["a", "b"], []), (["c", "d"], ["3"]), (["e"], ["4"])):
        source.give(batch)
        await source.find_submitted(unknown_but(), 4)
        assert [group_id for group_id, _ in source.take(9)] == left
