"""The base of all errors of the protocol."""

from __future__ import annotations

from typing import Any


class BroomwagonError(Exception):
    """An error of the protocol. Each code has a class of its own in `broomwagon.errors`."""

    #: Stable name of the error, as on the wire.
    code: str = "INTERNAL"

    def __init__(
        self,
        message: str,
        *,
        retryable: bool = False,
        retry_after: float = 0.0,
        field: str | None = None,
        details: Any = None,
    ) -> None:
        super().__init__(message)
        #: Whether the same body may succeed later.
        self.retryable = retryable
        #: Seconds after which the body may be sent again.
        self.retry_after = retry_after
        #: Path of the first wrong field, for example `groups.3.groupId`.
        self.field = field
        #: More about the error; its form depends on the code.
        self.details = details

    def __str__(self) -> str:
        return f"{self.code}: {super().__str__()}"
