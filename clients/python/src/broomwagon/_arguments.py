"""Checks of what callers pass and no service sees."""

from __future__ import annotations

import json
import math
import re
from functools import lru_cache
from typing import Any

from .errors import ValidationFailed

_POOL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
#: One token of a NATS subject.
_TOKEN = re.compile(r"[^\s.*>]+")
_SCHEMES = ("nats", "tls", "ws", "wss")


class InvalidArgument(ValidationFailed, ValueError):
    """An argument is wrong; `field` is its name. What a service refuses is only a ValidationFailed."""


def check_number(field: str, value: float, least: float = 0.0, *, may_be_infinite: bool = False) -> None:
    """:raises InvalidArgument: it is no number, not finite, or less than `least`"""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if is_number and value >= least and (may_be_infinite or math.isfinite(value)):
        return
    kind = "number" if may_be_infinite else "finite number"
    raise InvalidArgument(f"{field} must be a {kind} of at least {least:g}: {value!r}", field=field)


def check_count(field: str, value: int) -> None:
    """:raises InvalidArgument: it is no whole number of at least 1"""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidArgument(f"{field} must be a whole number of at least 1: {value!r}", field=field)


def check_pool(pool: str) -> None:
    """:raises InvalidArgument: it is no name of a pool"""
    if not _POOL.fullmatch(pool):
        rule = "1 to 64 letters, digits, _ and -, of which the first is a letter or digit"
        raise InvalidArgument(f"pool must be {rule}: {pool!r}", field="pool")


def check_token(field: str, value: str) -> None:
    """:raises InvalidArgument: a NATS subject cannot have it as one token"""
    if not _TOKEN.fullmatch(value):
        raise InvalidArgument(f"{field} must not be empty or hold spaces or . * >: {value!r}", field=field)


@lru_cache(1024)
def check_operation(operation: str) -> None:
    """:raises InvalidArgument: a NATS subject cannot end with it"""
    if not all(_TOKEN.fullmatch(token) for token in operation.split(".")):
        raise InvalidArgument(f"{operation!r} is no operation, for example lb.status", field="operation")


def check_url(url: str) -> None:
    """:raises InvalidArgument: one of the addresses is not of NATS"""
    for one in url.split(","):
        scheme, separator, _ = one.strip().partition("://")
        if not one.strip() or (separator and scheme not in _SCHEMES):
            raise InvalidArgument(
                f"url must name NATS, for example nats://host:4222: {without_secrets(one)!r}", field="url"
            )


def without_secrets(url: str) -> str:
    """Addresses without names and passwords of users, for messages."""
    return ",".join(re.sub(r"^([^/@]*//)?.*@", r"\1", one) for one in url.split(","))


def encoded(value: Any) -> bytes:
    """JSON, as services read it.

    :raises InvalidArgument: a number is not finite
    :raises TypeError: JSON cannot have it
    """
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
    except ValueError as error:
        raise InvalidArgument(f"JSON cannot have the body: {error}") from error
