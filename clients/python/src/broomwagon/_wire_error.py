"""The exception of an error that a service answers."""

from __future__ import annotations

from typing import Any

from . import errors
from ._error import BroomwagonError


def error_of(wire: dict[str, Any]) -> BroomwagonError:
    """The exception of a `WireError`. A code of a later version is a BroomwagonError with its code."""
    kind = errors.BY_CODE.get(wire["code"], BroomwagonError)
    error = kind(
        wire["message"],
        retryable=wire["retryable"],
        retry_after=wire.get("retryAfterMs", 0) / 1000,
        field=wire.get("field"),
        details=wire.get("details"),
    )
    error.code = wire["code"]
    return error
