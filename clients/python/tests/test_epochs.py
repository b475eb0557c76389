"""Several epochs over a data set, and the same job again."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

import pytest

from broomwagon import Client, TailPolicyName

ROWS: list[Any] = [{"id": f"row-{index}", "text": f"prompt {index}"} for index in range(6)]


@pytest.mark.parametrize("policy", ["wait", "resume"])
async def test_ids_of_a_data_set_are_trained_once_in_each_epoch(
    client: Client, served: str, policy: TailPolicyName
) -> None:
    trained: Counter[str] = Counter()
    ids: set[str] = set()
    # Each rollout stands for a trainer that starts again after each step.
    for _ in range(10):
        rollout = client.rollout(served, groups=4, samples=1, max_tokens=8)
        groups = [group async for group in rollout.round(iter(ROWS * 2), policy)]
        if not groups:
            break
        ids.update(group.id for group in groups)
        trained.update(group.prompt["id"] for group in groups)  # type: ignore[call-overload,index]
    assert trained == {row["id"]: 2 for row in ROWS}
    assert ids == {f"row-{index}{epoch}" for index in range(6) for epoch in ("", "#2")}


async def test_a_job_that_is_trained_says_so_once(
    client: Client, served: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, logger="broomwagon")

    async def train(times: int) -> None:
        rollout = client.rollout(served, groups=2, samples=1, max_tokens=8)
        for _ in range(times):
            [group async for group in rollout.round(ROWS[:2], "wait")]

    def said() -> int:
        return sum("under another job name" in record.getMessage() for record in caplog.records)

    await train(3)
    assert said() == 0
    await train(2)
    assert said() == 1
