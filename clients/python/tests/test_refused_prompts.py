"""Prompts that a service refuses: each is reported once, with its number, and the others are trained."""

from __future__ import annotations

import math
from typing import Any

import pytest

from broomwagon import Client, InvalidArgument, Rollout, errors

#: Wrong prompts, with the error of each and a part of its message.
WRONG: list[tuple[Any, type[Exception], str]] = [
    ("", errors.ValidationFailed, "is empty"),
    ({"text": "a", "domain": "not a name!"}, errors.ValidationFailed, "domain"),
    ([1, "two"], errors.ValidationFailed, "promptTokenIds"),
    # This prompt is larger than the payload store takes.
    ("x" * (64 << 20), errors.ValidationFailed, "chunkCount"),
    ({"text": "a", "engineFields": {"seed": math.nan}}, InvalidArgument, "JSON"),
    ({"text": "a", "engineFields": {"seed": object()}}, TypeError, "JSON"),
]


async def train(rollout: Rollout, prompts: list[Any], policy: Any = "wait") -> tuple[list[str], list[InvalidArgument]]:
    """Trains all prompts. Returns the ids of groups in the order of training, and the errors of refused prompts."""
    trained: list[str] = []
    refused: list[InvalidArgument] = []
    while True:
        before = len(trained)
        try:
            async for group in rollout.round(prompts, policy):
                trained.append(group.id)
        except InvalidArgument as error:
            refused.append(error)
            assert len(refused) < 100, f"always refused: {error}"
        else:
            if len(trained) == before:
                return trained, refused


@pytest.mark.short
async def test_a_refused_prompt_is_reported_once_and_the_others_are_trained(client: Client, served: str) -> None:
    rollout = client.rollout(served, groups=4, samples=1, max_tokens=8)
    assert sorted((await train(rollout, ["a", "b", "c", "d"]))[0]) == ["0", "1", "2", "3"]
    prompts = [prompt for wrong, _, _ in WRONG for prompt in ("right", wrong)]
    trained, refused = await train(rollout, prompts)
    # After the first four prompts, every other one is wrong.
    assert sorted(map(int, trained)) == list(range(4, 4 + len(prompts), 2))
    fields = {error.field: error for error in refused}
    assert len(fields) == len(refused) == len(WRONG)
    for number, (_, kind, message) in enumerate(WRONG):
        error = fields[f"prompts.{5 + 2 * number}"]
        assert isinstance(error.__cause__, kind)
        assert message in str(error)
    assert (await rollout.ledger())["rollout/samples"] == 4 + len(WRONG)
    assert (await client.call("job.status", {"job": served}))["requests"]["trained"] == 4 + len(WRONG)


@pytest.mark.short
async def test_an_id_that_was_trained_is_no_fault_of_its_prompt(client: Client, served: str) -> None:
    rollout = client.rollout(served, groups=2, samples=1, max_tokens=8)
    await train(rollout, ["a", "b"])
    again: list[Any] = [{"id": "0", "text": "a"}, "c"]
    with pytest.raises(errors.DuplicateGroup, match=r"trained in step 1.*from the first one on") as refused:
        await anext(rollout.round(again, "wait"))
    assert not isinstance(refused.value, InvalidArgument)
    assert await train(rollout, again) == (["3"], [])


@pytest.mark.parametrize("policy", ["wait", "resume"])
@pytest.mark.parametrize("wrong", [1, 3], ids=["some", "all"])
async def test_a_step_with_too_few_prompts_after_a_refusal_is_smaller(
    client: Client, served: str, policy: str, wrong: int
) -> None:
    rollout = client.rollout(served, groups=3, samples=1, max_tokens=8)
    trained, refused = await train(rollout, [*["right"] * (3 - wrong), *[""] * wrong], policy)
    assert sorted(trained) == [str(number) for number in range(3 - wrong)]
    assert len(refused) == wrong
    assert rollout.step == (0 if wrong == 3 else 1)


@pytest.mark.parametrize("wrong", [1, 5, 40])
async def test_a_process_that_starts_again_does_not_train_prompts_beside_refused_ones_twice(
    client: Client, served: str, wrong: int
) -> None:
    options: Any = {"groups": 2, "samples": 1, "max_tokens": 8}
    prompts = ["a", *[""] * wrong, "b", "c", "d"]
    first = client.rollout(served, **options)
    for _ in range(wrong):
        with pytest.raises(InvalidArgument):
            await anext(first.round(prompts, "wait"))
    trained = [group.id async for group in first.round(prompts, "wait")]
    assert sorted(trained, key=int) == ["0", str(wrong + 1)]
    rest, refused = await train(client.rollout(served, **options), prompts)
    assert (sorted(rest, key=int), refused) == ([str(wrong + 2), str(wrong + 3)], [])


async def test_a_refused_option_is_of_no_prompt(client: Client, served: str) -> None:
    wrong: Any = {"topP": "hot"}
    rollout = client.rollout(served, groups=2, samples=1, max_tokens=8, sampling=wrong)
    for _ in range(2):
        with pytest.raises(errors.ValidationFailed, match="topP") as refused:
            await anext(rollout.round(["a", "b"], "wait"))
        assert not isinstance(refused.value, InvalidArgument)
    trained, _ = await train(client.rollout(served, groups=2, samples=1, max_tokens=8), ["a", "b"])
    assert sorted(trained) == ["0", "1"]


async def test_a_page_whose_payload_is_lost_is_submitted_again(
    client: Client, served: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rollout = client.rollout(served, groups=2, samples=1, max_tokens=8)
    call = rollout._job.call
    failing = [errors.PayloadNotFound("The prompt is being removed; store it again")]

    async def call_with_fault(operation: str, **body: Any) -> Any:
        if operation == "round.submit" and failing:
            raise failing.pop()
        return await call(operation, **body)

    monkeypatch.setattr(rollout._job, "call", call_with_fault)
    with pytest.raises(errors.PayloadNotFound):
        await anext(rollout.round(["a", "b"], "wait"))
    prompts = ["c", "d"]
    trained, refused = await train(rollout, prompts)
    assert (sorted(trained), refused) == (["0", "1", "2", "3"], [])
