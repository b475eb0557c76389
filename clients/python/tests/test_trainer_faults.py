"""Rounds of a Redis that was set back, and of services that fail."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import delete_job, lose_changes, step_of

from broomwagon import BroomwagonError, Client, Rollout, _plan, errors


async def test_a_round_continues_after_redis_was_set_back(client: Client, served: str) -> None:
    prompts = [f"prompt {index}" for index in range(4)]
    rollout = client.rollout(served, groups=4, samples=1, max_tokens=32)
    trained = []
    async for group in rollout.round(prompts, "wait"):
        trained.append(str(group.prompt))
        lose_changes(rollout)
    assert sorted(trained) == prompts
    assert (await client.call("job.status", {"job": served}))["requests"]["trained"] == 4


async def test_steps_of_a_job_that_redis_has_lost_are_counted_once(client: Client, served: str) -> None:
    prompts = [f"prompt {index}" for index in range(6)]
    rollout = client.rollout(served, groups=2, samples=1, max_tokens=32)
    trained = await step_of(rollout, prompts)
    step = rollout.round(prompts, "wait")
    trained.append(str((await anext(step)).prompt))
    await delete_job(client, served)
    lose_changes(rollout)
    trained += [str(group.prompt) async for group in step]
    assert rollout.step == 2
    while more := await step_of(rollout, prompts):
        trained += more
    assert sorted(trained) == prompts
    summary = (await client.call("job.ledger", {"job": served}))["summary"]
    assert summary["reconciled"]["samples"] + summary["trained"]["samples"] == 6


async def test_a_job_that_redis_has_lost_changes_of_is_saved_and_restored(client: Client, served: str) -> None:
    prompts = [f"prompt {index}" for index in range(4)]
    rollout = client.rollout(served, groups=2, samples=1, max_tokens=32)
    first = await step_of(rollout, prompts)
    lose_changes(rollout)
    await rollout.save("step-1")
    await step_of(rollout, prompts)
    lose_changes(rollout)
    assert await rollout.restore("step-1") == 1
    assert sorted(first + await step_of(rollout, prompts)) == prompts


class Faults:
    """Records the calls of a trainer, and makes some of them fail."""

    def __init__(self, rollout: Rollout, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[str] = []
        self.failing: dict[str, list[Exception]] = {}
        call = rollout._job.call

        async def call_with_faults(operation: str, **body: Any) -> Any:
            self.calls.append(operation)
            if failing := self.failing.get(operation):
                raise failing.pop()
            return await call(operation, **body)

        monkeypatch.setattr(rollout._job, "call", call_with_faults)


async def test_a_stale_plan_is_made_again(client: Client, served: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rollout = client.rollout(served, groups=2, samples=1, max_tokens=32)
    faults = Faults(rollout, monkeypatch)
    faults.failing["round.open"] = [errors.PlanStale("The state has changed") for _ in range(2)]
    assert sorted(await step_of(rollout, ["a", "b"])) == ["a", "b"]
    assert faults.calls.count("round.next") == 3


@pytest.mark.parametrize("error", [errors.GenerationChanged, errors.RoundMismatch, errors.PlanStale])
async def test_takeovers_and_plans_without_a_group_end(
    client: Client, served: str, monkeypatch: pytest.MonkeyPatch, error: type[BroomwagonError]
) -> None:
    monkeypatch.setattr(_plan, "FIRST_PAUSE", 0.001)
    rollout = client.rollout(served, groups=2, samples=1, max_tokens=32)
    faults = Faults(rollout, monkeypatch)
    faults.failing["round.open"] = [error("always") for _ in range(100)]
    with pytest.raises(error):
        await step_of(rollout, ["a", "b"])
    assert faults.calls.count("round.open") == _plan.MAX_TRIES + 1
    faults.failing.clear()
    assert sorted(await step_of(rollout, ["a", "b"])) == ["a", "b"]


async def test_a_round_that_raised_does_not_yield_its_groups_again(
    client: Client, served: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts = [f"prompt {index}" for index in range(6)]
    rollout = client.rollout(served, groups=3, samples=1, max_tokens=32)
    faults = Faults(rollout, monkeypatch)
    trained: list[str] = []
    get_all = rollout._payloads.get_all
    failing = [errors.Timeout("of the payload store")]

    async def get_with_fault(refs: list[str]) -> list[Any]:
        if len(trained) == 1 and failing:
            raise failing.pop()
        return await get_all(refs)

    monkeypatch.setattr(rollout._payloads, "get_all", get_with_fault)

    async def train_step() -> bool:
        before = len(trained)
        async for group in rollout.round(prompts, "wait"):
            trained.append(str(group.prompt))
        return len(trained) > before

    # The first error comes after the first group, the second after the last group.
    with pytest.raises(errors.Timeout):
        await train_step()
    assert [str(group.prompt) for group in rollout.yielded] == trained
    assert len(trained) == 1
    faults.failing["round.close"] = [errors.Timeout("of a service")]
    with pytest.raises(errors.Timeout):
        await train_step()
    assert (len(trained), rollout.step) == (3, 0)
    while await train_step():
        pass
    assert sorted(trained) == prompts
    assert (rollout.step, rollout.yielded) == (2, [])
    assert (await rollout.ledger())["rollout/samples"] == 6
