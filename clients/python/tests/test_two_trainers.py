"""Trainers that start together on one new job: one trains it, and the other learns that it does not."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from broomwagon import Client, InvalidArgument, Rollout, errors

PROMPTS = [f"prompt {index}" for index in range(6)]


class MeetingPoint:
    """A barrier: trainers continue when all of them have arrived."""

    def __init__(self, count: int) -> None:
        self._left = count
        self._all_are_here = asyncio.Event()

    async def arrive(self) -> None:
        self._left -= 1
        if self._left <= 0:
            self._all_are_here.set()
        await asyncio.wait_for(self._all_are_here.wait(), 60)


def meet_after(operation: str, rollouts: list[Rollout], monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets trainers continue after their first call of the operation only when all of them have its answer."""
    point = MeetingPoint(len(rollouts))

    def wait_in(rollout: Rollout) -> None:
        send = rollout._job._send
        has_met = False

        async def send_and_meet(called: str, body: dict[str, Any]) -> Any:
            nonlocal has_met
            if called != operation or has_met:
                return await send(called, body)
            has_met = True
            try:
                return await send(called, body)
            finally:
                await point.arrive()

        monkeypatch.setattr(rollout._job, "_send", send_and_meet)

    for rollout in rollouts:
        wait_in(rollout)


async def train(rollout: Rollout) -> tuple[list[str], Exception | None]:
    trained: list[str] = []
    try:
        while True:
            step = [group.id async for group in rollout.round(PROMPTS, "wait")]
            trained += step
            if not step:
                return trained, None
    except Exception as error:
        return trained, error


@pytest.mark.short
@pytest.mark.parametrize("operation", ["round.takeover", "round.next"])
async def test_one_of_the_trainers_that_found_no_job_trains_it(
    client: Client, served: str, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    rollouts = [client.rollout(served, groups=2, samples=1, max_tokens=16) for _ in range(3)]
    meet_after(operation, rollouts, monkeypatch)
    ends = await asyncio.gather(*(train(rollout) for rollout in rollouts))
    winners = [trained for trained, error in ends if error is None]
    assert len(winners) == 1
    assert sorted(winners[0]) == [str(index) for index in range(6)]
    others = [end for end in ends if end[1] is not None]
    assert [(trained, type(error)) for trained, error in others] == [([], errors.Fenced)] * 2
    assert (await client.call("job.status", {"job": served}))["requests"]["trained"] == 6


async def test_a_trainer_that_found_no_job_and_comes_late_trains_nothing(client: Client, served: str) -> None:
    late = client.rollout(served, groups=2, samples=1, max_tokens=16)
    await late._take_over()
    trained, error = await train(client.rollout(served, groups=2, samples=1, max_tokens=16))
    assert (len(trained), error) == (6, None)
    trained, error = await train(late)
    assert trained == [] and isinstance(error, errors.Fenced)


@pytest.mark.short
async def test_a_rollout_on_a_rank_above_0_is_refused(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    options: Any = {"groups": 1, "samples": 1, "max_tokens": 8}
    monkeypatch.setenv("RANK", "3")
    with pytest.raises(InvalidArgument, match="one trainer") as refused:
        client.rollout("job", **options)
    assert refused.value.field == "any_rank"
    assert client.rollout("job", **options, any_rank=True)
    for rank in ("0", "", "none"):
        monkeypatch.setenv("RANK", rank)
        assert client.rollout("job", **options)
