"""The times of one attempt."""

from __future__ import annotations

import time
from typing import Any


class AttemptTimes:
    def __init__(self, claim: dict[str, Any]) -> None:
        self._claimed_at = time.monotonic()
        self._leased_at: float | None = None
        self._timeout_ms: int | None = claim.get("timeoutMs")
        self._generated_ms: int = claim.get("generatedMs", 0)

    @property
    def left(self) -> float | None:
        """Seconds of generation time that earlier attempts have left; None: without a limit."""
        return None if self._timeout_ms is None else (self._timeout_ms - self._generated_ms) / 1000

    def begin(self) -> None:
        """It has its first server."""
        self._leased_at = time.monotonic()

    def generated(self) -> dict[str, int]:
        """Generation time so far, as a field of a body; for a sample with a timeout."""
        if self._timeout_ms is None or self._leased_at is None:
            return {}
        return {"generatedMs": _ms_since(self._leased_at)}

    def run(self) -> dict[str, int]:
        """When it got its server and when it ends, since the claim. It has begun."""
        assert self._leased_at is not None
        return {"leasedMs": round(1000 * (self._leased_at - self._claimed_at)), "endedMs": _ms_since(self._claimed_at)}


def _ms_since(at: float) -> int:
    return round(1000 * (time.monotonic() - at))
