"""The trainer: rounds of Broomwagon, rewards, one GRPO step for each round, new weights.

The trainer may be killed at any moment and restarted with the same options. A step is trained within its round, and
the checkpoint is written before the round is closed, so the checkpoint is at most one step ahead of Redis: then the
groups of the open round are read again, and not trained again.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broomwagon import Client, Group, Sample

from .batches import Batch
from .evaluation import RATE, TASK, data_set, evaluation
from .learning import Adam
from .policies import POLICIES, Policy, acceptance_weights
from .rollouts import Fleet
from .run_state import Run, load_weights, save_arrays, write_atomically

if TYPE_CHECKING:
    from broomwagon import Rollout


def tokens_of(group: Group) -> list[int]:
    """Prompt of a group, also if an earlier process has submitted the group."""
    prompt: Any = group.prompt
    tokens: list[int] = prompt["promptTokenIds"] if isinstance(prompt, dict) else prompt
    return tokens


class Trainer:
    """:param options: options of the command line"""

    def __init__(self, client: Client, options: argparse.Namespace) -> None:
        self._client = client
        self._options = options
        self._policy: Policy = POLICIES[options.policy]
        self._folder = Path(options.folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._fleet = Fleet(client, json.loads(options.engines))
        self._rollout: Rollout = client.rollout(
            options.job,
            groups=options.groups,
            samples=options.samples,
            max_tokens=TASK.budget,
            sampling={"temperature": 1.0, "logprobs": True},
        )
        #: Clocks of the engines at the start of the round.
        self._clocks: dict[str, float] = {}

    async def train(self) -> None:
        """Trains the steps that are missing, and writes `result.json`."""
        self._run = run = await self._begin()
        options = self._options
        data = data_set(options.seed, options.steps * options.groups)
        while True:
            if run.step < options.steps:
                await self._publish()
            self._clocks = await self._fleet.clocks()
            groups: list[Group] = []
            began = time.monotonic()
            async for group in self._rollout.round(data, self._policy.wire):
                groups.append(group)
                # Trains before the round is closed, which happens after its last group.
                if len(groups) == options.groups and run.step == self._rollout.step:
                    await self._learn(groups, time.monotonic() - began)
            if groups and run.step == self._rollout.step - 1:
                # Groups that have failed for good are missing, which shows when the round is closed.
                await self._learn(groups, time.monotonic() - began)
            if run.step != self._rollout.step:
                raise RuntimeError(f"Step {self._rollout.step} had {len(groups)} groups, or its checkpoint is lost")
            if not groups:
                break
            run.records[-1].setdefault("round", self._rollout.metrics)
        ledger = (await self._client.call("job.ledger", {"job": self._options.job}))["summary"]
        named = {name: value for name, value in vars(options).items() if name not in ("engines", "folder", "start")}
        result = {"options": named, "steps": run.records, "evaluations": run.evaluations, "ledger": ledger}
        write_atomically(self._folder / "result.json", json.dumps(result).encode())

    async def _begin(self) -> Run:
        checkpoint = self._folder / "checkpoint.npz"
        if checkpoint.exists():
            return Run.load(checkpoint, RATE)
        weights = load_weights(Path(self._options.start))
        # The version of a pool never decreases.
        run = Run(weights, Adam(weights, RATE), first_version=await self._fleet.version() + 1)
        run.evaluations.append(evaluation(weights, self._options.seed, 0, self._options.steps))
        run.save(checkpoint)
        return run

    async def _publish(self) -> None:
        version = self._run.first_version + self._run.step
        if await self._fleet.version() == version:
            return
        file = self._folder / "weights.npz"
        save_arrays(file, self._run.weights)
        await self._fleet.publish(self._options.job, version, file)

    async def _learn(self, groups: list[Group], seconds: float) -> None:
        """One step of GRPO, and its checkpoint."""
        run, version = self._run, self._run.first_version + self._run.step
        batch = Batch(TASK)
        for group in groups:
            batch.add(
                tokens_of(group),
                [
                    (list(sample.token_ids), [value for value in sample.logprobs or [] if value is not None])
                    for sample in group.samples
                ],
            )
        if self._policy.is_weighted:
            acceptances = [sample.acceptance for group in groups for sample in group.samples]
            for example, weight in zip(batch.examples, acceptance_weights(acceptances), strict=True):
                example.weight = weight
        segments = [segment for group in groups for sample in group.samples for segment in sample.segments]
        old = sum(segment["tokenCount"] for segment in segments if segment["weightVersion"] < version)
        numbers = batch.learn(run.weights, run.adam, old)
        run.step += 1
        if run.step % self._options.evaluate == 0 or run.step == self._options.steps:
            run.evaluations.append(evaluation(run.weights, self._options.seed, run.step, self._options.steps))
        run.records.append(
            {
                "step": run.step,
                **numbers,
                **await self._choice(),
                "simulated_seconds": max(self._seconds_until(sample) for group in groups for sample in group.samples),
                "rollout_seconds": seconds,
                "samples": {group.id: [sample.request_id for sample in group.samples] for group in groups},
            }
        )
        run.save(self._folder / "checkpoint.npz")
        print(f"step {run.step}: reward {numbers['reward']:.3f}, length {numbers['length']:.1f}", flush=True)

    async def _choice(self) -> dict[str, Any]:
        """Choice of `auto` for the open round; empty with the other policies."""
        choice = (await self._client.call("round.status", {"job": self._options.job})).get("choice", {})
        if "auto" not in choice:
            return {}
        names = {"policy": choice["auto"]["policy"], "reason": choice["auto"]["reason"]}
        return {"choice": {**names, "over_provision": choice["overProvision"]}}

    def _seconds_until(self, sample: Sample) -> float:
        """Simulated seconds from the start of the round to the end of a sample; 0 if an earlier round has ended it."""
        # The field is absent if the sample was cut with its last token, since no engine was called again.
        ended = float(sample.engine_fields[-1].get("simulated_seconds", 0))
        return max(0.0, ended - self._clocks[sample.segments[-1]["serverId"]])


async def run_trainer(options: argparse.Namespace) -> None:
    async with Client() as client:
        await Trainer(client, options).train()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", choices=POLICIES, required=True)
    parser.add_argument("--seed", type=int, required=True, help="of the data set")
    parser.add_argument("--job", required=True, help="id of the job")
    parser.add_argument("--start", required=True, help="file of the weights of the supervised start")
    parser.add_argument("--folder", required=True, help="for checkpoint and result")
    parser.add_argument("--engines", required=True, help="JSON: addresses by server id")
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--groups", type=int, default=16, help="prompts of a step")
    parser.add_argument("--samples", type=int, default=8, help="samples of a prompt")
    parser.add_argument("--evaluate", type=int, default=3, help="steps between two evaluations")
    asyncio.run(run_trainer(parser.parse_args()))


if __name__ == "__main__":
    main()
