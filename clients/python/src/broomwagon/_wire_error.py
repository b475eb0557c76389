"""The exception for the error in a reply."""

from __future__ import annotations

from typing import Any

from . import errors
from ._error import BroomwagonError


def error_of(wire: dict[str, Any]) -> BroomwagonError:
    """The exception for a `WireError`. A code of a later version becomes a BroomwagonError with that code."""
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
