"""Arguments that new users are likely to pass work, or the error names the right argument."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import reports_unserved

import broomwagon
from broomwagon import Client, InvalidArgument, SamplingParameters, TailPolicy, blocking
from broomwagon._names import check_sampling
from broomwagon._options import ClientOptions, LeaseOptions, RolloutOptions
from broomwagon._plan import policy_of
from broomwagon._prompts import PromptSource, wire_prompt

pytestmark = pytest.mark.short


def test_columns_of_data_sets_are_prompts() -> None:
    messages = [{"role": "user", "content": "Hi"}]
    rows: list[tuple[Any, dict[str, Any]]] = [
        ({"prompt": "a", "answer": "b"}, {"text": "a"}),
        ({"question": "a"}, {"text": "a"}),
        ({"prompt": messages}, {"messages": messages}),
        ({"prompt": [1, 2], "question": "a"}, {"promptTokenIds": [1, 2]}),
        ({"prompt": "a", "engineFields": {"x": 1}}, {"text": "a", "engineFields": {"x": 1}}),
        # The form of the protocol goes before columns.
        ({"text": "a", "prompt": "b"}, {"text": "a"}),
    ]
    for row, wire in rows:
        source = PromptSource()
        source.give([row])
        [(_, taken)] = source.take(1)
        assert taken is row
        assert wire_prompt(taken) == wire


@pytest.mark.parametrize("prompt", [{"input": "a"}, {"prompt": None}, {"prompt": 7}, {"prompt": {"text": "a"}}])
def test_a_wrong_column_is_refused_with_the_right_names(prompt: Any) -> None:
    source = PromptSource()
    source.give([prompt])
    with pytest.raises(InvalidArgument) as refused:
        source.take(1)
    assert refused.value.field == "prompts.0"
    if "prompt" not in prompt:
        assert "text, messages, promptTokenIds, prompt, question" in str(refused.value)


def test_names_may_be_as_python_writes_them() -> None:
    assert check_sampling({"top_p": 0.9, "min_tokens": 3, "topK": 5, "temperature": 1}) == {
        "topP": 0.9,
        "minTokens": 3,
        "topK": 5,
        "temperature": 1,
    }
    given = {"name": "resume", "over_provision": 1.5, "max_version_span": 2}
    assert policy_of(given) == {"name": "resume", "overProvision": 1.5, "maxVersionSpan": 2}


def test_each_name_of_the_protocol_is_taken_in_both_writings() -> None:
    def in_python(name: str) -> str:
        return re.sub(r"([A-Z])", lambda found: "_" + found[1].lower(), name)

    for kind, read in ((SamplingParameters, check_sampling), (TailPolicy, policy_of)):
        values: dict[str, Any] = {name: 1 for name in kind.__annotations__}
        if "name" in values:
            values["name"] = "drip"
        assert read(values) == read({in_python(name): value for name, value in values.items()}) == values


WRONG: list[tuple[Callable[[Client], Any], str, str]] = [
    (lambda client: client.rollout("j", sampling={"temperatur": 1}), "sampling.temperatur", "did you mean temperature"),
    (lambda client: client.rollout("j", sampling={"max_tokens": 1}), "sampling.max_tokens", "pass max_tokens="),
    (lambda client: client.rollout("j", sampling={"n": 1}), "sampling.n", "pass samples="),
    (lambda client: client.rollout("j", sampling={"qqq": 1}), "sampling.qqq", "it may have logprobs, minP"),
    (lambda client: client.rollout("j", sampling={"top_p": 1, "topP": 1}), "sampling.topP", "twice"),
    (lambda client: client.rollout("j", sampling={"temperature": -1}), "sampling.temperature", "at least 0"),
    (lambda client: client.rollout("j", sampling="greedy"), "sampling", "mapping"),  # type: ignore[arg-type]
    (lambda client: client.rollout("j", samples=0), "samples", "at least 1"),
    (lambda client: client.rollout("j", samples=129), "samples", "at most 128: 129. Redis moves a group in one step"),
    (lambda client: client.rollout("j", max_tokens=0), "max_tokens", "at least 1"),
    (lambda client: client.rollout("j", min_samples=0), "min_samples", "at least 1"),
    (lambda client: client.weights.begin(-1).send(None), "version", "at least 0"),
]


@pytest.mark.parametrize("act, field, message", WRONG, ids=[f"{field}-{message[:6]}" for _, field, message in WRONG])
async def test_a_wrong_name_or_value_is_refused_at_once(
    client: Client, act: Callable[[Client], Any], field: str, message: str
) -> None:
    with pytest.raises(InvalidArgument) as refused:
        act(client)
    assert refused.value.field == field
    assert message in str(refused.value)


@pytest.mark.parametrize(
    "policy, field, message",
    [
        ("resum", "policy.name", "did you mean resume?"),
        ({"name": "xyz"}, "policy.name", "there are wait, "),
        ({"name": "wait", "max_cut": 1}, "policy.max_cut", "did you mean maxCuts?"),
        ({"overProvision": 1.5}, "policy.name", "no tail policy None"),
    ],
)
async def test_a_wrong_policy_is_refused_before_the_job_is_taken(
    client: Client, job: str, policy: Any, field: str, message: str
) -> None:
    with pytest.raises(InvalidArgument) as refused:
        [group async for group in client.rollout(job).round(["a"], policy)]
    assert refused.value.field == field
    assert message in str(refused.value)


async def test_no_policy_is_the_usual_one(client: Client, served: str) -> None:
    rollout = client.rollout(served, groups=1, samples=1, max_tokens=8)
    assert len([group async for group in rollout.round(["a"], None)]) == 1


def test_the_version_is_that_of_the_package() -> None:
    project = (Path(__file__).parent.parent / "pyproject.toml").read_text()
    assert f'version = "{broomwagon.__version__}"' in project
    for name in broomwagon.__all__:
        assert hasattr(broomwagon, name)


@pytest.mark.parametrize(
    "options, method, skipped",
    [
        (ClientOptions, Client.__init__, {"self", "url"}),
        (LeaseOptions, Client.lease, {"self", "request_id"}),
        (RolloutOptions, Client.rollout, {"self", "job"}),
    ],
)
def test_the_client_without_asyncio_has_the_types_of_all_parameters(
    options: type, method: Callable[..., Any], skipped: set[str]
) -> None:
    parameters = inspect.signature(method).parameters
    annotations = {name: one.annotation for name, one in parameters.items() if name not in skipped}
    assert {name: kind.__forward_arg__ for name, kind in options.__annotations__.items()} == annotations


@pytest.mark.parametrize(
    "own, other",
    [
        (blocking.Client, Client),
        (blocking.Rollout, broomwagon.Rollout),
        (blocking.Weights, broomwagon.Weights),
    ],
)
def test_the_client_without_asyncio_has_all_methods_with_types_and_texts(own: type, other: type) -> None:
    def public(kind: type) -> dict[str, Any]:
        return {name: value for name, value in inspect.getmembers(kind) if not name.startswith("_")}

    # An agent loop needs asyncio.
    assert set(public(other)) - set(public(own)) <= {"worker", "connect", "close"}
    for name, value in public(own).items():
        function = value.fget if isinstance(value, property) else inspect.unwrap(value)
        assert function.__doc__, name
        assert "return" in function.__annotations__, name


async def test_services_refuse_a_negative_temperature(client: Client, job: str) -> None:
    rollout = client.rollout(job, groups=1, samples=1, max_tokens=8)
    # A client of the release before sends such a temperature.
    rollout._group_body["sampling"] = {"temperature": -1}
    with pytest.raises(broomwagon.errors.ValidationFailed, match="temperature") as refused:
        await anext(rollout.round(["a"], "wait"))
    assert refused.value.field == "sampling.temperature"
    assert "groups.0" not in str(refused.value)


async def test_a_wrong_pool_is_refused_at_once_with_the_pools_there_are(client: Client) -> None:
    async with Client(pool="misspelled") as misspelled:
        with pytest.raises(broomwagon.errors.PoolNotFound) as refused:
            await anext(misspelled.rollout("job").round(["a"]))
        # A retryable error would be repeated until the deadline of the call, which is two minutes.
        assert not refused.value.retryable
        assert refused.value.field == "pool"
        assert "There is no pool 'misspelled' at nats://" in str(refused.value)
        # The message names the first eight pools, and pools of other tests may come first.
        assert len(str(refused.value).partition("there are: ")[2].split(", ")) >= 1
        assert client.pool in (await client.call("pool.find", {"name": client.pool}))["pools"]
        with pytest.raises(broomwagon.errors.PoolNotFound):
            await misspelled.call("lb.status", {})


@reports_unserved
async def test_a_pool_whose_services_start_is_named_once_and_waited_for(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Client(pool="misspelled") as client:
        # Load-balancers of the release before do not know the operation and give no answer.
        monkeypatch.setattr(client._connected, "_find_pool", _no_answer)
        for _ in range(2):
            with pytest.raises(broomwagon.errors.Unavailable):
                await client.call("lb.status", {}, deadline=0.1)
    named = [record.getMessage() for record in caplog.records if "No service serves the pool" in record.getMessage()]
    assert len(named) == 1
    assert "'misspelled'" in named[0]


async def _no_answer() -> None:
    return None


async def test_as_many_snapshots_are_kept_as_asked_for_and_a_missing_one_names_them(
    client: Client, served: str
) -> None:
    rollout = client.rollout(served, groups=1, samples=1, max_tokens=8)
    for step in range(4):
        assert len([group async for group in rollout.round([f"prompt {step}"], "wait")]) == 1
        await rollout.save(f"step-{step}", keep=3)
    with pytest.raises(broomwagon.errors.SnapshotNotFound, match="there are step-1, step-2, step-3"):
        await rollout.restore("step-0")
    with pytest.raises(InvalidArgument, match="at most 16"):
        await rollout.save("step-4", keep=17)
    assert await rollout.restore("step-1") == 2
