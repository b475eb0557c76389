"""Checks arguments of callers that no service sees."""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Iterable, Mapping, Set
from functools import lru_cache
from numbers import Integral, Real
from typing import Any

from .errors import ValidationFailed

_POOL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
#: An id has no control characters and no halves of surrogate pairs.
_ID = re.compile(r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]+")
MAX_ID_BYTES = 128
#: Maximum samples of one group.
MAX_SAMPLES = 128
#: One token of a NATS subject.
_TOKEN = re.compile(r"[^\s.*>]+")
_SCHEMES = ("nats", "tls", "ws", "wss")
#: An address without a user. The group ends after the port, since messages do not show the rest.
_ADDRESS = re.compile(r"((?:[a-z]+://)?(?:[\w.-]+|\[[\w.:%]*\])(?::\d{1,5})?)(?:[/?#].*)?")
#: The start of an address of NATS, up to the name of its user.
_SCHEME = re.compile(rf"(?:{'|'.join(_SCHEMES)})://")


class InvalidArgument(ValidationFailed, ValueError):
    """An argument is wrong; `field` is its name. If a service refuses an argument, the error is a plain
    ValidationFailed, except for a prompt of a round."""


def plain_number(value: object) -> int | float | None:
    """The value as an `int` or `float` of Python, also from a scalar of NumPy; None if the value is no number."""
    if isinstance(value, bool):
        return None
    if isinstance(value, Real) and not isinstance(value, Integral):
        return float(value)
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def check_number(field: str, value: float, least: float = 0.0, *, may_be_infinite: bool = False) -> float:
    """Returns the value as a number of Python.

    :raises InvalidArgument: the value is no number, not finite, or less than `least`
    """
    number = plain_number(value)
    if number is not None and number >= least and (may_be_infinite or math.isfinite(number)):
        return number
    kind = "number" if may_be_infinite else "finite number"
    raise InvalidArgument(f"{field} must be a {kind} of at least {least:g}: {value!r}", field=field)


def check_reward(field: str, value: object) -> float:
    """Returns a reward as a number of Python: also from a truth value, or a scalar of NumPy or PyTorch.

    :raises InvalidArgument: the reward is a text, no number, or not finite
    """
    try:
        number = math.nan if isinstance(value, (str, bytes, bytearray)) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError, RuntimeError):
        # PyTorch raises RuntimeError for a tensor with several elements.
        number = math.nan
    if math.isfinite(number):
        return number
    raise InvalidArgument(
        f"{field} must be a finite number, not {type(value).__name__} {repr(value)[:60]}", field=field
    )


def check_rewards(rewards: object) -> list[float]:
    """Returns the rewards of a group as numbers of Python.

    :raises InvalidArgument: the rewards are no sequence, or a reward is no finite number
    """
    # A mapping or a set has no order that matches the samples.
    if not isinstance(rewards, Iterable) or isinstance(rewards, (Mapping, Set)):
        raise InvalidArgument(f"rewards must be a sequence, not {type(rewards).__name__}", field="rewards")
    return [check_reward(f"rewards.{index}", reward) for index, reward in enumerate(rewards)]


def check_count(field: str, value: int, least: int = 1, *, most: int | None = None, reason: str = "") -> int:
    """Returns the count as an `int` of Python.

    :param reason: why the count is at most `most`, and what to do instead
    :raises InvalidArgument: the value is no whole number from `least` to `most`
    """
    number = plain_number(value)
    if not isinstance(number, int) or number < least:
        raise InvalidArgument(f"{field} must be a whole number of at least {least}: {value!r}", field=field)
    if most is not None and number > most:
        raise InvalidArgument(f"{field} must be at most {most}: {value!r}{reason}", field=field)
    return number


def check_samples(samples: int) -> int:
    """Returns the number of samples of a group as an `int` of Python.

    :raises InvalidArgument: `samples` is no whole number from 1 to `MAX_SAMPLES`
    """
    reason = (
        ". Redis moves a group in one step, which must stay short: give the prompt several times, and join its groups"
    )
    return check_count("samples", samples, most=MAX_SAMPLES, reason=reason)


def check_token_ids(token_ids: Iterable[int]) -> list[int]:
    """Returns token ids as `int` of Python.

    :raises InvalidArgument: an id is no whole number of at least 0
    """
    ids = list(token_ids)
    if all(type(value) is int and value >= 0 for value in ids):
        return ids
    return [check_count(f"token_ids.{index}", value, 0) for index, value in enumerate(ids)]


