"""Wrong arguments are refused with the name of the argument, and secrets are in no message."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from broomwagon import BroomwagonError, Client, InvalidArgument, Rollout, errors
from broomwagon._arguments import check_count, check_number, check_reward, check_url, encoded, without_secrets
from broomwagon._prompts import PromptSource


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
        ("exclude_servers", lambda: client.lease("r", exclude_servers="server-1")),
        ("needs", lambda: client.lease("r", needs="logprobs")),  # type: ignore[arg-type]
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
        with pytest.raises(InvalidArgument, match="JSON") as refused:
            await call("lb.status", body)
        assert refused.value.field == "body"
    with pytest.raises(InvalidArgument, match="JSON"):
        async with client.lease("r", context_tokens=math.nan):  # type: ignore[arg-type]
            pass
    assert (await client.call("lb.status", {}))["pool"] == client.pool


WRONG_IDS = ("", "é" * 65, "a" * 129, "two\nlines", "\x9f", "\ud800")


@pytest.mark.short
async def test_wrong_prompts_are_refused(client: Client, job: str) -> None:
    def rollout() -> Rollout:
        return client.rollout(job, groups=2, samples=1, max_tokens=8)

    wrong: list[tuple[Any, str]] = [
        *((prompts, "prompts") for prompts in (None, "a text", {"text": "one prompt"}, 7)),
        *((prompts, "prompts.0") for prompts in ([None], [1, 2], [b"bytes"], [{"id": "a", "input": "?"}])),
        ([{"id": "x#2", "text": "1"}, {"id": "x", "text": "2"}, {"id": "x", "text": "3"}], "prompts.2"),
        *(([{"id": "é" * 64, "text": "1"}, {"id": value, "text": "2"}], "prompts.1") for value in WRONG_IDS),
    ]
    for prompts, field in wrong:
        with pytest.raises(InvalidArgument, match=field) as refused:
            [group async for group in rollout().round(prompts)]
        assert refused.value.field == field
    for provision in (math.nan, "2", -1):
        policy: Any = {"name": "resume", "overProvision": provision}
        with pytest.raises(InvalidArgument, match="overProvision"):
            [group async for group in rollout().round(["a"], policy)]
    with pytest.raises(errors.JobNotFound, match="no round yet"):
        await rollout().save("step-0")


@pytest.mark.short
def test_a_list_of_prompts_may_grow_and_not_change() -> None:
    source = PromptSource()
    prompts: list[Any] = ["a", "b"]
    for more in ([], ["c"], ["d"]):
        prompts += more
        source.give(prompts)
        source.read_ahead(3)
    assert [prompt for _, prompt in source.take(9)] == ["a", "b", "c", "d"]
    # For example, a data loader may fill one list with each batch.
    for wrong in (["e", "f", "g", "h"], [], ["a", "c", "b", "d"]):
        prompts[:] = wrong
        with pytest.raises(InvalidArgument, match="give a new list") as refused:
            source.give(prompts)
        assert refused.value.field == "prompts"
    source.give(["e"])
    assert [prompt for _, prompt in source.take(9)] == ["e"]


@pytest.mark.short
def test_a_wrong_prompt_of_an_iterator_is_the_only_one_left_out() -> None:
    source = PromptSource()
    prompts: Any = iter(["a", 7, "b", None, "c"])
    source.give(prompts)
    for field in ("prompts.1", "prompts.3"):
        with pytest.raises(InvalidArgument) as refused:
            source.read_ahead(5)
        assert refused.value.field == field
    assert source.take(5) == [("0", "a"), ("2", "b"), ("4", "c")]


class Index:
    """A number as integers of NumPy and PyTorch are."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


def scalars() -> list[tuple[Any, int | float]]:
    """Numbers that are no `int` or `float`, with their values."""
    try:
        import numpy  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        return [(Index(7), 7), (Fraction(3, 2), 1.5)]
    return [(Index(7), 7), (numpy.int64(7), 7), (numpy.uint8(7), 7), (numpy.float32(1.5), 1.5), (Fraction(3, 2), 1.5)]


