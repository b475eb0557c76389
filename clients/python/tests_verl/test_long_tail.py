"""Short steps and tail steps of verl's trainer, with its sampler, its agent loops and its TransferQueue."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest
import ray
import transfer_queue as tq
from long_tail_trainer import BATCH, FAILS, SAMPLES, end
from omegaconf import OmegaConf
from verl.trainer.ppo.v1 import get_trainer_cls
from verl.utils.tensordict_utils import assign_non_tensor_data

from broomwagon.verl import long_tail
from broomwagon.verl._failures import SamplesFailed
from broomwagon.verl._submitted import list_groups

pytest_plugins = ["cluster", "long_tail_trainer"]

SHORT, LONG = 5, 40


def prompts(*lengths: int) -> list[dict[str, Any]]:
    return [{"raw_prompt": np.array(["p"], dtype=object), "index": np.array([length])} for length in lengths]


def step(trainer: Any, cut: int) -> list[tuple[int, list[int]]]:
    """Runs a training step that cuts `cut` groups. Returns number of tokens and weight versions of each sample."""
    trainer._add_batch_to_generate()
    trainer.on_sample_begin()
    batch, _ = trainer.replay_buffer.sample(global_steps=trainer.global_steps, partition_id="train", batch_size=BATCH)
    # Groups that are not limited end before the cut.
    ends_at = time.monotonic() + 60
    while sum(tag["status"] in long_tail.UNFINISHED for tag in list_groups().values()) > cut:
        assert time.monotonic() < ends_at, "the groups did not end"
        time.sleep(0.05)
    trainer.on_sample_end()
    found = [(tag["tokens"], tag["steps"]) for tag in batch.tags]
    for tokens, _ in found:
        assert tokens == list(range(3, 3 + len(tokens)))
    tq.kv_clear(keys=batch.keys, partition_id="train")
    trainer.on_step_end()
    trainer.global_steps += 1
    return sorted((len(tokens), steps) for tokens, steps in found)


async def test_cut_groups_wait_for_a_tail_step(trainer: Any, servers: dict[str, Any]) -> None:
    trainer.train_dataloader = prompts(SHORT, LONG, SHORT, LONG, *[SHORT] * 20)
    for server in servers.values():
        ray.get(server.limit.remote(3 + SHORT + 3))
    run = asyncio.to_thread
    # A batch of 2 starts 4 groups: the two long ones are cut with 8 tokens.
    assert await run(step, trainer, 2) == [(SHORT, [0, 0])] * (BATCH * SAMPLES)
    assert trainer._consume_sync_metrics()["training/long_tail/cut_groups"] == 2
    for server in servers.values():
        ray.get(server.raise_limit.remote())
    # A whole batch waits, so the next step continues it, without new groups.
    assert await run(step, trainer, 0) == [(LONG, [0, 1])] * (BATCH * SAMPLES)
    metrics = trainer._consume_sync_metrics()
    assert metrics == {
        "training/long_tail/is_tail_step": 1.0,
        "training/long_tail/new_groups": 0,
        "training/long_tail/held_groups": 0,
        "training/long_tail/continued_groups": 2,
        "training/long_tail/cut_groups": 0,
        "training/failed_samples": 0.0,
        "training/failed_groups": 0.0,
        "training/dropped_groups": 0.0,
    }
    assert await run(step, trainer, 0) == [(SHORT, [2, 2])] * (BATCH * SAMPLES)


async def test_each_step_continues_a_few_held_groups_beside_new_ones(trainer: Any, servers: dict[str, Any]) -> None:
    trainer._share = 0.5
    trainer.train_dataloader = prompts(SHORT, LONG, SHORT, LONG, *[SHORT] * 20)
    for server in servers.values():
        ray.get(server.limit.remote(3 + SHORT + 3))
    run = asyncio.to_thread
    assert await run(step, trainer, 2) == [(SHORT, [0, 0])] * (BATCH * SAMPLES)
    for server in servers.values():
        ray.get(server.raise_limit.remote())
    for version in (1, 2):
        held = 2 - version
        # Half of a batch of 2; the others of the 4 groups of the step are new.
        # The new groups of the first of these steps are enough for both.
        expected = [(SHORT, [1, 1])] * SAMPLES + [(LONG, [0, version])] * SAMPLES
        assert await run(step, trainer, held) == expected
        metrics = trainer._consume_sync_metrics()
        assert metrics["training/long_tail/is_tail_step"] == 0.0
        assert metrics["training/long_tail/continued_groups"] == 1
        assert metrics["training/long_tail/held_groups"] == held


async def test_failed_samples_are_reported_with_prompt_and_reason(
    trainer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    trainer.train_dataloader = prompts(FAILS, *[SHORT] * 20)
    run = asyncio.to_thread
    # verl's sampler replaces the group that fails.
    assert [length for length, _ in await run(step, trainer, 0)] == [SHORT] * (BATCH * SAMPLES)
    [failed] = trainer.failed_samples
    assert failed.group
    assert (failed.sample, int(failed.index), failed.step, failed.validate) == (1, FAILS, 1, False)
    assert list(failed.prompt) == ["p"]
    assert failed.reason == "ValueError('no answer for this prompt')"
    assert "1 samples have failed, and 0 groups were dropped: sample 1 of group" in caplog.text
    metrics = trainer._consume_sync_metrics()
    assert (metrics["training/failed_samples"], metrics["training/failed_groups"]) == (1, 1)
    # The step of `separate_async` has several batches.
    trainer.global_steps -= 1
    await run(trainer.on_sample_end)
    assert list(trainer.failed_samples) == [failed]
    await run(trainer.on_step_end)
    trainer.global_steps += 1
    await run(step, trainer, 0)
    assert list(trainer.failed_samples) == []


@pytest.mark.parametrize("restarts", [False, True])
async def test_groups_that_are_too_old_for_the_sampler_are_reported(
    make: Callable[[], Awaitable[Any]], caplog: pytest.LogCaptureFixture, restarts: bool
) -> None:
    run = asyncio.to_thread
    trainer = await make()
    trainer.train_dataloader = given = prompts(*range(4, 40))
    trained = await run(step, trainer, 0)
    last = trainer.global_steps
    if restarts:
        end(trainer)
        trainer = await make()
        trainer.train_dataloader = given[4:]
        trainer.global_steps = last
        await run(trainer._reissue_inflight_prompts)
    # The two groups that have ended and were not trained become older than verl's sampler allows.
    trainer.global_steps += 4
    trained += await run(step, trainer, 0)
    dropped = list(trainer.failed_samples)
    assert [(each.outcome, each.sample, each.step, list(each.prompt)) for each in dropped] == [
        ("dropped", None, 1, ["p"])
    ] * 2
    assert {each.reason for each in dropped} == {"too old: 6 steps, and max_off_policy_threshold is 4"}
    assert "2 groups were dropped: group" in caplog.text
    assert trainer._consume_sync_metrics()["training/dropped_groups"] == 2
    # 4 groups, 2 more, and 2 in the place of the dropped ones: each is trained, reported, or waits.
    named = {length for length, _ in trained} | {int(each.index) for each in dropped}
    assert named < {*range(4, 12)}
    assert len(named) + len(list_groups()) == 8


async def test_a_group_with_equal_rewards_that_the_sampler_drops_is_reported(
    trainer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer.train_dataloader = prompts(*[SHORT] * 20)
    filtered: set[str] = set()

    def find_equal(partition: str) -> tuple[set[str], Counter[float]]:
        finished = trainer.replay_buffer.finished_keys[partition]
        if not filtered:
            filtered.update(sorted(finished)[:1])
        return filtered & finished, Counter()

    monkeypatch.setattr(trainer.replay_buffer, "_dapo_filtered_keys", find_equal)
    trainer.replay_buffer.filter_groups_metric = "score"
    await asyncio.to_thread(step, trainer, 0)
    [dropped] = trainer.failed_samples
    assert {dropped.group} == filtered
    assert "equal values of score" in dropped.reason


async def test_a_failed_sample_ends_the_training_by_setting(trainer: Any) -> None:
    trainer._on_failed = "raise"
    trainer.train_dataloader = prompts(FAILS, *[SHORT] * 20)
    with pytest.raises(SamplesFailed, match="1 samples have failed, and 0 groups were dropped: sample 1 of group"):
        await asyncio.to_thread(step, trainer, 0)


def validate(trainer: Any) -> list[int]:
    """Generates a prompt as verl's `_validate` does. Returns the number of tokens of each sample."""
    batch = trainer._next_train_batch(1)
    assign_non_tensor_data(batch, "validate", True)
    tag = {"is_prompt": True, "status": "pending", "global_steps": trainer.global_steps}
    tq.kv_batch_put(keys=list(batch["uid"]), partition_id="val", tags=[tag])
    trainer.agent_loop_manager.generate_sequences(batch)
    found, _ = trainer.replay_buffer.sample(global_steps=trainer.global_steps, partition_id="val", batch_size=1)
    return [len(tag["tokens"]) for tag in found.tags]


