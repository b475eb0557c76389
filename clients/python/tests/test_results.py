"""Samples as a trainer gets them: tokens and log probabilities as arrays, with nothing erased."""

from __future__ import annotations

import copy
import json
import pickle
import tracemalloc
from typing import Any, cast

import pytest

from broomwagon import Client, Group, Logprobs, Sample, TokenIds
from broomwagon._made import AddedTokens, MadeTokens
from broomwagon._payloads import Payloads
from broomwagon.results import read_sample


class StoredParts:
    """Stand-in for `Payloads` with the parts of one sample."""

    def __init__(self, parts: list[dict[str, Any]]) -> None:
        self.parts = parts

    async def segments_of(self, holder: dict[str, Any]) -> list[dict[str, Any]]:
        return list(holder["segments"])

    async def get_all(self, refs: list[str]) -> list[Any]:
        # Decoded anew, as from a message.
        return [json.loads(json.dumps(self.parts[int(ref)])) for ref in refs]


async def read(*parts: dict[str, Any], **fields: Any) -> Sample:
    counts = [len(part.get("tokenIds", [])) for part in parts]
    segments = [
        {"ref": str(index), "tokenCount": count, "weightVersion": 3 + index} for index, count in enumerate(counts)
    ]
    found = {"sampleIndex": 0, "requestId": "job/0/0", "finishReason": "stop", "tokenCount": sum(counts)}
    payloads = cast(Payloads, StoredParts(list(parts)))
    return await read_sample(payloads, {**found, "segments": segments, **fields}, round_weight_version=7)


@pytest.mark.short
async def test_an_empty_response_has_no_logprobs_and_the_version_of_its_round() -> None:
    sample = await read()
    assert sample.token_ids == []
    assert sample.logprobs == []
    assert sample.weight_versions == (7, 7)
    assert sample.text == ""


@pytest.mark.short
async def test_a_missing_logprob_erases_no_other() -> None:
    with_all = {"tokenIds": [1, 2], "logprobs": [-1.5, None]}
    without = {"tokenIds": [3], "logprobs": None}
    sample = await read(with_all, without, with_all)
    assert sample.logprobs == [-1.5, None, None, -1.5, None]
    assert sample.weight_versions == (3, 5)
    assert (await read(without)).logprobs is None
    # A tool's output, for example.
    made = MadeTokens()
    source = {"serverId": "s", "serverEpoch": "e", "weightVersion": 0}
    made.add(AddedTokens([1], "a", [-0.5], 1, source))
    made.add(AddedTokens([2, 3], "b", [], 2, source))
    assert made.payload()["logprobs"] == [-0.5, None, None]


@pytest.mark.short
async def test_the_finish_reason_of_the_engine_is_kept() -> None:
    assert (await read(engineFinishReason="repetition")).engine_finish_reason == "repetition"
    assert (await read()).engine_finish_reason is None


@pytest.mark.short
async def test_tokens_and_logprobs_are_used_as_lists_are() -> None:
    sample = await read({"tokenIds": [1, 2, 3], "logprobs": [-1.0, None, -3.0]})
    ids, logprobs = sample.token_ids, sample.logprobs
    assert isinstance(ids, TokenIds) and isinstance(logprobs, Logprobs)
    for values, plain in ((ids, [1, 2, 3]), (logprobs, [-1.0, None, -3.0])):
        assert values == plain and plain == values and not (values != plain)
        assert values != [] and values != [*plain, 4]
        assert list(values) == values.tolist() == [values[index] for index in range(3)] == plain
        assert list(reversed(values)) == plain[::-1]
        assert values[1:] == plain[1:] and type(values[1:]) is type(values)
        more: list[Any] = [7]
        assert values + more == [*plain, 7] and more + values == [7, *plain]
        joined: list[Any] = []
        joined += values
        assert joined == plain == json.loads(json.dumps(values.tolist()))
        for copied in (copy.copy(values), copy.deepcopy(values), pickle.loads(pickle.dumps(values))):
            assert copied == plain and type(copied) is type(values)
    longer = copy.copy(ids)
    longer += [4]
    assert longer == [1, 2, 3, 4]
    # An agent loop may add numbers that no vocabulary has.
    assert (await read({"tokenIds": [1, 2**40]})).token_ids == [1, 2**40]


async def test_numpy_reads_tokens_without_a_copy() -> None:
    numpy = pytest.importorskip("numpy")
    sample = await read({"tokenIds": [1, 2, 3], "logprobs": [-1.0, None, -3.0]})
    ids = numpy.asarray(sample.token_ids)
    sample.token_ids[0] = 9
    assert ids.tolist() == [9, 2, 3]
    assert numpy.isnan(numpy.asarray(sample.logprobs)).tolist() == [False, True, False]


async def test_a_token_takes_less_than_20_bytes() -> None:
    count = 50_000
    part = {"tokenIds": list(range(1_000, 1_000 + count)), "logprobs": [-index / 7 for index in range(count)]}
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        sample = await read(part)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(sample.token_ids) == count
    assert (after - before) / count < 20


@pytest.mark.short
async def test_a_group_that_the_loop_drops_is_freed_within_the_round(client: Client, served: str) -> None:
    rollout = client.rollout(served, groups=3, samples=2, max_tokens=16)
    kept: list[Group] = []
    seen: list[str] = []
    async for group in rollout.round(["a", "b", "c"], "wait"):
        seen.append(group.id)
        if not kept:
            kept.append(group)
        yielded = {each.id: each for each in rollout.yielded}
        assert list(yielded) == seen
        assert yielded[kept[0].id] is kept[0]
        assert yielded[group.id] is group
        for dropped in seen[1:-1]:
            assert yielded[dropped].prompt in ("a", "b", "c")
            with pytest.raises(LookupError, match="keep the groups"):
                list(yielded[dropped].samples)
        del group, yielded
    assert len(seen) == 3
    assert rollout.metrics["perf/total_num_tokens"] > 0
