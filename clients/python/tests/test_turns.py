"""Turns of an agent loop: tokens and state are kept together, whatever interrupts the loop and wherever."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from conftest import roll_out, serving

from broomwagon import Attempt, Client, Group, InvalidArgument
from broomwagon._attempt_tokens import AttemptTokens
from broomwagon.results import split_segment

CLAIM: dict[str, Any] = {"requestId": "job/0/0", "attempt": "1", "maxTokens": 10, "segments": []}
SERVER = {"serverId": "s", "serverEpoch": "e", "weightVersion": 3}
TURNS = 3
#: Tokens of a whole sample: in each turn two tokens of the model, and one of a tool. Each token occurs once.
WHOLE = [token for turn in range(TURNS) for token in (10 * turn, 10 * turn + 1, 10 * turn + 2)]
MASK = [1, 1, 0] * TURNS


async def kept(tokens: AttemptTokens, *, is_finished: bool = False) -> tuple[list[int], dict[str, Any]]:
    """Tokens and state that an attempt stores when it ends now."""
    stored: list[dict[str, Any]] = []

    async def store(_: int, payload: dict[str, Any]) -> str:
        stored.append(payload)
        return "ref"

    await tokens.segment(store, is_finished=is_finished)
    return (stored[0]["tokenIds"], stored[0]["engineFields"]["agent_state"]) if stored else ([], {})


def new_tokens(state: dict[str, Any] | None = None) -> AttemptTokens:
    tokens = AttemptTokens(CLAIM)
    tokens.use(SERVER)
    if state is not None:
        tokens.state.value = state
    return tokens


def add(tokens: AttemptTokens, ids: list[int], state: dict[str, Any] | None = None) -> None:
    tokens.add(ids, "x", (), None, state, is_generated=True)


@pytest.mark.short
async def test_tokens_are_kept_with_the_state_that_knows_them() -> None:
    tokens = new_tokens()
    messages = ["one"]
    add(tokens, [1], {"messages": messages})
    # The state has a copy of the caller's list.
    messages.append("two")
    assert await kept(tokens) == ([1], {"messages": ["one"]})
    add(tokens, [2])
    assert await kept(tokens) == ([1], {"messages": ["one"]})
    assert (await kept(tokens, is_finished=True))[0] == [1, 2]
    add(tokens, [3], {"messages": messages})
    assert await kept(tokens) == ([1, 2, 3], {"messages": ["one", "two"]})


@pytest.mark.short
async def test_a_state_that_is_changed_after_the_tokens_knows_them() -> None:
    tokens = new_tokens({})
    add(tokens, [1])
    assert await kept(tokens) == ([], {})
    tokens.state.value["messages"] = ["one"]
    add(tokens, [2])
    assert await kept(tokens) == ([1], {"messages": ["one"]})
    # This changes a value within the state, and not the state itself.
    tokens.state.value["messages"].append("two")
    assert await kept(tokens) == ([1, 2], {"messages": ["one", "two"]})


@pytest.mark.short
async def test_a_loop_without_state_keeps_all_tokens() -> None:
    tokens = new_tokens()
    add(tokens, [1])
    add(tokens, [2])
    assert await kept(tokens) == ([1, 2], {})


@pytest.mark.short
async def test_a_wrong_state_is_refused_and_nothing_added() -> None:
    for state in ({"x": object()}, {"x": float("nan")}, ["x"]):
        tokens = new_tokens()
        with pytest.raises(InvalidArgument) as refused:
            add(tokens, [1], state)  # type: ignore[arg-type]
        assert refused.value.field == "state"
        assert (tokens.made_count, tokens.token_ids) == (0, [])


@pytest.mark.short
async def test_each_turn_names_its_server_and_weight_version() -> None:
    tokens = new_tokens()
    add(tokens, [1, 2])
    tokens.add([3], "", (), None, None, is_generated=False)
    tokens.use({**SERVER, "weightVersion": 5})
    add(tokens, [4])
    stored: list[dict[str, Any]] = []

    async def store(_: int, payload: dict[str, Any]) -> str:
        stored.append(payload)
        return "ref"

    segment = await tokens.segment(store, is_finished=True)
    assert segment is not None
    assert stored[0]["lossMask"] == [1, 1, 0, 1]
    versions = [
        (part["tokenCount"], part["weightVersion"], part.get("toWeightVersion"))
        for part in split_segment(segment, stored[0])
    ]
    assert versions == [(3, 3, None), (1, 5, None)]
    # A change in mode `keep` may have met each older token.
    mixed = {**segment, "toWeightVersion": 5, "mixedWeightVersion": 5}
    assert [part.get("toWeightVersion") for part in split_segment(mixed, stored[0])] == [5, None]


@pytest.mark.parametrize("has_one_step", [True, False])
async def test_a_cut_at_any_moment_repeats_no_turn(client: Client, job: str, has_one_step: bool) -> None:
    worker = client.worker(job=job)
    #: At the checkpoint of its index, the first attempt of each sample is cut.
    checkpoints = 4 * TURNS
    cut: set[int] = set()

    @worker.run
    async def loop(attempt: Attempt) -> str:
        passed = 0

        async def checkpoint() -> None:
            nonlocal passed
            if passed == attempt.sample_index and attempt.sample_index not in cut:
                cut.add(attempt.sample_index)
                attempt.stop("cut")
            passed += 1
            await asyncio.sleep(0)

        turn = attempt.state.get("turn", 0)
        if attempt.state.get("tool"):
            attempt.observe([10 * (turn - 1) + 2], state={"turn": turn, "tool": False})
        while turn < TURNS:
            async with attempt.server():
                await checkpoint()
                known = {"turn": turn + 1, "tool": True}
                attempt.add([10 * turn, 10 * turn + 1], f"{turn}", state=known if has_one_step else None)
                await checkpoint()
            if not has_one_step:
                attempt.state.update(known)
            await checkpoint()
            # The tool runs without a lease.
            turn += 1
            attempt.observe([10 * (turn - 1) + 2], state={"turn": turn, "tool": False})
            await checkpoint()
            await attempt.save()
        return "stop"

    async with serving(worker):
        [group] = await roll_out(client, job, groups=1, samples=checkpoints)
    assert cut == set(range(checkpoints))
    for sample in group.samples:
        assert sample.token_ids == WHOLE, sample.index
        assert sample.loss_mask == MASK
        assert sample.text == "".join(map(str, range(TURNS)))


#: A worker that dies at one of the calls of its attempts: before it is sent, or after its answer.
DYING = """
import asyncio, os, signal, sys
from broomwagon import Client
from broomwagon._connection import Connection

