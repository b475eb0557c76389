"""Groups that end without training: each is reported once, with its prompt, sample and reason."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest
from conftest import serving, step_of, until, until_set

from broomwagon import (
    Attempt,
    Client,
    Failure,
    Group,
    GroupFailed,
    InvalidArgument,
    Rollout,
    StepFailed,
    _round,
    blocking,
    errors,
)

COUNT = 9
#: Prompts of which every third one fails.
PROMPTS = [{"text": f"prompt {number}", "id": f"row-{number}", "fails": number % 3 == 1} for number in range(COUNT)]
POLICY: Any = {"name": "wait", "overProvision": 1, "shortfall": "accept-fewer", "maxFailures": 1}
FAILED = [f"row-{number}" for number in range(COUNT) if number % 3 == 1]
TRAINED = [f"row-{number}" for number in range(COUNT) if number % 3 != 1]


@pytest.fixture
async def worked(client: Client, job: str) -> AsyncIterator[str]:
    """A job whose samples with index 1 fail for every third prompt."""
    worker = client.worker(job=job)
    failing = {prompt["text"] for prompt in PROMPTS if prompt["fails"]}

    @worker.run
    async def loop(attempt: Attempt) -> str:
        async with attempt.server():
            if attempt.prompt["text"] in failing and attempt.request_id.endswith("/1"):
                raise ValueError("no answer for this prompt")
            attempt.add([1], "a")
        return "stop"

    async with serving(worker):
        yield job


def rollout_of(client: Client, job: str, **options: Any) -> Rollout:
    return client.rollout(job, groups=3, samples=2, max_tokens=8, **options)


def check(failures: list[Failure]) -> None:
    for failure in failures:
        assert failure.prompt is PROMPTS[int(failure.group_id.removeprefix("row-"))]
        assert (failure.outcome, failure.reason, failure.sample) == ("failed", "engine-error", 1)
        assert failure.message and "no answer for this prompt" in failure.message


@pytest.mark.short
async def test_failed_groups_are_an_attribute_a_warning_and_metrics(
    client: Client, worked: str, caplog: pytest.LogCaptureFixture
) -> None:
    rollout = rollout_of(client, worked)
    trained: list[str] = []
    failed: list[Failure] = []
    for step in (1, 2, 3):
        caplog.clear()
        trained += [group.id async for group in rollout.round(PROMPTS, POLICY)]
        assert rollout.step == step
        failed += rollout.failed
        assert len(rollout.failed) == rollout.metrics["rollout/failed_groups"] == 1
        assert rollout.metrics["rollout/lost_groups/engine-error"] == 1
        assert rollout.metrics["rollout/dropped_groups"] == 0
        warnings = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
        [warning] = [text for text in warnings if "trains 2 groups without 1" in text]
        assert failed[-1].group_id in warning and "no answer for this prompt" in warning
    check(failed)
    assert (sorted(trained), sorted(each.group_id for each in failed)) == (TRAINED, FAILED)
    assert [group async for group in rollout.round(PROMPTS, POLICY)] == []


async def test_failed_groups_are_yielded(client: Client, worked: str) -> None:
    rollout = rollout_of(client, worked, on_failed="yield")
    groups: list[Group] = []
    while step := [group async for group in rollout.round(PROMPTS, POLICY)]:
        groups += step
    failures = [group.failure for group in groups if group.failure]
    check(failures)
    assert [group.prompt for group in groups if group.failure] == [each.prompt for each in failures]
    assert all(bool(group.samples) == (group.failure is None) for group in groups)
    assert sorted(group.id for group in groups if not group.failure) == TRAINED
    assert sorted(each.group_id for each in failures) == FAILED


async def test_a_failed_group_raises_once(client: Client, worked: str) -> None:
    rollout = rollout_of(client, worked, on_failed="raise")
    trained: list[str] = []
    raised: list[Failure] = []
    while True:
        before = len(trained)
        try:
            async for group in rollout.round(PROMPTS, POLICY):
                trained.append(group.id)
        except GroupFailed as error:
            assert error.failure.group_id in str(error)
            raised.append(error.failure)
            assert error.failure in rollout.failed
            continue
        # A step that continues after an error may have no other group.
        if len(trained) == before and len(trained) + len(raised) == COUNT:
            break
    check(raised)
    assert (sorted(trained), sorted(each.group_id for each in raised)) == (TRAINED, FAILED)


@pytest.mark.parametrize("on_failed", ["yield", "raise"])
async def test_the_client_without_asyncio_reports_failed_groups(worked: str, on_failed: Any) -> None:
    def train() -> tuple[list[str], list[Failure]]:
        trained: list[str] = []
        failures: list[Failure] = []
        with blocking.Client(worker_ttl=3) as client:
            rollout = client.rollout(worked, groups=3, samples=2, max_tokens=8, on_failed=on_failed)
            while len(trained) + len(failures) < COUNT:
                try:
                    for group in rollout.round(PROMPTS, POLICY):
                        if group.failure:
                            failures.append(group.failure)
                        else:
                            trained.append(group.id)
                except GroupFailed as error:
                    failures.append(error.failure)
                    continue
                assert failures[-1] in rollout.failed
                assert rollout.metrics["rollout/failed_groups"] == 1
        return trained, failures

    trained, failures = await asyncio.to_thread(train)
    check(failures)
    assert (sorted(trained), sorted(each.group_id for each in failures)) == (TRAINED, FAILED)


async def test_an_aborted_group_and_one_of_a_left_loop_are_reported(client: Client, worked: str) -> None:
    await client.call("request.abort", {"abortId": uuid4().hex, "job": worked, "groupId": "row-0", "reason": "no use"})
    rollout = rollout_of(client, worked, on_failed="yield")

    async def reported(rollout: Rollout) -> dict[str, tuple[str, str]]:
        found: dict[str, tuple[str, str]] = {}
        async for group in rollout.round(PROMPTS, POLICY):
            if group.failure:
                found[group.id] = (group.failure.outcome, group.failure.reason)
                if len(found) == 2:
                    break
        return found

    both = {"row-0": ("dropped", "abort"), "row-1": ("failed", "engine-error")}
    assert await reported(rollout) == both
    # Again, as the loop was left; and to a new process.
    assert await reported(rollout) == both
    again = rollout_of(client, worked)
    assert [group.id async for group in again.round(PROMPTS, POLICY)] == ["row-2"]
    assert {each.group_id: (each.outcome, each.reason) for each in again.failed} == both
    assert again.failed[0].prompt is PROMPTS[int(again.failed[0].group_id[-1])]


async def test_a_group_dropped_from_the_queue_is_reported_by_the_next_round(client: Client, served: str) -> None:
    policy: Any = {"name": "resume", "overProvision": 2, "shortfall": "accept-fewer"}
    rollout = client.rollout(served, groups=3, samples=1, max_tokens=64)
    prompts = [f"prompt {number}" for number in range(6)]
    trained = [group.id async for group in rollout.round(prompts, policy)]

    async def queued() -> list[str]:
        reply = await client.call("longtail.list", {"job": served})
        return [group["groupId"] for group in reply["groups"]] if len(reply["groups"]) == 3 else []

    waiting: Any = await until(queued)
    await rollout._job.call("longtail.drop", groupIds=waiting[:1], reason="too easy")
    trained += [group.id async for group in rollout.round(prompts, policy)]
    assert [(each.group_id, each.reason) for each in rollout.failed] == [(waiting[0], "too easy")]
    assert sorted([*trained, waiting[0]]) == [str(number) for number in range(6)]
    assert [group async for group in rollout.round(prompts, policy)] == []


@pytest.mark.parametrize("on_failed", ["warn", "yield"])
async def test_a_group_dropped_after_the_last_step_is_reported(
    client: Client, served: str, caplog: pytest.LogCaptureFixture, on_failed: Any
) -> None:
    policy: Any = {"name": "resume", "overProvision": 2, "shortfall": "accept-fewer"}
    rollout = client.rollout(served, groups=1, samples=1, max_tokens=64, on_failed=on_failed)
    prompts = ["a", "b"]
    trained = [group.id async for group in rollout.round(prompts, policy)]

    async def is_queued() -> bool:
        return len((await client.call("longtail.list", {"job": served}))["groups"]) == 1

    await until(is_queued)
    await rollout._job.call("longtail.drop", all=True, reason="no time")
    last = [group async for group in rollout.round(prompts, policy)]
    assert [(each.group_id, each.reason) for each in rollout.failed] == [("1" if trained == ["0"] else "0", "no time")]
    assert [group.failure for group in last] == (rollout.failed if on_failed == "yield" else [])
    assert "has trained all its prompts but group" in caplog.text
    caplog.clear()
    assert [group async for group in rollout.round(prompts, policy)] == []
    assert caplog.text == ""


async def test_a_step_whose_groups_have_all_failed_names_them(client: Client, worked: str) -> None:
    only = [prompt for prompt in PROMPTS if prompt["fails"]]
    rollout = rollout_of(client, worked)
    with pytest.raises(StepFailed):
        await anext(rollout.round(only, POLICY))
    assert sorted(each.group_id for each in rollout.failed) == FAILED
    assert rollout.metrics["rollout/failed_groups"] == 3


@pytest.mark.parametrize("count", [2, 4])
async def test_a_round_that_accepts_fewer_groups_waits_for_no_other(
    client: Client, job: str, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setattr(_round, "RESULTS_WAIT_MS", 100)
    worker = client.worker(job=job)
    may_end = asyncio.Event()

    @worker.run
    async def loop(attempt: Attempt) -> str:
        if attempt.group_id == "row-1":
            raise InvalidArgument("no answer for this prompt")
        async with attempt.server():
            await until_set(may_end)
            attempt.add([1], "a")
        return "stop"

    rollout = client.rollout(job, groups=2, samples=1, max_tokens=8)
    submitted: list[int] = []
    submit = _round.Round._submit

    async def count_submits(self: _round.Round) -> None:
        await submit(self)
        submitted.append(len(rollout.failed))

    async def has_failed() -> bool:
        # The group has failed before `round.status` is called, which reports missing groups.
        return sum(submitted) >= 2 or stepping.done()

    monkeypatch.setattr(_round.Round, "_submit", count_submits)
    async with serving(worker):
        stepping = asyncio.create_task(step_of(rollout, PROMPTS[:count], POLICY))
        await until(has_failed)
        may_end.set()
        assert await stepping == [str(PROMPTS[0])]
        assert [each.group_id for each in rollout.failed] == ["row-1"]


async def test_services_of_an_earlier_version_do_not_list_failed_groups(
    client: Client, worked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    call: Any = client._connected.call

    async def call_earlier(operation: str, body: dict[str, Any], **options: Any) -> Any:
        if operation == "group.list":
            raise errors.ValidationFailed("set must be one of live, accepted, failed", field="set")
        return await call(operation, body, **options)

    monkeypatch.setattr(client._connected, "call", call_earlier)
    rollout = rollout_of(client, worked)
    assert [group.id async for group in rollout.round(PROMPTS, POLICY)] != []
    assert rollout.failed == []


async def test_a_wrong_way_to_report_failed_groups_is_refused(client: Client) -> None:
    with pytest.raises(ValueError, match="on_failed") as refused:
        rollout_of(client, "job", on_failed="ignore")
    assert getattr(refused.value, "field", None) == "on_failed"
