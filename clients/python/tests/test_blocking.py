"""The client without asyncio."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from uuid import uuid4

import pytest

from broomwagon import LeaseStopped, errors
from broomwagon.blocking import Client

JOB = "served"


def leases_of(client: Client, worker_id: str) -> int:
    return len(client.call("lb.leases", {"workerId": worker_id})["leases"])


def test_a_lease_is_held_within_its_block() -> None:
    worker_id = f"blocking-{uuid4().hex}"
    with Client(worker_id=worker_id) as client:
        with client.lease("request") as server:
            assert server.endpoint.startswith("http://")
            assert leases_of(client, worker_id) == 1
        with pytest.raises(KeyError), client.lease("request"):
            raise KeyError("of the caller")
        client.settled()
        assert leases_of(client, worker_id) == 0
        with pytest.raises(errors.NoServerAvailable), client.lease("request", labels={"gpu": "none"}, timeout=0.2):
            pass
        aborted = uuid4().hex
        with pytest.raises(LeaseStopped), client.lease(aborted):
            client.call("request.abort", {"abortId": uuid4().hex, "requestIds": [aborted], "waitMs": 5000})
    with Client() as client, pytest.raises(errors.WorkerNotFound):
        leases_of(client, worker_id)


def test_a_round_is_a_loop() -> None:
    with Client() as client:
        rollout = client.rollout(JOB, groups=2, samples=1, max_tokens=16)
        for _ in rollout.round(["a", "b"], "wait"):
            break
        assert sorted(str(group.prompt) for group in rollout.round(["a", "b"], "wait")) == ["a", "b"]
        assert rollout.step == rollout.metrics["training/global_step"] == 1
        assert rollout.ledger()["rollout/samples"] == 2
        client.call("job.delete", {"job": JOB, "force": True})


def test_ctrl_c_ends_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    with Client() as client:
        rollout = client.rollout(JOB, groups=1, samples=2, max_tokens=16)
        is_reading = threading.Event()

        async def read(_: str) -> None:
            is_reading.set()
            await asyncio.sleep(60)

        def interrupt() -> None:
            is_reading.wait(60)
            os.kill(os.getpid(), signal.SIGINT)

        interrupting = threading.Thread(target=interrupt)
        interrupting.start()
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(rollout._rollout._payloads, "get", read)
            next(rollout.round(["a"], "wait"))
        interrupting.join()
        assert [group.prompt for group in rollout.round(["a"], "wait")] == ["a"]
        client.call("job.delete", {"job": JOB, "force": True})


def test_no_nats_is_an_error() -> None:
    with pytest.raises(errors.Unavailable), Client("nats://127.0.0.1:1", connect_timeout=0.3):
        pass


def test_a_client_that_cannot_answer_is_an_error() -> None:
    client = Client()
    with pytest.raises(RuntimeError, match="not connected"):
        client.call("lb.status", {})
    failed: list[BaseException] = []

    def acquire() -> None:
        try:
            with client.lease("request", labels={"gpu": "none"}):
                pass
        except BaseException as error:
            failed.append(error)

    with pytest.raises(errors.ShuttingDown), client:
        rollout = client.rollout(JOB)
        acquiring = threading.Thread(target=acquire, daemon=True)
        acquiring.start()
        # Ends the event loop, like a defect or SystemExit in a callback.
        client._loop.call_soon_threadsafe(client._loop.stop)
        acquiring.join(60)
        assert [type(error) for error in failed] == [errors.ShuttingDown]
        with pytest.raises(errors.ShuttingDown):
            rollout.ledger()
    with pytest.raises(errors.ShuttingDown):
        client.call("lb.status", {})


FORKED = """
import os
from broomwagon import errors
from broomwagon.blocking import Client

with Client() as client:
    with client.lease("request") as server:
        if os.fork() == 0:
            try:
                client.call("lb.status", {})
            except errors.ShuttingDown as error:
                os.write(1, b"child " + error.code.encode())
        else:
            os.wait()
            client.call("lb.lease", {"leaseId": server.lease_id})
            os.write(1, b" parent")
"""

AT_EXIT = """
import os
from broomwagon import errors
from broomwagon.blocking import Client

class Late:
    def __init__(self):
        self.client = Client().__enter__()
        self.write, self.error = os.write, errors.ShuttingDown

    def __del__(self):
        try:
            self.client.call("lb.status", {})
        except self.error as error:
            self.write(1, error.code.encode())
        try:
            self.client.__exit__(None, None, None)
        except self.error as error:
            self.write(1, b" twice")

late = Late()
"""


@pytest.mark.parametrize(
    ("code", "expected"), [(FORKED, "child SHUTTING_DOWN parent"), (AT_EXIT, "SHUTTING_DOWN twice")]
)
def test_no_call_hangs_after_a_fork_or_at_exit(code: str, expected: str) -> None:
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.stdout, ended.returncode) == (expected, 0), ended.stderr
