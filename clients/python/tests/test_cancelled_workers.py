"""`worker.serve` leaks nothing when it is cancelled at any await, its own or one of a task that it has started."""

from __future__ import annotations

import asyncio
import os
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any

import pytest
from conftest import leases_of, roll_out, serving, until_stopped

from broomwagon import Attempt, Client

#: How often a worker is cancelled at each of about 50 awaits.
ROUNDS = int(os.environ.get("CANCELLATIONS", "1000")) // 80
SAMPLES = 50 * ROUNDS


@types.coroutine
def noticed(work: Coroutine[Any, Any, Any], at_await: Callable[[], None]) -> Generator[Any, Any, Any]:
    """Runs a coroutine, and calls a function at each of its awaits."""
    result, error = None, None
    while True:
        try:
            yielded = work.throw(error) if error else work.send(result)
        except StopIteration as end:
            return end.value
        at_await()
        result, error = None, None
        try:
            result = yield yielded
        except (Exception, asyncio.CancelledError) as thrown:
            error = thrown


class Cancellation:
    """Cancels a task when it, and the tasks that it has started, have awaited `step` times.

    :param is_impatient: cancels the task again at each later await
    """

    def __init__(self, step: int, is_impatient: bool) -> None:
        self._left = step
        self._is_impatient = is_impatient
        #: The task, and all tasks that were started from it, directly or not.
        self.tasks: list[asyncio.Task[Any]] = []

    async def run(self, work: Coroutine[Any, Any, None], other: asyncio.Task[Any]) -> asyncio.Task[None]:
        """Runs a coroutine as a task until it is cancelled, also when the other task ends. Returns its task."""
        loop = asyncio.get_running_loop()
        loop.set_task_factory(self._make)
        try:
            task = self._make(loop, work)
            await asyncio.wait((task, other), timeout=60, return_when=asyncio.FIRST_COMPLETED)
            task.cancel()
            await asyncio.wait((task,), timeout=60)
            return task
        finally:
            loop.set_task_factory(None)

    def _make(self, loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
        begun_by = asyncio.current_task()
        is_own = not self.tasks or begun_by in self.tasks
        # No task starts a batch of calls, and another lease may need the batch.
        if not is_own and begun_by is not None:
            return asyncio.Task(work, loop=loop, **options)

        async def run() -> Any:
            return await noticed(work, self._count)

        task = asyncio.Task(run(), loop=loop, **options)
        if is_own:
            self.tasks.append(task)
        return task

    @property
    def is_done(self) -> bool:
        """Whether the task is cancelled."""
        return bool(self.tasks) and self._left <= 0

    def _count(self) -> None:
        self._left -= 1
        if self._left == 0 or (self._left < 0 and self._is_impatient):
            asyncio.get_running_loop().call_soon(self.tasks[0].cancel)


async def attempts_of(client: Client) -> set[tuple[str, str]]:
    """The attempts of this client in Redis."""
    assert client._session is not None
    worker = await client._session.established()
    body: Any = {"workerId": worker.worker_id, "workerEpoch": worker.epoch, "kind": "attempts"}
    return {(item["id"], item.get("attempt", "")) for item in (await client.call("worker.sync", body))["items"]}


@pytest.mark.parametrize("is_impatient", [pytest.param(False, marks=pytest.mark.short), True], ids=["once", "often"])
async def test_a_worker_that_is_cancelled_at_any_await_leaks_nothing(job: str, is_impatient: bool) -> None:
    ended = 0
    begun: set[tuple[str, str]] = set()

    async def loop(attempt: Attempt) -> None:
        nonlocal ended
        begun.add(attempt.key)
        while len(attempt.token_ids) < 3:
            async with attempt.server():
                await asyncio.sleep(0)
                attempt.add([len(attempt.token_ids)])
                if cancellation.is_done:
                    await until_stopped()
            await attempt.save()
        ended += 1

    async with Client(worker_ttl=1.5, unclaimed_after=0.5) as client:
        async with client.lease("registers"):
            pass
        assert client._session is not None
        rolling = asyncio.create_task(roll_out(client, job, SAMPLES))
        steps: set[int] = set()
        step = rounds = 0
        while rounds < ROUNDS and not rolling.done():
            step += 1
            steps.add(step)
            ended = 0
            worker = client.worker(job=job, concurrency=2, drain=0)
            worker.run(loop)
            cancellation = Cancellation(step, is_impatient)
            task = await cancellation.run(worker.serve(), rolling)
            assert task.cancelled(), f"cancelled at await {step}"
            if is_impatient:
                # `serve` did not wait for the end of its samples.
                await asyncio.wait(cancellation.tasks, timeout=60)
            await client.settled()
            held = (len(client._session.attempts), len(client._session.leases), await leases_of(client))
            assert held == (0, 0, 0), f"cancelled at await {step}"
            # Other attempts are claims whose grant came after the cancellation: a sync returns them.
            assert not begun & await attempts_of(client), f"cancelled at await {step}"
            assert [one for one in cancellation.tasks if not one.done()] == [], f"cancelled at await {step}"
            if ended > 2:
                step, rounds = 0, rounds + 1
        last = client.worker(job=job)
        last.run(loop)
        # `is_done` of a cancellation without a task stays false: from now on no sample waits to be stopped.
        cancellation = Cancellation(0, False)
        async with serving(last):
            groups = await rolling
        assert [group.samples[0].token_ids for group in groups] == [[0, 1, 2]] * SAMPLES
        assert len(steps) > 20
