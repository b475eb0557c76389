"""A run whose trainer, worker and coordinator are killed trains each sample once."""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from broomwagon import Client

from tiny_grpo.evaluation import RATE
from tiny_grpo.run_state import Run
from tiny_grpo.study import start_file
from tiny_grpo.system import System
from tiny_grpo.trainer import Trainer

STEPS, GROUPS, SAMPLES = 6, 4, 4
DEADLINE = 240.0


class Killed(Exception):
    pass


def until(condition: Callable[[], object], what: str) -> None:
    ends_at = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < ends_at, f"not so: {what}"
        time.sleep(0.02)


def kill(trainer: subprocess.Popen[bytes]) -> None:
    assert trainer.poll() is None
    trainer.kill()
    trainer.wait()


@pytest.mark.parametrize("policy", ["resume", "regenerate-weighted"])
def test_each_sample_is_trained_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str) -> None:
    start, work = start_file(tmp_path, 0, 30), tmp_path / "run"
    options = {
        "policy": policy,
        "seed": 0,
        "job": "survivor",
        "start": start,
        "folder": work,
        "steps": STEPS,
        "groups": GROUPS,
        "samples": SAMPLES,
        "evaluate": 3,
    }
    # The engines are slow, so that killed processes have work.
    with System(start, pace=4, worker_ttl_ms=3_000) as system:
        for name, value in system.environment.items():
            monkeypatch.setenv(name, value)

        def step() -> int:
            return Run.load(work / "checkpoint.npz", RATE).step

        def runs() -> bool:
            return any(
                json.load(urllib.request.urlopen(f"{engine}/get_load"))[0]["num_running_reqs"]
                for engine in system.engines.values()
            )

        async def die_before_the_round_is_closed() -> None:
            async with Client() as client:
                trainer = Trainer(client, argparse.Namespace(**options, engines=json.dumps(system.engines)))

                async def die(*_: object) -> None:
                    raise Killed

                monkeypatch.setattr(trainer._rollout, "_close", die)
                with pytest.raises(Killed):
                    await trainer.train()

        asyncio.run(die_before_the_round_is_closed())
        assert step() == 1
        trainer = system.trainer(options)
        until(lambda: step() >= 2 and runs(), "requests of step 3 run")
        kill(trainer)
        trainer = system.trainer(options)
        until(lambda: step() >= 3 and runs(), "requests of step 4 run")
        system.processes["worker"].kill()
        until(lambda: step() >= 4 and runs(), "requests of step 5 run")
        system.processes["trainer-coordinator"].kill()
        assert trainer.wait(DEADLINE) == 0
        assert system.processes["worker"].starts == 2
        assert system.processes["trainer-coordinator"].starts == 2

        async def counts() -> dict[str, int]:
            async with Client() as client:
                requests: dict[str, int] = (await client.call("job.status", {"job": "survivor"}))["requests"]  # type: ignore[assignment]
                return requests

        assert asyncio.run(counts())["trained"] == STEPS * GROUPS * SAMPLES

    result = json.loads((work / "result.json").read_text())
    assert [record["step"] for record in result["steps"]] == list(range(1, STEPS + 1))
    assert [evaluation["step"] for evaluation in result["evaluations"]] == [0, 3, 6]
    groups = [group for record in result["steps"] for group in record["samples"]]
    assert sorted(groups, key=int) == [str(index) for index in range(STEPS * GROUPS)]
    samples = [sample for record in result["steps"] for ids in record["samples"].values() for sample in ids]
    assert len(set(samples)) == len(samples) == STEPS * GROUPS * SAMPLES
