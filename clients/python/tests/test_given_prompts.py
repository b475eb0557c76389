"""`group.prompt` is the object that was given, through every interruption: a reward may read any of its fields."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

import pytest
from conftest import delete_job, lose_changes

from broomwagon import Client, Group, Rollout
from broomwagon._prompts import PromptLike

COUNT = 24
#: 3 groups of 6 launched ones are trained in a step: the others wait in the long-tail queue.
POLICY: Any = {"name": "resume", "overProvision": 2, "shortfall": "accept-fewer"}


def make_prompts() -> list[PromptLike]:
    """Prompts of each kind, as a new process makes them."""
    kinds: list[Callable[[int], PromptLike]] = [
        lambda number: {"text": f"What is {number} times 2?", "answer": 2 * number, "id": f"row-{number}"},
        lambda number: f"prompt {number}",
        lambda number: [{"role": "user", "content": f"Hello {number}"}],
        lambda number: [number + 1, 2, 3],
    ]
    return [kinds[number % len(kinds)](number) for number in range(COUNT)]


class Trainer:
    """The trainer of the README, with a reward that reads a field."""

    def __init__(self, client: Client, job: str) -> None:
        self.client, self.job = client, job
        self.trained: dict[str, int] = {}
        self.start()

    def start(self) -> None:
        """Creates the rollout and the prompts, as a new process does."""
        self.rollout = self.client.rollout(self.job, groups=3, samples=1, max_tokens=64)
        self.prompts = make_prompts()

    def reward(self, group: Group) -> None:
        number = int(group.id.removeprefix("row-"))
        assert group.prompt is self.prompts[number], group.prompt
        prompt: Any = group.prompt
        assert isinstance(prompt, (str, list)) or prompt["answer"] == 2 * number

    def round(self) -> AsyncGenerator[Group, None]:
        return self.rollout.round(self.prompts, POLICY)

    async def step(self) -> bool:
        step: dict[str, int] = {}
        async for group in self.round():
            self.reward(group)
            step[group.id] = step.get(group.id, 0) + 1
        for group_id, times in step.items():
            self.trained[group_id] = self.trained.get(group_id, 0) + times
        return bool(step)

    async def leave_in_round(self) -> None:
        """One group is read, and the process ends."""
        async with aclosing(self.round()) as groups:
            self.reward(await anext(groups))


async def between_rounds(trainer: Trainer) -> None:
    trainer.start()


async def in_an_open_round(trainer: Trainer) -> None:
    await trainer.leave_in_round()
    trainer.start()


async def by_a_break(trainer: Trainer) -> None:
    await trainer.leave_in_round()


async def by_a_loss_of_redis(trainer: Trainer) -> None:
    await trainer.leave_in_round()
    lose_changes(trainer.rollout)


async def by_a_restore(trainer: Trainer) -> None:
    tag = f"step-{trainer.rollout.step}"
    await trainer.rollout.save(tag)
    await trainer.leave_in_round()
    await trainer.rollout.restore(tag)


async def by_a_restore_in_a_new_process(trainer: Trainer) -> None:
    tag = f"step-{trainer.rollout.step}"
    await trainer.rollout.save(tag)
    await trainer.leave_in_round()
    trainer.start()
    await trainer.rollout.restore(tag)


async def by_a_takeover_while_it_lives(trainer: Trainer) -> None:
    left: Rollout = trainer.rollout
    groups = trainer.round()
    trainer.reward(await anext(groups))
    trainer.start()
    await trainer.leave_in_round()
    await groups.aclose()
    assert trainer.rollout is not left


INTERRUPTIONS: list[Callable[[Trainer], Awaitable[None]]] = [
    between_rounds,
    in_an_open_round,
    by_a_break,
    by_a_loss_of_redis,
    by_a_restore,
    by_a_restore_in_a_new_process,
    by_a_takeover_while_it_lives,
]


@pytest.mark.parametrize("interrupt", INTERRUPTIONS, ids=[each.__name__ for each in INTERRUPTIONS])
async def test_prompts_keep_their_fields(client: Client, served: str, interrupt: Callable[[Trainer], Any]) -> None:
    trainer = Trainer(client, served)
    assert await trainer.step()
    await interrupt(trainer)
    while await trainer.step():
        pass
    assert list(trainer.trained.values()) == [1] * COUNT


@pytest.mark.short
async def test_prompts_keep_their_fields_through_all_interruptions_in_turn(client: Client, served: str) -> None:
    trainer = Trainer(client, served)
    for interrupt in INTERRUPTIONS:
        await trainer.step()
        await interrupt(trainer)
    while await trainer.step():
        pass
    assert list(trainer.trained.values()) == [1] * COUNT


async def test_prompts_of_earlier_processes_are_freed_when_their_groups_have_ended(
    client: Client, served: str, caplog: pytest.LogCaptureFixture
) -> None:
    trainer = Trainer(client, served)
    await trainer.step()
    trainer.start()
    while await trainer.step():
        pass
    assert not trainer.rollout._prompts._earlier
    assert "was given to an earlier trainer" not in caplog.text
    await delete_job(client, served)
    trainer.start()
    await trainer.leave_in_round()
    # A process that gives other prompts gets the prompts from the payload store, and a warning.
    other = client.rollout(served, groups=3, samples=1, max_tokens=64)
    stored = [group.prompt async for group in other.round(iter(()), POLICY)]
    assert stored and all(isinstance(prompt, dict) and "answer" not in prompt for prompt in stored)
    assert "was given to an earlier trainer" in caplog.text
