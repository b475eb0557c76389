"""Rounds: every prompt is trained once, also when the trainer is started again."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from conftest import lose_changes, step_of, until_set

from broomwagon import Client, Group, InvalidArgument, Rollout, errors
from broomwagon._progress import Progress
from broomwagon._prompts import PromptLike, wire_prompt

if TYPE_CHECKING:
    from broomwagon.protocol import TailPolicy


async def train(rollout: Rollout, prompts: list[str]) -> list[Group]:
    """All steps of a data set."""
    trained: list[Group] = []
    while step := [group async for group in rollout.round(prompts)]:
        trained.extend(step)
    return trained


@pytest.mark.short
async def test_each_prompt_is_trained_once(client: Client, served: str) -> None:
    prompts = [f"What is {index} times {index}?" for index in range(7)]
    rollout = client.rollout(served, groups=3, samples=2, max_tokens=64)
    trained = await train(rollout, prompts)
    assert sorted(str(group.prompt) for group in trained) == sorted(prompts)
    assert rollout.step == 3
    for group in trained:
        assert [sample.index for sample in group.samples] == [0, 1]
        for sample in group.samples:
            assert len(sample.token_ids) == sample.token_count > 0
            assert sample.text
    metrics = rollout.metrics
    assert metrics["training/global_step"] == 3
    assert metrics["response_length/min"] <= metrics["response_length/mean"] <= metrics["response_length/max"]
    assert (await rollout.ledger())["rollout/samples"] == 14
    assert (await client.call("pool.ledger", {}))["summary"]["trained"]["samples"] >= 14


@pytest.mark.short
async def test_groups_with_equal_rewards_are_replaced(client: Client, served: str) -> None:
    rollout = client.rollout(served, groups=2, samples=2, max_tokens=32)
    prompts = [f"prompt {index}" for index in range(7)]
    policy: TailPolicy = {"name": "wait", "overProvision": 1, "equalRewards": "replace", "shortfall": "accept-fewer"}
    steps: list[list[str]] = []
    seen: list[str] = []
    while True:
        trained = []
        async for group in rollout.round(prompts, policy):
            seen.append(group.id)
            # Every other group has equal rewards, from which nothing can be learned.
            if await rollout.reward(group, [1, int(group.id) % 2]):
                trained.append(group.id)
        if not trained:
            break
        steps.append(trained)
        assert rollout.metrics["rollout/samples"] == 2 * len(trained)
    # Each step but the last has all its groups: at the end no prompts are left to replace a group.
    assert all(len(step) == 2 for step in steps[:-1])
    assert sum(int(group_id) % 2 for step in steps for group_id in step) <= 2
    assert sorted(seen) == [str(index) for index in range(7)]
    summary = await rollout.ledger()
    assert summary["rollout/excluded_groups"] == 7 - sum(len(step) for step in steps)
    with pytest.raises(ValueError, match="finite"):
        async for group in rollout.round(["another"], policy):
            await rollout.reward(group, [1, float("inf")])
    with pytest.raises(errors.ValidationFailed):
        async for group in rollout.round([], policy):
            await rollout.reward(group, [1])


@pytest.mark.short
async def test_a_round_that_lacks_prompts_goes_on_with_more(client: Client, served: str) -> None:
    await client.call("request.abort", {"abortId": uuid4().hex, "job": served, "groupId": "early"})
    rollout = client.rollout(served, groups=2, samples=1, max_tokens=32)
    policy: TailPolicy = {"name": "wait", "overProvision": 1, "shortfall": "replace"}
    seen: list[str] = []
    with pytest.raises(InvalidArgument, match="prompts have ended") as refused:
        async for group in rollout.round([{"id": "early", "text": "a"}, "b"], policy):
            seen.append(group.id)
    assert refused.value.field == "prompts"
    async for group in rollout.round(["c"], policy):
        seen.append(group.id)
    assert sorted(seen) == ["1", "2"]
    assert rollout.step == 1


async def test_a_round_takes_what_it_needs_of_an_iterator(client: Client, served: str) -> None:
    rollout = client.rollout(served, groups=2, samples=1, max_tokens=32)
    prompts = (f"prompt {index}" for index in range(5))
    steps = [await step_of(rollout, prompts) for _ in range(4)]
    assert [len(step) for step in steps] == [2, 2, 1, 0]
    assert sorted(prompt for step in steps for prompt in step) == [f"prompt {index}" for index in range(5)]


async def test_batches_may_be_given_one_by_one(client: Client, served: str) -> None:
    rollout = client.rollout(served, groups=2, samples=1, max_tokens=32)
    batches = [["a", "b"], ["c", "d"]]
    assert [sorted(await step_of(rollout, batch)) for batch in batches] == batches


@pytest.mark.short
async def test_a_loop_that_is_left_begins_again(client: Client, served: str) -> None:
    prompts = ["a", "b", "c", "d"]
    rollout = client.rollout(served, groups=2, samples=1, max_tokens=32)
    async for _ in rollout.round(prompts):
        break
    assert rollout.step == 0
    trained = await train(rollout, prompts)
    assert sorted(str(group.prompt) for group in trained) == prompts


@pytest.mark.parametrize("way", ["break", "error", "cancellation"])
async def test_a_loop_that_is_left_repeats_no_group_that_is_named(client: Client, served: str, way: str) -> None:
    prompts = ["a", "b", "c", "d"]
    rollout = client.rollout(served, groups=2, samples=1, max_tokens=32)
    is_in_body = asyncio.Event()

    async def begin() -> None:
        async for group in rollout.round(prompts, "wait"):
            assert rollout.yielded == [group]
            is_in_body.set()
            if way == "break":
                break
            if way == "error":
                raise KeyError("of the trainer")
            await asyncio.Event().wait()

    named: list[Group] = []
    beginning = asyncio.create_task(begin())
    beginning.add_done_callback(lambda _: named.extend(rollout.yielded))
    await until_set(is_in_body)
    if way == "cancellation":
        beginning.cancel()
    await asyncio.wait((beginning,))
    named += rollout.yielded
    trained = named + await train(rollout, prompts)
    assert sorted(str(group.prompt) for group in trained) == prompts
    assert rollout.step == 2


async def test_a_loop_that_is_left_and_not_closed_begins_again(client: Client, served: str) -> None:
    prompts = ["a", "b", "c", "d"]
    rollout = client.rollout(served, groups=2, samples=1, max_tokens=32)
    left = rollout.round(prompts, "wait")
    await anext(left)
    second = rollout.round(prompts, "wait")
    trained = [str((await anext(second)).prompt)]
    # Python closes the first loop later, when it notices that nobody uses it any more.
    await left.aclose()
    trained += [str(group.prompt) async for group in second]
    assert sorted(trained) == ["a", "b"]
    assert sorted(await step_of(rollout, prompts)) == ["c", "d"]


async def test_another_process_continues_and_fences_the_first(client: Client, served: str) -> None:
    prompts = [f"prompt {index}" for index in range(6)]
    first = client.rollout(served, groups=2, samples=1, max_tokens=32)
    trained = [group async for group in first.round(prompts)]
    async for _ in first.round(prompts):
        break
    second = client.rollout(served, groups=2, samples=1, max_tokens=32)
    trained += await train(second, prompts)
    assert sorted(group.id for group in trained) == [str(index) for index in range(6)]
    assert sorted(str(group.prompt) for group in trained) == prompts
    for _ in range(2):
        with pytest.raises(errors.Fenced):
            await step_of(first, prompts)
        with pytest.raises(errors.Fenced):
            await first.save("step-1")
    assert await step_of(second, prompts) == []


async def test_a_prompt_may_have_any_form_and_size(client: Client, served: str) -> None:
    rollout = client.rollout(served, groups=4, samples=1, max_tokens=16, sampling={"logprobs": True})
    long = "word " * 20_000
    prompts: list[PromptLike] = [
        {"id": "chat", "messages": [{"role": "user", "content": "Hello"}], "answer": 42, "domain": "small-talk"},
        [1, 2, 3],
        [{"role": "user", "content": "Hello"}],
        long,
    ]
    groups = {group.id: group async for group in rollout.round(prompts, "wait")}
    assert set(groups) == {"chat", "1", "2", "3"}
    assert groups["chat"].prompt == prompts[0]
    assert groups["chat"].domain == "small-talk"
    assert groups["3"].prompt == long
    sample = groups["1"].samples[0]
    assert sample.logprobs is not None and len(sample.logprobs) == len(sample.token_ids)
    assert wire_prompt([7, 8]) == {"promptTokenIds": [7, 8]}


async def test_the_samples_of_a_group_are_read_at_the_same_time(
    client: Client, served: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rollout = client.rollout(served, groups=1, samples=4, max_tokens=16)
    all_asked = asyncio.Event()
    asked: list[str] = []
    get = rollout._payloads.get

    async def get_when_all_ask(ref: str) -> Any:
        asked.append(ref)
        if len(asked) == 4:
            all_asked.set()
        await until_set(all_asked)
        return await get(ref)

    monkeypatch.setattr(rollout._payloads, "get", get_when_all_ask)
    [group] = await asyncio.wait_for(_groups_of(rollout, ["a"]), 60)
    assert [sample.index for sample in group.samples] == [0, 1, 2, 3]


async def _groups_of(rollout: Rollout, prompts: list[str]) -> list[Group]:
    return [group async for group in rollout.round(prompts, "wait")]


async def test_a_snapshot_restores_the_step_and_the_position(client: Client, served: str) -> None:
    prompts = [f"prompt {index}" for index in range(6)]
    rollout = client.rollout(served, groups=2, samples=1, max_tokens=32)
    async for _ in rollout.round(prompts, "wait"):
        pass
    await rollout.save("step-1")
    async for _ in rollout.round(prompts, "wait"):
        pass
    assert await rollout.restore("step-1") == 1
    # The step that was undone must not be reconciled as trained.
    lose_changes(rollout)
    again = [sorted(await step_of(rollout, prompts)) for _ in range(3)]
    assert again == [["prompt 2", "prompt 3"], ["prompt 4", "prompt 5"], []]
    with pytest.raises(errors.SnapshotNotFound):
        await rollout.restore(uuid4().hex)


def test_a_progress_bar_counts_the_groups_of_a_step(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    with Progress(True).step(7, 4) as bar:
        bar.update(1)
        bar.update(3)
    assert "step 7: 100%" in capsys.readouterr().err


def test_a_progress_bar_needs_tqdm() -> None:
    code = "import sys; sys.modules['tqdm'] = None\nfrom broomwagon._progress import Progress\nProgress(True)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "tqdm" in shown.stderr
