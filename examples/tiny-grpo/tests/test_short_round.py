"""A round with fewer groups than asked for is trained."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tiny_grpo.trainer import Trainer


class Rounds:
    """A rollout whose second round has lost a group. A round counts when it is closed, after its last group."""

    def __init__(self) -> None:
        self.step = 0
        self.metrics: dict[str, float] = {}
        self._sizes = [2, 1]

    async def round(self, *_: object) -> AsyncIterator[str]:
        if not self._sizes:
            return
        for index in range(self._sizes.pop(0)):
            yield f"group {index} of step {self.step + 1}"
        self.step += 1


def test_a_round_that_has_lost_groups_is_trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run: Any = SimpleNamespace(step=0, records=[], evaluations=[])
    rounds = Rounds()
    at_step: list[tuple[int, list[str]]] = []

    async def call(*_: object) -> dict[str, Any]:
        return {"summary": {}}

    async def clocks() -> dict[str, float]:
        return {}

    async def begin() -> Any:
        return run

    async def publish() -> None:
        pass

    async def learn(groups: list[str], _: float) -> None:
        at_step.append((rounds.step, list(groups)))
        run.step += 1
        run.records.append({})

    client: Any = SimpleNamespace(rollout=lambda *_, **options: rounds, call=call)
    options = {"policy": "wait", "seed": 0, "job": "j", "folder": tmp_path, "steps": 2, "groups": 2, "samples": 1}
    trainer = Trainer(client, argparse.Namespace(**options, engines="{}"))
    monkeypatch.setattr(trainer._fleet, "clocks", clocks)
    for name, function in (("_begin", begin), ("_publish", publish), ("_learn", learn)):
        monkeypatch.setattr(trainer, name, function)
    asyncio.run(trainer.train())
    # The full batch is trained before its round is closed, the smaller batch after its round is closed.
    assert at_step == [(0, ["group 0 of step 1", "group 1 of step 1"]), (2, ["group 0 of step 2"])]
    assert len(json.loads((tmp_path / "result.json").read_text())["steps"]) == 2