job, moment = sys.argv[1], int(sys.argv[2])
inner, passed = Connection.call, 0

async def call(self, operation, body, **options):
    if not operation.startswith(("payload.put", "request.")):
        return await inner(self, operation, body, **options)
    global passed
    for is_after in (False, True):
        if passed == moment:
            os.kill(os.getpid(), signal.SIGKILL)
        passed += 1
        if not is_after:
            answer = await inner(self, operation, body, **options)
    return answer

Connection.call = call

async def main():
    async with Client(worker_ttl=1, unclaimed_after=1) as client:
        worker = client.worker(job=job, concurrency=1)

        @worker.run
        async def loop(attempt):
            for turn in range(attempt.state.get("turn", 0), 2):
                async with attempt.server():
                    attempt.add([10 * turn, 10 * turn + 1], state={"turn": turn + 1})
                await attempt.save()
            return "stop"

        await worker.serve()

asyncio.run(main())
"""
#: Begin, two saves with their payloads, and the end with its payload.
MOMENTS = 14


async def test_a_kill_at_any_call_repeats_no_turn(client: Client, tmp_path: Path) -> None:
    program = tmp_path / "dying.py"
    program.write_text(DYING)

    async def sample_after(moment: int) -> Group:
        job = f"dying-{uuid4().hex[:8]}"
        process = await asyncio.create_subprocess_exec(sys.executable, str(program), job, str(moment), env=os.environ)
        rolling = asyncio.create_task(roll_out(client, job, groups=1))
        assert await asyncio.wait_for(process.wait(), 120) == -9, f"moment {moment} did not come"
        second = client.worker(job=job)

        @second.run
        async def loop(attempt: Attempt) -> str:
            for turn in range(attempt.state.get("turn", 0), 2):
                async with attempt.server():
                    attempt.add([10 * turn, 10 * turn + 1], state={"turn": turn + 1})
            return "stop"

        async with serving(second):
            [group] = await rolling
        await client.call("job.delete", {"job": job, "force": True})
        return group

    groups = await asyncio.gather(*map(sample_after, range(MOMENTS)))
    for moment, group in enumerate(groups):
        assert group.samples[0].token_ids == [0, 1, 10, 11], f"killed at moment {moment}"


async def test_a_change_of_weights_during_a_tool_labels_each_turn(client: Client, job: str) -> None:
    worker = client.worker(job=job)
    in_tool, changed = asyncio.Event(), asyncio.Event()
    versions: list[int] = []

    @worker.run
    async def loop(attempt: Attempt) -> str:
        for turn in range(2):
            async with attempt.server() as server:
                versions.append(server.weight_version)
                attempt.add([turn, turn], state={"turn": turn})
            if turn == 0:
                in_tool.set()
                await asyncio.wait_for(changed.wait(), 60)
                attempt.observe([7], state={"turn": turn})
        return "stop"

    async def set_version(version: int) -> None:
        sync_id = uuid4().hex
        await client.call("weights.begin", {"syncId": sync_id, "mode": "abort", "version": version, "waitMs": 10_000})
        for server in (await client.call("server.list", {}))["servers"]:
            await client.call("server.update", {"serverId": server["serverId"], "weightVersion": version})
        await client.call("weights.commit", {"syncId": sync_id})

    async def change() -> None:
        await asyncio.wait_for(in_tool.wait(), 60)
        await set_version(versions[0] + 1)
        changed.set()

    async with serving(worker):
        [group], _ = await asyncio.gather(roll_out(client, job, groups=1), change())
    [sample] = group.samples
    assert sample.token_ids == [0, 0, 7, 1, 1]
    assert sample.loss_mask == [1, 1, 0, 1, 1]
    first = versions[0]
    labels = [(part["tokenCount"], part["weightVersion"], "toWeightVersion" in part) for part in sample.segments]
    assert labels == [(3, first, False), (2, first + 1, False)]
    assert sample.weight_versions == (first, first + 1)
    assert [fields.get("agent_state") for fields in sample.engine_fields] == [None, {"turn": 1}]