@pytest.mark.short
@pytest.mark.parametrize("scalar, value", scalars())
def test_scalars_of_other_libraries_are_numbers(scalar: Any, value: int | float) -> None:
    number = check_number("x", scalar)
    assert number == value
    assert type(number) is type(value)
    assert encoded({"x": [scalar]}) == f'{{"x":[{value}]}}'.encode()
    if isinstance(value, int):
        assert type(check_count("x", scalar)) is int
    else:
        with pytest.raises(InvalidArgument):
            check_count("x", scalar)
    with pytest.raises(InvalidArgument):
        check_number("x", scalar, 8)


@pytest.mark.short
@pytest.mark.parametrize("scalar, value", [*scalars(), (True, 1), (-2, -2), (0.5, 0.5)])
def test_a_reward_is_any_number(scalar: Any, value: float) -> None:
    number = check_reward("rewards.0", scalar)
    assert (number, type(number)) == (value, float)


@pytest.mark.short
async def test_a_text_is_no_reward(client: Client, served: str) -> None:
    rollout = client.rollout(served, groups=1, samples=2, max_tokens=8)
    async for group in rollout.round(["a"], "wait"):
        wrong: list[Any] = ["1", b"1", bytearray(b"1"), None, math.nan, -math.inf, 10**400, [1], 1j]
        for value in wrong:
            with pytest.raises(InvalidArgument, match="finite number") as refused:
                await rollout.reward(group, [1, value])
            assert refused.value.field == "rewards.1"
        texts: Any = "01"
        with pytest.raises(InvalidArgument, match=r"rewards\.0 .* not str '0'"):
            await rollout.reward(group, texts)
        odd: tuple[Any, ...] = (1, {0: 1, 1: 0}, {0, 1})
        for rewards in odd:
            with pytest.raises(InvalidArgument, match="sequence") as refused:
                await rollout.reward(group, rewards)
            assert refused.value.field == "rewards"
        assert await rollout.reward(group, [0, 1])
    with pytest.raises(InvalidArgument, match="none of this step") as refused:
        await rollout.reward(group, [0, 1])
    assert refused.value.field == "group"


@pytest.mark.short
def test_what_is_no_number_is_refused() -> None:
    wrong: tuple[Any, ...] = (True, "1", None, 1j, Index, object())
    for value in wrong:
        with pytest.raises(InvalidArgument):
            check_number("x", value)
        with pytest.raises(InvalidArgument):
            check_count("x", value)
    with pytest.raises(TypeError, match="object"):
        encoded({"x": object()})


@pytest.mark.parametrize(
    "url, shown",
    [
        ("nats://user:se,cret@host:1", "nats://host:1"),
        ("nats://user:se@cret,se/@cret@host:1", "nats://host:1"),
        ("nats://a:1,nats://user:se,cret@host:1,b:2", "nats://host:1,b:2"),
        ("nats://user:se//cret@host:1", "nats://host:1"),
        ("user:se//cret@host:1", "host:1"),
        ("user://secret@host", "host"),
        ("nats://user:secret,nats://secret@host", "...,nats://host"),
        ("nats://user:secret", "..."),
        ("ws://host:80/path?token=secret", "ws://host:80"),
        ("http://user:secret@host", "host"),
        # Two addresses, or one with a password.
        ("nats://user:secret@x,cret@host", "nats://host"),
        ("nats://user:1234,cret@host:1", "nats://host:1"),
    ],
)
@pytest.mark.short
def test_parts_of_odd_passwords_are_in_no_message(url: str, shown: str) -> None:
    assert without_secrets(url) == shown
    if url.startswith("ws:"):
        return
    with pytest.raises(InvalidArgument, match="NATS_PASSWORD") as refused:
        Client(url)
    assert refused.value.field == "url"
    assert "cret" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        *("host", "host:1", "nats://[::1]:4222", "tls://user:p@ss@host", "token@host", "a:1, nats://b_c.d:2/"),
        *("nats://user:p@x,nats://y@host", "token@a:1,b:2,tls://user:p@c"),
    ],
)
@pytest.mark.short
def test_addresses_of_nats_are_accepted(url: str) -> None:
    check_url(url)


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
