"""What callers pass wrongly is refused with the name of the argument, and secrets are in no message."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from broomwagon import BroomwagonError, Client, InvalidArgument, Rollout, errors
from broomwagon._arguments import check_url, without_secrets


@pytest.mark.parametrize(
    "field, value",
    [
        *(("worker_id", value) for value in ("a.b", "*", "a b", "a\n")),
        *(("pool", value) for value in ("a b", "*", "a.b", "a\r\nPUB x 0", "-a")),
        *(("worker_ttl", value) for value in (0, -1, math.nan, math.inf, "15", True)),
        *((field, value) for field in ("unclaimed_after", "connect_timeout") for value in (-1, math.nan, math.inf)),
        *(("url", value) for value in ("http://127.0.0.1:8080", " ", "nats://a,", "https://a,nats://b")),
    ],
)
@pytest.mark.short
def test_a_wrong_parameter_of_a_client_is_refused(field: str, value: Any) -> None:
    with pytest.raises(InvalidArgument) as refused:
        Client(**{field: value})
    assert (refused.value.field, refused.value.code, refused.value.retryable) == (field, "VALIDATION_FAILED", False)
    assert isinstance(refused.value, (BroomwagonError, ValueError))


@pytest.mark.short
async def test_wrong_arguments_are_refused_before_a_call(client: Client) -> None:
    call: Callable[..., Any] = client.call
    wrong: list[tuple[str, Callable[[], Any]]] = [
        *(("timeout", lambda value=value: client.lease("r", timeout=value)) for value in (-1, math.nan, "5")),
        *(("timeout", lambda value=value: client.rollout("j", timeout=value)) for value in (-1, math.nan, math.inf)),
        *(("concurrency", lambda value=value: client.worker(concurrency=value)) for value in (0, 1.5, math.nan)),
        *(("groups", lambda value=value: client.rollout("j", groups=value)) for value in (0, 1.5, "2", math.nan)),
        *(("drain", lambda value=value: client.worker(drain=value)) for value in (-1, math.nan)),
    ]
    for field, act in wrong:
        with pytest.raises(InvalidArgument, match=field) as refused:
            act()
        assert refused.value.field == field
    for operation in ("lb.status x", "lb.*", "", "lb.status\r\nPUB a 0", "lb..status"):
        with pytest.raises(InvalidArgument, match="operation"):
            await call(operation, {})
    for deadline in (-1, math.nan, None):
        with pytest.raises(InvalidArgument, match="deadline"):
            await call("lb.status", {}, deadline=deadline)
    for body in ({"x": math.nan}, {"x": [math.inf]}):
        with pytest.raises(InvalidArgument, match="JSON"):
            await call("lb.status", body)
    with pytest.raises(InvalidArgument, match="JSON"):
        async with client.lease("r", context_tokens=math.nan):  # type: ignore[arg-type]
            pass
    assert (await client.call("lb.status", {}))["pool"] == client.pool


@pytest.mark.short
async def test_wrong_prompts_are_refused(client: Client, job: str) -> None:
    def rollout() -> Rollout:
        return client.rollout(job, groups=2, samples=1, max_tokens=8)

    for prompts in (None, "a text", {"text": "one prompt"}, 7, [None], [1, 2], [b"bytes"], [{"prompt": "?"}]):
        with pytest.raises(InvalidArgument) as refused:
            [group async for group in rollout().round(prompts)]  # type: ignore[arg-type]
        assert refused.value.field == "prompts"
    with pytest.raises(InvalidArgument, match="id 'x'"):
        [group async for group in rollout().round([{"id": "x", "text": "1"}, {"id": "x", "text": "2"}])]
    for provision in (math.nan, "2", -1):
        policy: Any = {"name": "resume", "overProvision": provision}
        with pytest.raises(InvalidArgument, match="overProvision"):
            [group async for group in rollout().round(["a"], policy)]
    with pytest.raises(errors.JobNotFound, match="no round yet"):
        await rollout().save("step-0")


async def test_secrets_are_in_no_message() -> None:
    url = "nats://admin:pass@word@127.0.0.1:1,tls://token@127.0.0.1:2,127.0.0.1:3"
    with pytest.raises(errors.Unavailable) as refused:
        await Client(url, connect_timeout=0.2).connect()
    shown = f"{refused.value} {refused.value!r} {Client(url)!r}"
    assert without_secrets(url) == "nats://127.0.0.1:1,tls://127.0.0.1:2,127.0.0.1:3"
    assert without_secrets(url) in shown
    for secret in ("admin", "pass", "word", "token"):
        assert secret not in shown
    with pytest.raises(InvalidArgument) as wrong:
        check_url("http://admin:secret@host")
    assert "secret" not in str(wrong.value)