def asked(servers: dict[str, Any]) -> int:
    """Requests that the engines have got."""
    return sum(len(ray.get(server.requests.remote())) for server in servers.values())


async def test_a_validation_does_not_wait_for_held_groups_and_leaves_them(
    trainer: Any, servers: dict[str, Any]
) -> None:
    trainer.train_dataloader = prompts(SHORT, LONG, SHORT, LONG, *[SHORT] * 20)
    for server in servers.values():
        ray.get(server.limit.remote(3 + SHORT + 3))
    run = asyncio.to_thread
    await run(step, trainer, 2)
    held, before = set(trainer._held), asked(servers)
    for server in servers.values():
        ray.get(server.raise_limit.remote())
    assert await asyncio.wait_for(run(validate, trainer), 60) == [SHORT]
    assert asked(servers) == before + 1
    assert len(held) == 2
    assert long_tail._unfinished(list_groups()) == held
    assert await run(step, trainer, 0) == [(LONG, [0, 1])] * (BATCH * SAMPLES)


async def test_a_training_that_starts_again_generates_held_groups_again(
    make: Callable[[], Awaitable[Any]], servers: dict[str, Any]
) -> None:
    first = await make()
    first.train_dataloader = prompts(SHORT, LONG, SHORT, LONG)
    for server in servers.values():
        ray.get(server.limit.remote(3 + SHORT + 3))
    run = asyncio.to_thread
    await run(step, first, 2)
    end(first)
    for server in servers.values():
        ray.get(server.raise_limit.remote())
    second = await make()
    second.train_dataloader = prompts(*[SHORT] * 20)
    second.global_steps = first.global_steps
    assert await run(second._reissue_inflight_prompts) == 2
    trained = await run(step, second, 0)
    # The two groups of before count as groups of this step.
    assert second._step_metrics["new_groups"] == 2
    # The surplus of this step is trained first in the next step.
    trained += await run(step, second, 0)
    assert sorted(trained) == [(SHORT, [1, 1])] * 4 + [(LONG, [1, 1])] * 4