def check_logprobs(logprobs: Iterable[float | None]) -> list[float | None]:
    """Returns log probabilities as numbers of Python.

    :raises InvalidArgument: a log probability is neither None nor a finite number
    """
    return [
        None if value is None else check_number(f"logprobs.{index}", value, -math.inf)
        for index, value in enumerate(logprobs)
    ]


def check_texts(field: str, texts: object) -> None:
    """:raises InvalidArgument: `texts` is one text instead of a list"""
    if isinstance(texts, (str, bytes)):
        raise InvalidArgument(f"{field} must be a list of texts, not {texts!r}", field=field)


def check_pool(pool: str) -> None:
    """:raises InvalidArgument: `pool` cannot be the name of a pool"""
    if not _POOL.fullmatch(pool):
        rule = "1 to 64 letters, digits, _ and -, of which the first is a letter or digit"
        raise InvalidArgument(f"pool must be {rule}: {pool!r}", field="pool")


def is_id(text: str) -> bool:
    """Whether services accept the text as an id, for example of a group. A call with a wrong id fails as a whole."""
    return bool(_ID.fullmatch(text)) and len(text.encode()) <= MAX_ID_BYTES


def check_token(field: str, value: str) -> None:
    """:raises InvalidArgument: `value` cannot be one token of a NATS subject"""
    if not _TOKEN.fullmatch(value):
        raise InvalidArgument(f"{field} must not be empty or hold spaces or . * >: {value!r}", field=field)


def check_rank(rank: str | None) -> None:
    """:raises InvalidArgument: the process is not the first process of a distributed training"""
    if rank is not None and rank.strip().isdecimal() and int(rank) > 0:
        raise InvalidArgument(
            f"RANK is {rank}: a job has one trainer, and a Rollout on each rank would take the job from the rank "
            "before. Make the Rollout on rank 0 and send its groups to the others, or pass any_rank=True",
            field="any_rank",
        )


@lru_cache(1024)
def check_operation(operation: str) -> None:
    """:raises InvalidArgument: a NATS subject cannot end with `operation`"""
    if not all(_TOKEN.fullmatch(token) for token in operation.split(".")):
        raise InvalidArgument(f"{operation!r} is no operation, for example lb.status", field="operation")


def check_url(url: str) -> None:
    """:raises InvalidArgument: an address is no address of NATS, or may be the end of a password"""
    for position, one in enumerate(url.split(",")):
        scheme, separator, rest = one.strip().rpartition("://")
        user, at, host = rest.rpartition("@")
        may_be_password = position > 0 and at and not separator
        is_wrong = (separator and scheme not in _SCHEMES) or re.search(r"[/?#\[\]]", user)
        if may_be_password or is_wrong or not _ADDRESS.fullmatch(host):
            message = (
                f"url must name NATS, for example nats://host:4222: {without_secrets(url)!r}. "
                "A password with one of , / ? # [ ] belongs in NATS_PASSWORD, and its user in NATS_USER. "
                "Of several addresses, each with a user begins with nats:// or tls://"
            )
            raise InvalidArgument(message, field="url")


def without_secrets(url: str) -> str:
    """Addresses without names and passwords of users, for messages. A text that may be a part of a password with commas
    is left out too."""
    shown: list[str] = []
    for one in url.split(","):
        before, separator, host = one.strip().rpartition("@")
        scheme = _SCHEME.match(before)
        if separator and not scheme:
            # The user has no scheme, or the text is the end of a password with a comma.
            scheme = _SCHEME.match(url.strip())
            shown.clear()
        address = _ADDRESS.fullmatch(host)
        shown.append((scheme.group() if scheme else "") + (address.group(1) if address else "..."))
    return ",".join(shown)


def given_fields(**fields: Any) -> dict[str, Any]:
    """Fields of the protocol that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def to_milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)


def encoded(value: Any) -> bytes:
    """Encodes a value as JSON.

    :raises InvalidArgument: a number is not finite
    :raises TypeError: JSON cannot have the value
    """
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False, default=_plain).encode()
    except ValueError as error:
        raise InvalidArgument(f"JSON cannot have the body: {error}", field="body") from error


def _plain(value: object) -> int | float:
    """Encodes a scalar of NumPy within a body.

    :raises TypeError: the value is no number
    """
    number = plain_number(value)
    if number is None:
        raise TypeError(f"JSON cannot have {type(value).__name__}: {repr(value)[:60]}")
    return number