async def test_a_group_that_becomes_too_old_is_continued_before(trainer: Any, servers: dict[str, Any]) -> None:
    trainer.train_dataloader = prompts(LONG, *[SHORT] * 40)
    for server in servers.values():
        ray.get(server.limit.remote(3 + SHORT + 3))
    run = asyncio.to_thread
    new = 0
    for _ in range(3):
        assert [tokens for tokens, _ in await run(step, trainer, 1)] == [SHORT] * (BATCH * SAMPLES)
        new += trainer._step_metrics["new_groups"]
    for server in servers.values():
        ray.get(server.raise_limit.remote())
    # Groups that have ended before would be enough for a batch.
    assert (await run(step, trainer, 0)).count((LONG, [0, 3])) == SAMPLES
    new += trainer._step_metrics["new_groups"]
    assert trainer._step_metrics["is_tail_step"] == 1.0
    # The old group has not run in the steps between.
    assert asked(servers) == SAMPLES * (new + 1)


async def test_a_tail_step_ends_when_a_process_of_agent_loops_has_died(trainer: Any, servers: dict[str, Any]) -> None:
    trainer.train_dataloader = prompts(SHORT, LONG, SHORT, LONG, *[SHORT] * 20)
    for server in servers.values():
        ray.get(server.limit.remote(3 + SHORT + 3))
    run = asyncio.to_thread
    await run(step, trainer, 2)
    await run(trainer._add_batch_to_generate)
    assert trainer._step_metrics["is_tail_step"] == 1.0
    for worker in trainer.agent_loop_manager.agent_loop_workers:
        ray.kill(worker)
    with pytest.raises(ray.exceptions.RayActorError):
        await run(trainer.on_sample_begin)


async def test_a_group_that_ends_before_the_abort_is_not_held(trainer: Any) -> None:
    tq.kv_put(key="ended", partition_id="train", tag={"is_prompt": True, "status": "pending", "global_steps": 1})
    await asyncio.to_thread(trainer.on_sample_end)
    assert trainer._held == {"ended"}
    tq.kv_put(key="ended", partition_id="train", tag={"status": "finished"})
    trainer.train_dataloader = prompts(*[SHORT] * 20)
    await asyncio.to_thread(trainer._add_batch_to_generate)
    # The group that has ended is one of the 4 groups of the short step, so 3 are new.
    assert trainer._step_metrics == {"is_tail_step": 0.0, "new_groups": 3, "held_groups": 0, "continued_groups": 0}
    await asyncio.to_thread(trainer.on_step_end)


@pytest.mark.parametrize(
    ("setting", "value", "threshold", "named"),
    [
        ("over_provision", 0.5, 8, "over_provision"),
        ("over_provision", 2, 1, "threshold"),
        ("max_longtail_share", 0, 8, "max_longtail_share"),
        ("max_longtail_share", 1.5, 8, "max_longtail_share"),
    ],
)
def test_a_wrong_setting_is_refused(setting: str, value: float, threshold: int, named: str) -> None:
    kind = get_trainer_cls("broomwagon_long_tail")
    settings = {"broomwagon": {setting: value}, "sampler": {"max_off_policy_threshold": threshold}}
    with pytest.raises(ValueError, match=named):
        kind(OmegaConf.create({"trainer": {"v1": settings}}))


def test_a_wrong_way_to_report_failed_samples_is_refused() -> None:
    settings = OmegaConf.create({"trainer": {"v1": {"broomwagon": {"on_failed": "yield"}}}})
    with pytest.raises(ValueError, match="on_failed is one of"):
        get_trainer_cls("broomwagon_sync")(settings)
